"""`atalanta rebalance`: two nodes, and Python clients that go where they are told."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest

from atalanta.client import FirstElement, Message
from atalanta.client.blocking import Connection, connect
from tests.cli.calls import Cli
from tests.cli.cluster.rebalance_rig import members, two_nodes
from tests.waiting import DEADLINE_S, until

CLIENTS = 6


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[tuple[int, int]]:
    with two_nodes(tmp_path, "OFF") as found:
        yield found


def at(clients: list[Connection], port: int) -> int:
    return sum(1 for one in clients if one.server is not None and one.server.port == port)


def asking(clients: list[Connection]) -> list[Connection]:
    """A blocking client reads what it is told while it waits for something."""
    for one in clients:
        one.query_queue("orders")
    return clients


@contextmanager
def used(clients: list[Connection]) -> Iterator[None]:
    """They wait for something now and then, as clients do: one that never reads does not hear that it should go."""
    over = Event()

    def use() -> None:
        while not over.wait(0.5):
            asking(clients)

    with ThreadPoolExecutor(1) as pool:
        using = pool.submit(use)
        try:
            yield
        finally:
            over.set()
            using.result(DEADLINE_S)


@pytest.mark.parametrize("servers", ["both", "one"])
def test_the_clients_are_spread_when_an_operator_says_so(
    ports: tuple[int, int], servers: str
) -> None:
    first, second = ports
    cli = Cli()
    url = f"tcp://127.0.0.1:{first}"
    if servers == "both":
        url = f"({url},tcp://127.0.0.1:{second})"
    url += "?reconnectAttempts=-1&retryInterval=100"
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(url, balancing=FirstElement())) for _ in range(CLIENTS)]
        consumers = [one.consumer("orders") for one in clients]
        assert at(clients, first) == CLIENTS
        node = f"127.0.0.1:{first}"
        until(lambda: len(members(cli, node)) == 2, "they know of each other")
        shown = cli("rebalance", node, "--dry-run")
        assert f"127.0.0.1:{second}" in shown
        assert at(clients, first) == CLIENTS
        with used(clients):
            done = cli("rebalance", node, "--seconds", "40")
        assert "3 clients were sent to other members" in done
        until(lambda: at(asking(clients), second) == CLIENTS // 2, "all have gone")
        producer = clients[0].producer("orders", routing="anycast")
        producer.send(Message(text="still here"))
        got = [each.receive(1) for each in consumers]
        assert sum(message is not None for message in got) == 1
