"""Core bridges of real processes: taken up by a reload, over TLS, with a Python function from atalanta.toml."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.certificates import PASSWORD, Authority
from tests.cli.calls import Cli
from tests.ports import free_port

pytestmark = pytest.mark.process

INBOX = '<addresses><address name="inbox"><anycast><queue name="inbox"/></anycast></address></addresses>'
RULES = """
def loud(message):
    message.properties.put("via", "loud")
"""


def test_a_reload_brings_a_bridge_with_a_function_over_tls(tmp_path: Path) -> None:
    authority = Authority()
    keys = authority.holder("target", "127.0.0.1").key_store(tmp_path)
    trust = authority.trust_store(tmp_path)
    plain, secure, own = free_port(), free_port(), free_port()
    door = (
        f"<acceptors><acceptor name='plain'>tcp://127.0.0.1:{plain}</acceptor>"
        f"<acceptor name='secure'>tcp://127.0.0.1:{secure}?sslEnabled=true;keyStorePath={keys};"
        f"keyStorePassword={PASSWORD}</acceptor></acceptors>"
    )
    target_xml = write_broker_xml(tmp_path / "target", plain, more=INBOX)
    text = target_xml.read_text()
    start, end = text.index("<acceptors>"), text.index("</acceptors>") + len("</acceptors>")
    target_xml.write_text(text[:start] + door + text[end:])
    connector = (
        f"<connectors><connector name='far'>tcp://127.0.0.1:{secure}?sslEnabled=true;"
        f"trustStorePath={trust};trustStorePassword={PASSWORD}</connector></connectors>"
    )
    source_xml = write_broker_xml(tmp_path / "source", own, more=connector)
    with BrokerProcess(target_xml), BrokerProcess(source_xml) as source:
        here, there = Cli(f"tcp://127.0.0.1:{own}"), Cli(f"tcp://127.0.0.1:{plain}")
        here("produce", "orders", "--text", "hello")
        (source_xml.parent / "rules_of_a_test.py").write_text(RULES)
        (source_xml.parent / "atalanta.toml").write_text(
            '[bridges.far]\ntransformer = "rules_of_a_test:loud"\n'
        )
        bridge = """<bridges><bridge name="far"><queue-name>orders</queue-name>
          <forwarding-address>inbox</forwarding-address>
          <transformer-class-name>com.example.Loud</transformer-class-name>
          <static-connectors><connector-ref>far</connector-ref></static-connectors>
        </bridge></bridges>"""
        source_xml.write_text(source_xml.read_text().replace("</core>", f"{bridge}</core>"))
        os.kill(source.process.pid, signal.SIGHUP)
        (message,) = there.rows("consume", "inbox", "--count", "1", "--timeout", "30")
        assert message["text"] == "hello" and message["properties"] == {"via": "loud"}
        assert "core_bridge_connected" in source.log()
        assert source.end(signal.SIGTERM) == 0
