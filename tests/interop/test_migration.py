"""Three real nodes are replaced by ours under load, one by one, as docs/guide/migration.md says; and back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.interop.harness.broker_xml import Cluster, Shape
from tests.interop.harness.failover import Failover
from tests.interop.harness.jms import PASSWORD, USER, Jms, until
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.versions, pytest.mark.timeout(900)]

PAIRS = 3
OPTIONS = "ha=true&reconnectAttempts=5&failoverAttempts=-1&callTimeout=10000"
WORKING = 200
DRAIN_SECONDS = 120


def drain(leaving: BrokerProcess, to: str) -> None:
    """Runs the page's command."""
    words = ["drain", f"127.0.0.1:{leaving.port}", "--to", to, "--user", USER]
    done = subprocess.run(
        [sys.executable, "-m", "atalanta", *words],
        capture_output=True,
        text=True,
        timeout=DRAIN_SECONDS,
        env={**os.environ, "ATALANTA_PASSWORD": PASSWORD},
    )
    assert done.returncode == 0, done.stdout + done.stderr + leaving.tail()


def replace(
    jms: Jms, clients: Failover, serving: list[BrokerProcess], leaving: BrokerProcess, comes: BrokerProcess
) -> None:
    """One round of the page. Senders pause for each real node."""
    comes.start()
    for node in (*serving, comes):
        until(f"{node.name} knows all", lambda node=node: len(jms.topology(node)) == len(serving) + 1, 40)  # type: ignore[misc]
    if leaving.kind == "artemis":
        clients.pause()
        drain(leaving, f"127.0.0.1:{comes.port}")
        until("it is down", lambda: "AMQ221002" in leaving.log.read_text(errors="replace"), 60)
        leaving.kill()
        clients.go()
    else:
        drain(leaving, f"peer-{comes.port}")
        leaving.await_end()
    serving.remove(leaving)
    serving.append(comes)


@pytest.mark.parametrize("real", ["artemis", "artemis-2.28.0"])
def test_nothing_is_lost_and_nothing_comes_twice(jms: Jms, brokers: Lineup, real: str) -> None:
    def shaping(index: int, ports: list[int]) -> Shape:
        peers = tuple(port for place, port in enumerate(ports) if place != index)
        return Shape(Cluster(peers=peers))

    kinds = "+".join([real] * PAIRS + ["atalanta"] * PAIRS)
    nodes = brokers.cluster(kinds, shaping)
    old, new = nodes[:PAIRS], nodes[PAIRS:]
    for node in old:
        node.start()
    for node in old:
        until(f"{node.name} knows all", lambda node=node: len(jms.topology(node)) == PAIRS, 40)  # type: ignore[misc]
    servers = ",".join(f"tcp://127.0.0.1:{node.port}" for node in nodes)
    serving = list(old)
    try:
        with Failover(f"({servers})?{OPTIONS}", "orders") as clients:
            clients.working(WORKING)
            for leaving, comes in [*zip(old, new, strict=True), *zip(new, old, strict=True)]:
                replace(jms, clients, serving, leaving, comes)
                clients.working(WORKING)
                print(f"{leaving.name} -> {comes.name}: {clients.counts()}")
            clients.over()
    finally:
        for node in nodes:
            node.close()
