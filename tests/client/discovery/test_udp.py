"""Servers that announce themselves: `udp://group:port`."""

from __future__ import annotations

import asyncio
import time

import pytest

from atalanta.client import ConnectFailed, Connection, ConnectionFactory, connect
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.discovery.udp import UdpFinder, UdpGroup, listening_socket
from atalanta.client.options import Server, parse_url
from atalanta.runtime.net.multicast import Group, sending_socket
from atalanta.wire.uri import UriError
from tests.client.discovery.announcer import LOCAL, announcing
from tests.client.fake_server import FakeServer, ServerThread
from tests.runtime.net.ipv6_address import SIX, ZONE

DEADLINE_S = 15


def test_a_client_connects_to_a_server_that_is_heard() -> None:
    async def main() -> None:
        async with FakeServer() as server, asyncio.timeout(DEADLINE_S):
            with announcing() as announcer:
                announcer.ports["node"] = server.port
                async with connect(announcer.url()) as connection:
                    assert connection.server == Server(LOCAL, server.port)

    asyncio.run(main())


def test_a_blocking_client_too() -> None:
    with announcing() as announcer, ServerThread() as server:
        announcer.ports["node"] = server.port
        with connect_blocking(announcer.url()) as connection:
            assert connection.server == Server(LOCAL, server.port)


def test_the_first_server_is_waited_for_as_long_as_initial_wait_timeout() -> None:
    async def main() -> None:
        with announcing() as announcer:
            started = time.monotonic()
            with pytest.raises(
                ConnectFailed, match=r"no server was discovered in udp://231.7.7.78:\d+ within 0.3 s"
            ):
                await connect(announcer.url("initialWaitTimeout=300"))
            assert 0.25 <= time.monotonic() - started < 5
            async with FakeServer() as server:
                connecting = asyncio.create_task(_opened(announcer.url("initialWaitTimeout=10000")))
                await asyncio.sleep(0.2)
                announcer.ports["late"] = server.port
                connection = await asyncio.wait_for(connecting, DEADLINE_S)
                await connection.close()

    asyncio.run(main())


async def _opened(url: str) -> Connection:
    return await connect(url)


def test_a_client_that_loses_its_server_listens_for_others() -> None:
    async def main() -> None:
        async with FakeServer() as first, FakeServer() as second, asyncio.timeout(DEADLINE_S):
            with announcing() as announcer:
                announcer.ports["one"] = first.port
                options = "reconnectAttempts=-1&retryInterval=20&refreshTimeout=100"
                async with connect(announcer.url(options)) as connection:
                    back = asyncio.Event()
                    connection.on_reconnected(back.set)
                    announcer.ports = {"other": second.port}
                    await first.stop()
                    await back.wait()
                    assert connection.server == Server(LOCAL, second.port)
                await first.start()

    asyncio.run(main())


def test_what_was_heard_is_believed_for_refresh_timeout() -> None:
    with announcing() as announcer:
        options = parse_url(announcer.url("refreshTimeout=150&initialWaitTimeout=100"))
        finder = options.finder
        assert isinstance(finder, UdpFinder)
        announcer.ports["one"] = 1
        assert finder.servers(lambda: False) == [Server(LOCAL, 1)]
        announcer.ports.clear()
        assert finder.servers(lambda: False) == [Server(LOCAL, 1)], "still believed"
        until = time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            try:
                finder.servers(lambda: False)
            except OSError as error:
                assert "no server was discovered" in str(error)
                return
            time.sleep(0.02)
        raise AssertionError("believed for ever")


def test_connections_of_one_factory_share_what_was_heard() -> None:
    async def main() -> None:
        async with FakeServer() as server, asyncio.timeout(DEADLINE_S):
            with announcing() as announcer:
                announcer.ports["node"] = server.port
                factory = ConnectionFactory(announcer.url())
                async with factory.connect():
                    pass
            async with factory.connect() as connection:
                assert connection.server == Server(LOCAL, server.port), (
                    "nobody announces it any more"
                )

    asyncio.run(main())


def test_every_parameter_of_the_url() -> None:
    options = parse_url(
        "udp://231.7.7.7:9876?refreshTimeout=1;initialWaitTimeout=2&localBindAddress=127.0.0.9"
        "&discoveryStoppingTimeout=3&localBindPort=4&reconnectAttempts=5"
    )
    assert isinstance(options.finder, UdpFinder)
    group = options.finder.group
    assert (group.address, group.port, group.local_bind_address) == ("231.7.7.7", 9876, "127.0.0.9")
    assert (group.refresh_timeout_ms, group.initial_wait_timeout_ms) == (1, 2)
    assert (options.reconnect_attempts, options.servers) == (5, [])
    assert parse_url("udp://231.7.7.7:1").refresh_timeout_ms == 10_000
    assert parse_url("udp://231.7.7.7:1").initial_wait_timeout_ms == 10_000


def test_a_group_of_ipv6() -> None:
    options = parse_url("udp://[ff02::77]:9876?localBindAddress=fe80::1%25eth0")
    assert isinstance(options.finder, UdpFinder)
    assert (options.finder.group.address, options.finder.group.port) == ("ff02::77", 9876)
    with pytest.raises(OSError, match=r"cannot join ff01::77:1: no interface has the address fd00::dead"):
        listening_socket(UdpGroup("ff01::77", 1, "fd00::dead"))


@pytest.mark.parametrize("zone", ["99999999999", "9" * 5_000, "no-such-if"])
def test_a_zone_that_no_interface_has_is_an_error_of_the_group(zone: str) -> None:
    with pytest.raises(OSError, match=f"cannot join ff01::77%{zone[:20]}"):
        listening_socket(UdpGroup(f"ff01::77%{zone}", 1))


@pytest.mark.skipif(not SIX, reason="this machine has no IPv6 address")
def test_an_ipv6_group_is_heard() -> None:
    """Groups of the scope ff01 never leave the machine."""
    for group, local in (("ff01::78", SIX), (f"ff01::78{ZONE}", "")):
        with listening_socket(UdpGroup(group, 0, local)) as listener:
            listener.settimeout(10)
            port = int(listener.getsockname()[1])
            with sending_socket(Group("announcer", group, port, local, -1)) as sender:
                sender.sendto(b"here", ("ff01::78", port))
                assert listener.recv(100) == b"here"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("udp://localhost:9876", "names no group"),
        ("udp://10.1.1.1:9876", "names no group"),
        ("udp://231.7.7.7", "names no group"),
        ("udp://231.7.7.7:1?refreshTimeout=0", "below 1"),
        ("udp://231.7.7.7:1?refreshTimeot=5", "is refreshTimeout meant"),
    ],
)
def test_what_cannot_be_used(url: str, says: str) -> None:
    with pytest.raises(UriError, match=says):
        parse_url(url)
