"""Which server a connection goes to: policies by Artemis' class names, and one's own."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from atalanta.client import (
    ConnectionFactory,
    FirstElement,
    Random,
    RandomSticky,
    RoundRobin,
    connect,
)
from atalanta.client.blocking import ConnectionFactory as BlockingFactory
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.discovery.load_balancing import PACKAGE, POLICIES
from atalanta.client.options import Server, parse_url
from atalanta.client.shells.reconnect import ReconnectPolicy
from atalanta.wire.uri import UriError
from tests.client.fake_server import FakeServer, ServerThread
from tests.wire.core.client.fake_broker import PASSWORD

DEADLINE_S = 15
LOGIN = f"user=u&password={PASSWORD}"
POLICY = "connectionLoadBalancingPolicyClassName"


class Drawn:
    """Random numbers that are known."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def __call__(self, count: int) -> int:
        return self.numbers.pop(0) % count


def test_the_four_policies_of_artemis() -> None:
    robin = RoundRobin(Drawn(1))
    assert [robin.select(3) for _ in range(5)] == [1, 2, 0, 1, 2]
    assert robin.select(2) == 0, "fewer servers now"
    assert [Random(Drawn(4, 2, 0)).select(3) for _ in range(1)] == [1]
    sticky = RandomSticky(Drawn(2, 0))
    assert [sticky.select(3) for _ in range(3)] == [2, 2, 2]
    assert sticky.select(2) == 1
    assert FirstElement().select(3) == 0


@pytest.mark.parametrize("short", sorted(POLICIES))
def test_a_url_names_them_by_class(short: str) -> None:
    for name in (f"{PACKAGE}{short}ConnectionLoadBalancingPolicy", short):
        options = parse_url(f"(tcp://a:1,tcp://b:2)?{POLICY}={name}")
        assert type(options.balancing).__name__ == short


@pytest.mark.parametrize(
    "name", ["com.example.Mine", "os.system", "tests.client.discovery.test_load_balancing.Drawn", ""]
)
def test_a_url_loads_no_code(name: str) -> None:
    with pytest.raises(UriError, match=r"pass a policy of your own as connect\(…, balancing=…\)"):
        parse_url(f"tcp://a:1?{POLICY}={name}")


def order(options: str = "", **given: object) -> list[int]:
    """Ports in the order in which a new connection tries them."""
    parsed = parse_url(f"(tcp://a:1,tcp://b:2,tcp://c:3)?{options}")
    for name, value in given.items():
        setattr(parsed, name, value)
    policy = ReconnectPolicy(parsed)
    found = []
    while (dial := policy.next_dial()) is not None:
        found.append(dial[0].port)
        policy.failed(0, "refused")
    return found


def test_the_chosen_server_is_tried_first_and_then_all_the_others() -> None:
    assert order() == [1, 2, 3], "without a policy the order of the URL"
    assert order(balancing=RoundRobin(Drawn(1))) == [2, 3, 1]
    assert order(f"{POLICY}=FirstElement") == [1, 2, 3]


async def _spread(factory: ConnectionFactory, count: int) -> Counter[int]:
    """Returns how many of `count` simultaneous connections are at each port."""
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
        found = [await stack.enter_async_context(factory.connect()) for _ in range(count)]
        return Counter(each.server.port for each in found if each.server is not None)


def test_connections_of_a_factory_go_round_the_servers() -> None:
    async def main() -> None:
        async with FakeServer() as a, FakeServer() as b, FakeServer() as c:
            ports = [a.port, b.port, c.port]
            url = "({})".format(",".join(f"tcp://127.0.0.1:{port}" for port in ports))
            robin = ConnectionFactory(f"{url}?{LOGIN}&{POLICY}=RoundRobin")
            assert await _spread(robin, 9) == {port: 3 for port in ports}
            sticky = ConnectionFactory(f"{url}?{LOGIN}&{POLICY}=RandomSticky")
            assert list((await _spread(sticky, 6)).values()) == [6]
            first = ConnectionFactory(f"{url}?{LOGIN}&{POLICY}=FirstElement")
            assert await _spread(first, 4) == {ports[0]: 4}
            own = ConnectionFactory(f"{url}?{LOGIN}", balancing=lambda count: count - 1)
            assert await _spread(own, 4) == {ports[2]: 4}

    asyncio.run(main())


def test_a_policy_of_ones_own_may_be_shared_by_several_connect() -> None:
    async def main() -> None:
        async with FakeServer() as a, FakeServer() as b:
            url = f"(tcp://127.0.0.1:{a.port},tcp://127.0.0.1:{b.port})?{LOGIN}"
            shared = RoundRobin(Drawn(0))
            ports = []
            for _ in range(4):
                async with connect(url, balancing=shared) as connection:
                    assert connection.server is not None
                    ports.append(connection.server.port)
            assert ports == [a.port, b.port] * 2

    asyncio.run(main())


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(TypeError, match="neither a function nor has a method select"):
        connect("tcp://a:1", balancing=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Chosen.select\(2\) returned 2"):
        ReconnectPolicy(
            ConnectionFactory("(tcp://a:1,tcp://b:2)", balancing=lambda n: n)._url.options()
        )


def test_blocking_connections_go_round_too() -> None:
    with ServerThread() as a, ServerThread() as b:
        url = f"(tcp://127.0.0.1:{a.port},tcp://127.0.0.1:{b.port})?{LOGIN}&{POLICY}=RoundRobin"
        factory = BlockingFactory(url)
        connections = [factory.connect() for _ in range(4)]
        servers = Counter(each.server for each in connections)
        for each in connections:
            each.close()
        assert servers == {Server("127.0.0.1", a.port): 2, Server("127.0.0.1", b.port): 2}


@pytest.mark.parametrize("balanced", [True, False])
def test_members_of_the_topology_are_chosen_from_if_that_is_asked_for(balanced: bool) -> None:
    async def main() -> None:
        async with FakeServer() as seed, FakeServer() as member, asyncio.timeout(DEADLINE_S):
            seed.broker.port = member.port  # what it tells of the cluster
            url = seed.url(f"{LOGIN}&useTopologyForLoadBalancing={str(balanced).lower()}")
            async with connect(url) as connection:
                assert connection.server == Server("127.0.0.1", (member if balanced else seed).port)

    asyncio.run(main())


@pytest.mark.parametrize("balanced", [True, False])
def test_of_a_blocking_client_too(balanced: bool) -> None:
    with ServerThread() as seed, ServerThread() as member:
        seed.broker.port = member.port
        url = seed.url(f"{LOGIN}&useTopologyForLoadBalancing={str(balanced).lower()}")
        with connect_blocking(url) as connection:
            assert connection.server == Server("127.0.0.1", (member if balanced else seed).port)
