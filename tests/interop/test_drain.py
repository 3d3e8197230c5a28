"""`atalanta drain` of a real Artemis: over TLS, and by users whose rights do not reach everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Message
from atalanta.client.blocking import connect
from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.tls import Stores, change

pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(300)]

MESSAGES = 50
LEFT = "AMQ221002"
Pair = tuple[BrokerProcess, BrokerProcess]  # the real one that leaves, ours


@pytest.fixture
def pair(brokers: Lineup) -> Iterator[Pair]:
    """Both configured, not started; nothing is redistributed."""

    def shaping(index: int, ports: list[int]) -> Shape:
        return Shape(Cluster(peers=(ports[1 - index],), load_balancing="OFF"), -1)

    leaving, target = brokers.cluster("artemis+atalanta", shaping)
    yield leaving, target
    for node in (leaving, target):
        node.close()


def at(node: BrokerProcess, options: str = "") -> str:
    """A URL that stays at this node."""
    return "&".join(filter(None, (f"tcp://127.0.0.1:{node.port}?stay=true", options)))


def filled(jms: Jms, pair: Pair, options: str = "") -> None:
    """Starts both, and sends to the one that leaves."""
    for node in pair:
        node.start()
    for node in pair:
        url = "&".join(filter(None, (node.url, options)))
        until("each knows the other", lambda url=url: len(jms("topology", url, USER, PASSWORD)) == 2, 40)  # type: ignore[misc]
    with connect(at(pair[0], options), user=USER, password=PASSWORD) as connection:
        producer = connection.producer("work", routing="anycast")
        for number in range(MESSAGES):
            producer.send(Message(text=str(number)))


def drain(node: str, to: str, user: str = USER, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
    words = ["drain", node, "--to", to, "--user", user]
    environment = {**os.environ, "ATALANTA_PASSWORD": password}
    command = [sys.executable, "-m", "atalanta", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def texts(node: BrokerProcess, options: str = "") -> list[str | None]:
    with connect(at(node, options), user=USER, password=PASSWORD) as connection:
        with connection.consumer("work", ack="auto") as consumer:
            found: list[str | None] = []
            while (message := consumer.receive(3.0 if len(found) < MESSAGES else 0.5)) is not None:
                found.append(message.text)
            return found


@pytest.mark.parametrize("way", ["host-and-port", "connector", "url"])
def test_over_tls_the_node_uses_its_own_connector(way: str, jms: Jms, pair: Pair, tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    for node in pair:
        change(node, "?protocols=CORE", f"?protocols=CORE;{stores.acceptor()}")
        for each in pair:
            old = f"tcp://127.0.0.1:{each.port}</connector>"
            change(node, old, f"tcp://127.0.0.1:{each.port}?{stores.connector()}</connector>")
    options = stores.connector("&")
    filled(jms, pair, options)
    leaving, target = pair
    to = {
        "host-and-port": f"127.0.0.1:{target.port}",
        "connector": f"peer-{target.port}",
        "url": f"tcp://127.0.0.1:{target.port}?{options}",
    }[way]
    done = drain(f"tcp://127.0.0.1:{leaving.port}?{options}", to)
    assert done.returncode == 0, done.stdout + done.stderr + leaving.tail()
    until("it is down", lambda: LEFT in leaving.log.read_text(errors="replace"), 60)
    assert texts(target, options) == [str(number) for number in range(MESSAGES)]


def test_over_tls_a_node_without_a_connector_to_the_target_is_told(jms: Jms, pair: Pair, tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    change(pair[0], "?protocols=CORE", f"?protocols=CORE;{stores.acceptor()}")
    options = stores.connector("&")
    pair[0].start()
    done = drain(f"tcp://127.0.0.1:{pair[0].port}?{options}", "localhost:1")
    assert done.returncode == 2 and "has no connector to localhost:1" in done.stderr, done.stderr


@pytest.mark.parametrize("where", ["nowhere", "leaving", "target"])
def test_a_user_who_may_not_manage_both_moves_nothing(where: str, jms: Jms, pair: Pair) -> None:
    """The guest may manage at `where` only."""
    for name, node in zip(("leaving", "target"), pair, strict=True):
        if name == where:
            change(node, '<permission type="manage" roles="amq"/>', '<permission type="manage" roles="amq,guests"/>')
    filled(jms, pair)
    leaving, target = pair
    done = drain(f"127.0.0.1:{leaving.port}", f"127.0.0.1:{target.port}", "guest", "guest")
    assert done.returncode not in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert "guest" in done.stderr and "AMQ229" in done.stderr, done.stderr
    assert LEFT not in leaving.log.read_text(errors="replace")
    assert texts(leaving) == [str(number) for number in range(MESSAGES)]
