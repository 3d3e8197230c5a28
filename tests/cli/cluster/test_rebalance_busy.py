"""`atalanta rebalance` of clients in constant use: they go within a bounded time, and come to no harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.calls import Cli
from tests.cli.cluster.busy_clients import (
    CONSUMER_WINDOW,
    Kind,
    asking,
    running,
    sending,
    streaming,
    transacted,
)
from tests.cli.cluster.rebalance_rig import members, two_nodes
from tests.waiting import until

CLIENTS = 6
SECONDS = "30"
KINDS: dict[str, Kind] = {
    "asks every 50 ms": asking(0.05),
    "sends every 5 ms": sending(0.005),
    "streams": streaming,
    "transacted": transacted,
}


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    with two_nodes(tmp_path_factory.mktemp("busy"), "ON_DEMAND") as found:
        yield found


@pytest.mark.parametrize("kind", KINDS)
def test_clients_in_constant_use_are_sent_away_too(kind: str, ports: tuple[int, int]) -> None:
    first, second = ports
    cli = Cli()
    order = "connectionLoadBalancingPolicyClassName=FirstElement"
    options = f"{order}&reconnectAttempts=-1&retryInterval=100&{CONSUMER_WINDOW}"
    url = f"(tcp://127.0.0.1:{first},tcp://127.0.0.1:{second})?{options}"
    node = f"127.0.0.1:{first}"
    with running(url, CLIENTS, KINDS[kind]) as busy:
        work = busy.work
        until(lambda: work.ready == CLIENTS or work.over, "all are at work")
        until(lambda: len(members(cli, node)) == 2, "they know of each other")
        done = cli("rebalance", node, "--seconds", SECONDS)
        assert "3 clients were sent to other members" in done
        until(lambda: busy.at(second) == CLIENTS // 2, "all have gone")
        work.sending = False
        until(lambda: not work.lost(), "all is received")
    assert work.errors == []
    assert work.repeated() == []
