"""The example of docs/guide/networks.md, as it is written there, with other ports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.ports import free_port
from tests.source_tree import ROOT

PAGE = ROOT / "docs" / "guide" / "networks.md"
PORTS = ("61616", "61617")

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]


def written(folder: Path, text: str) -> Path:
    path = folder / "conf" / "activemq.xml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def northern(folder: Path, form: str, xml: str, toml: str, port: int) -> Path:
    """The file of the node in the north: Classic's, or a broker.xml with the table of the page beside it."""
    if form == "activemq.xml":
        return written(folder, xml)
    path = write_broker_xml(folder, port, "north")
    path.write_text(path.read_text().replace(f":{port}<", f":{port}?protocols=CORE,OPENWIRE<"))
    (path.parent / "atalanta.toml").write_text(toml)
    return path


@pytest.mark.parametrize("form", ["activemq.xml", "atalanta.toml"])
def test_messages_go_both_ways(tmp_path: Path, form: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    north, south = re.findall(r"```xml\n(<beans.*?)```", text, re.DOTALL)
    toml, *_ = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    ports = [free_port() for _ in PORTS]
    for known, port in zip(PORTS, ports, strict=True):
        north, south, toml = (each.replace(known, str(port)) for each in (north, south, toml))
    with (
        BrokerProcess(written(tmp_path / "south", south)),
        BrokerProcess(northern(tmp_path / "north", form, north, toml, ports[0])) as broker,
    ):
        broker.until_logged("network_bridge_connected")
        urls = [f"tcp://127.0.0.1:{port}" for port in ports]
        with (
            connect(urls[0], user="bridge", password="secret") as at_north,
            connect(urls[1], user="bridge", password="secret") as at_south,
        ):
            for sender, taker, queue in ((at_north, at_south, "orders"), (at_south, at_north, "bills")):
                taker.create_queue(queue, routing="anycast")
                consumer = taker.consumer(queue)
                sender.producer(queue, routing="anycast").send(Message(text=f"to {queue}"))
                message = consumer.receive(timeout_s=20)
                assert message is not None and message.text == f"to {queue}"
                message.acknowledge()
