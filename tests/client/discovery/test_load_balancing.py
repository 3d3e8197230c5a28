"""Which server a connection goes to: policies by Artemis' class names, and one's own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
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
from atalanta.client.discovery.load_balancing import PACKAGE, POLICIES
from atalanta.client.options import Server, parse_url
from atalanta.client.shells.reconnect import ReconnectPolicy
from atalanta.wire.uri import UriError
from tests.client.fake_server import FakeServer, ServerThread, meet
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
    assert order() == [1, 2, 3], "what is parsed has the order of the URL; a factory gives it a policy"
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


async def _cluster(stack: AsyncExitStack, count: int = 3) -> list[FakeServer]:
    """Servers that name one another in their topology."""
    servers = [await stack.enter_async_context(FakeServer()) for _ in range(count)]
    meet(servers)
    return servers


def listed(servers: list[FakeServer], options: str = "") -> str:
    """The URL of the servers as a list."""
    return "({})?{}&{}".format(",".join(f"tcp://127.0.0.1:{each.port}" for each in servers), LOGIN, options)


FORMS: dict[str, Callable[[list[FakeServer]], str]] = {
    "list": lambda servers: listed(servers),
    "one of the cluster": lambda servers: servers[1].url(LOGIN),
    "two of three": lambda servers: listed(servers[1:]),
    "failover:": lambda servers: f"failover:{listed(servers)}",
    "failover: of one": lambda servers: f"failover:({servers[2].url()})?{LOGIN}",
    "failover: without parentheses": lambda servers: f"failover:{servers[0].url(LOGIN)}",
    "static:": lambda servers: f"static:{listed(servers)}",
    "discovery:static:": lambda servers: f"discovery:(static:{listed(servers)})?randomize=true",
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_nine_connections_of_a_factory_are_three_at_each_of_three_members(form: str) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            servers = await _cluster(stack)
            factory = ConnectionFactory(FORMS[form](servers))
            assert await _spread(factory, 9) == {each.port: 3 for each in servers}
            # None has logged in twice.
            assert [len(each.broker.connections) for each in servers] == [3, 3, 3]

    asyncio.run(main())


@pytest.mark.parametrize("form", sorted(FORMS))
def test_of_a_blocking_factory_too(form: str) -> None:
    with ServerThread() as a, ServerThread() as b, ServerThread() as c:
        servers = [a, b, c]
        meet(servers)
        factory = BlockingFactory(FORMS[form](servers))
        connections = [factory.connect() for _ in range(9)]
        found = Counter(each.server.port for each in connections if each.server is not None)
        for each in connections:
            each.close()
        assert found == {each.port: 3 for each in servers}


def test_nine_connections_that_are_opened_at_once_are_spread_too() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
            servers = await _cluster(stack)
            factory = ConnectionFactory(servers[1].url(LOGIN))

            async def opened() -> int:
                connection = await factory.connect()
                stack.push_async_callback(connection.close)
                assert connection.server is not None
                return connection.server.port

            found = Counter(await asyncio.gather(*(opened() for _ in range(9))))
            assert found == {each.port: 3 for each in servers}

    asyncio.run(main())


def test_connections_one_after_the_other_go_round_too() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
            servers = await _cluster(stack)
            factory = ConnectionFactory(servers[1].url(LOGIN))
            found: Counter[int] = Counter()
            for _ in range(9):
                async with factory.connect() as connection:
                    assert connection.server is not None
                    found[connection.server.port] += 1
            assert found == {each.port: 3 for each in servers}

    asyncio.run(main())


@pytest.mark.parametrize(
    "options",
    ["stay=true", "useTopologyForLoadBalancing=false", f"{POLICY}=FirstElement", "stay=true&reconnectAttempts=-1"],
)
def test_who_names_a_node_gets_it(options: str) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            servers = await _cluster(stack)
            for named in servers:
                factory = ConnectionFactory(named.url(f"{LOGIN}&{options}"))
                assert await _spread(factory, 4) == {named.port: 4}

    asyncio.run(main())


def test_each_connect_is_a_factory_of_one() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
            servers = await _cluster(stack)
            for named in servers:
                for _ in range(3):
                    async with connect(named.url(LOGIN)) as connection:
                        assert connection.server == Server("127.0.0.1", named.port)
            starts: set[int] = set()
            while len(starts) < 3:  # from a random server on
                async with connect(listed(servers)) as connection:
                    assert connection.server is not None
                    starts.add(connection.server.port)

    asyncio.run(main())


def test_first_element_keeps_the_order_of_the_list_while_the_first_is_there() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            servers = await _cluster(stack)
            factory = ConnectionFactory(listed(servers), balancing=FirstElement())
            assert await _spread(factory, 5) == {servers[0].port: 5}

    asyncio.run(main())


def test_a_member_that_cannot_be_reached_is_passed_over() -> None:
    """The nodes may announce addresses of a network that the client is not in."""

    async def main() -> None:
        async with AsyncExitStack() as stack:
            servers = await _cluster(stack)
            await servers[0].stop()
            factory = ConnectionFactory(servers[1].url(LOGIN))
            found = await _spread(factory, 6)
            assert set(found) == {servers[1].port, servers[2].port} and found.total() == 6
            await servers[0].start()

    asyncio.run(main())


def test_a_broker_alone_is_reached_by_the_address_of_the_url() -> None:
    """In a container it announces an address that means another broker, or none, outside."""

    async def main() -> None:
        async with FakeServer() as broker, FakeServer() as other:
            broker.broker.port = other.port
            factory = ConnectionFactory(broker.url(LOGIN))
            assert await _spread(factory, 3) == {broker.port: 3}

    asyncio.run(main())
