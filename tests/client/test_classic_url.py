"""Classic's forms of a URL: what they mean here, and what is refused by name."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

from atalanta.client import CallTimedOut, ConnectFailed, Connection, Message, connect
from atalanta.client.blocking import connect as connect_blocking
from atalanta.client.discovery.classic_multicast import ClassicFinder
from atalanta.client.options import Server, parse_url
from atalanta.client.url_options import CLASSIC_ACCEPTED, CLASSIC_REFUSED
from atalanta.wire.openwire.multicast_discovery import ALIVE, DEAD, encode_datagram
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.uri import UriError
from tests.client.fake_server import FakeServer, ServerThread, meet
from tests.ports import free_port
from tests.waiting import until
from tests.wire.core.client.fake_broker import PASSWORD

LOGIN = f"user=u&password={PASSWORD}"
DEADLINE_S = 20
A, B = Server("a", 1), Server("b", 61616)


def test_the_defaults_are_those_of_classic() -> None:
    options = parse_url("failover:(tcp://a:1,nio://b)")
    assert options.servers == [A, B]
    assert (options.reconnect_attempts, options.initial_connect_attempts) == (-1, -1)
    assert (options.retry_interval_ms, options.retry_interval_multiplier) == (10, 2.0)
    assert (options.max_retry_interval_ms, options.warn_attempts) == (30_000, 10)
    assert options.call_failover_timeout_ms == -1 and options.shuffled
    assert type(options.balancing).__name__ == "RoundRobin"
    assert options.use_topology_for_load_balancing is True and not options.priority


@pytest.mark.parametrize(
    "url",
    [
        "failover:(tcp://a:1,tcp://b)",
        "failover://(tcp://a:1,tcp://b)",
        "failover:tcp://a:1,tcp://b",
        "  failover:( tcp://a:1 , auto+nio://b )  ",
        "static: (tcp://a:1,tcp://b)",
        "discovery:(static:(tcp://a:1,tcp://b))",
        "discovery:static:(tcp://a:1,tcp://b)",
        "discovery://(simple:(tcp://a:1,tcp://b))",
        "discovery:(masterslave:(tcp://a:1,tcp://b))",
    ],
)
def test_the_forms(url: str) -> None:
    options = parse_url(url)
    assert (options.servers, options.tls, options.reconnect_attempts) == ([A, B], None, -1)
    assert options.retry_interval_ms == (10 if "failover" in url else 1_000)


def test_options_are_translated() -> None:
    options = parse_url(
        "failover:(tcp://a:1?clientID=c,tcp://b)?randomize=false&maxReconnectAttempts=7&startupMaxReconnectAttempts=3"
        "&initialReconnectDelay=50&maxReconnectDelay=400&useExponentialBackOff=false&timeout=900&nested.sendWindow=5"
        "&updateURIsSupported=false&warnAfterReconnectAttempts=-1&jms.userName=u&jms.password=p&connectionTimeout=70"
        "&nestedExtraQueryOptions=ackBatchSize=9%26callTimeout=8&trackMessages=true&callFailoverTimeout=30"
    )
    assert (options.reconnect_attempts, options.initial_connect_attempts) == (7, 3)
    assert (options.retry_interval_ms, options.max_retry_interval_ms) == (50, 400)
    assert options.retry_interval_multiplier == 1.0 and options.warn_attempts == 0
    assert type(options.balancing).__name__ == "FirstElement" and not options.shuffled
    assert options.use_topology_for_load_balancing is False
    assert (options.user, options.password, options.client_id) == ("u", "p", "c")
    assert (options.send_window, options.ack_batch_size, options.call_timeout_ms) == (5, 9, 8)
    assert options.connection_timeout_ms == 70
    assert options.call_failover_timeout_ms == 30, "an option of this client counts more"


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        ("maxReconnectAttempts=0", (0, 1)),
        ("maxReconnectAttempts=4", (4, 4)),
        ("startupMaxReconnectAttempts=2", (-1, 2)),
        ("maxReconnectAttempts=0&startupMaxReconnectAttempts=5", (0, 5)),
    ],
)
def test_attempts(options: str, attempts: tuple[int, int]) -> None:
    found = parse_url(f"failover:(tcp://a:1)?{options}")
    assert (found.reconnect_attempts, found.initial_connect_attempts) == attempts


def test_an_agent_without_a_number_of_attempts_goes_on() -> None:
    assert parse_url("static:(tcp://a:1)?maxReconnectAttempts=0").reconnect_attempts == -1
    assert parse_url("discovery:(static:(tcp://a:1))?maxReconnectAttempts=0").reconnect_attempts == 0


def test_ssl_is_tls_for_all() -> None:
    options = parse_url("failover:(ssl://a:1,nio+ssl://b)?verifyHost=false")
    assert options.tls is not None and options.tls.verify_host is False


@pytest.mark.parametrize("name", sorted(CLASSIC_REFUSED))
def test_what_is_not_done_is_refused_by_name(name: str) -> None:
    given = f"{name}x" if name.endswith(".") else name
    with pytest.raises(UriError) as refused:
        parse_url(f"failover:(tcp://a:1)?{given}=5")
    assert str(refused.value) == f"option {given}: {CLASSIC_REFUSED[name].why}"
    for harmless in CLASSIC_REFUSED[name].harmless:
        parse_url(f"failover:(tcp://a:1)?{given}={harmless}")


@pytest.mark.parametrize("name", sorted(CLASSIC_ACCEPTED))
def test_what_changes_no_promise_is_accepted(name: str) -> None:
    assert parse_url(f"failover:(tcp://a:1)?{name}=5").servers == [A]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("fanout:(static:(tcp://a:1,tcp://b:2))", "fanout: a message for all brokers at once is not built; open"),
        ("failover:()", "an address in the list is empty"),
        ("failover:", "does not begin with tcp://"),
        ("failover:(tcp://a:1", "has no closing ')'"),
        ("failover:(tcp://a:1)x", "unexpected 'x' after ')'"),
        ("failover:(vm://a)", "scheme 'vm' is not supported here"),
        ("failover:(tcp://a:1,ssl://b:2)", "tcp:// and ssl:// in one list"),
        ("failover:(tcp://a:1)?randomise=true", "unknown option randomise"),
        ("failover:(tcp://a:1)?randomize=maybe", "option randomize: 'maybe' must be true or false"),
        ("failover:(tcp://a:1)?priorityBackup=true&priorityURIs=tcp://z:1", "priorityURIs: tcp://z:1 is none of the"),
        ("failover:(tcp://a:1)?priorityBackup=true&stay=true", "priorityBackup: needs a list of servers, and not stay"),
        ("discovery:(zeroconf:_activemq)", "discovery: the agent zeroconf: is not built; write failover:("),
        ("discovery:(ldap://host)", "discovery: the agent ldap: is not built"),
        ("discovery:(http://host)", "discovery: the agent http: is not built"),
        ("discovery:(tcp://a:1)", "'tcp://a:1' is no agent; write (multicast://GROUP) or (static:(…))"),
        ("discovery:(multicast://default?colour=red)", "'colour' of multicast://default?colour=red has no meaning"),
        (f"failover:({','.join(['tcp://a:1'] * 1_002)})", "more than 1000 addresses"),
        (f"failover:{','.join(['tcp://a:1'] * 1_002)}", "more than 1000 addresses"),
        ("failover:(" * 30_000, "more than 65536 characters"),
    ],
)
def test_what_cannot_be_used_is_named(url: str, says: str) -> None:
    with pytest.raises(UriError, match=re.escape(says)):
        parse_url(url)


def test_a_finder_hears_the_brokers_of_its_group_only() -> None:
    options = parse_url("discovery:(multicast://127.0.0.9:7?group=blue)?initialReconnectDelay=5&refreshTimeout=700")
    finder = options.finder
    assert isinstance(finder, ClassicFinder) and finder.refresh_s == 0.7 and options.retry_interval_ms == 5
    finder.add(finder.read(encode_datagram("blue", ALIVE, "nio://h:7?x=1")))
    finder.add(finder.read(encode_datagram("blue", ALIVE, "tcp://[::1]")))
    assert [each for each, _ in finder.entries.values()] == [Server("h", 7), Server("::1", 61616)]
    for data in (
        encode_datagram("red", ALIVE, "tcp://h:8"),
        encode_datagram("blue", ALIVE, "ssl://h:8"),  # this client dials without TLS
        encode_datagram("blue", ALIVE, "tcp://h:99999"),
        encode_datagram("blue", DEAD, "nio://h:7?x=1"),
        b"\xff" * 9_000,
    ):
        with pytest.raises(ProtocolError):
            finder.read(data)
    assert [each for each, _ in finder.entries.values()] == [Server("::1", 61616)]


def test_it_goes_on_for_ever_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()

    async def main() -> None:
        url = f"failover:(tcp://127.0.0.1:{port})?{LOGIN}&maxReconnectDelay=10&warnAfterReconnectAttempts=5"
        connecting = asyncio.create_task(_connected(url))
        async with asyncio.timeout(DEADLINE_S):
            while len([each for each in caplog.records if each.levelno == logging.WARNING]) < 2:
                await asyncio.sleep(0.01)
            server = FakeServer("q")
            server.port = port
            async with server:
                connection = await connecting
                assert connection.server == Server("127.0.0.1", port)
                await connection.close()

    with caplog.at_level(logging.WARNING, "atalanta.client"):
        asyncio.run(main())
    texts = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert texts[0].startswith(f"no connection after 5 attempts: tcp://127.0.0.1:{port}: ")
    assert texts[1].startswith("no connection after 10 attempts: ")


async def _connected(url: str) -> Connection:
    return await connect(url)


def test_timeout_counts_for_the_first_connection_too() -> None:
    url = f"failover:(tcp://127.0.0.1:{free_port()})?{LOGIN}&timeout=300"
    with pytest.raises(CallTimedOut, match="no connection within 300 ms: tcp://127"):
        connect_blocking(url)

    async def main() -> None:
        with pytest.raises(CallTimedOut, match="no connection within 300 ms"):
            await connect(url)

    asyncio.run(main())
    with pytest.raises(ConnectFailed):
        connect_blocking(url.replace("timeout=300", "maxReconnectAttempts=2"))


OFTEN = "maxReconnectDelay=100"


def test_a_client_returns_to_the_server_of_priority() -> None:
    async def main() -> None:
        async with FakeServer("q") as home, FakeServer("q") as away, asyncio.timeout(DEADLINE_S):
            meet([home, away])
            servers = f"{away.url()},{home.url()}"
            url = f"failover:({servers})?{LOGIN}&priorityBackup=true&priorityURIs={home.url()}&{OFTEN}"
            async with connect(url) as connection:
                assert connection.server == Server("127.0.0.1", home.port), "first, though the list is taken at random"
                producer = await connection.producer("q")
                await producer.send(Message(text="1"))
                await home.stop()
                await producer.send(Message(text="2"))
                assert connection.server == Server("127.0.0.1", away.port)
                async with connection.transaction() as tx:
                    await tx.send("q", Message(text="3"))
                    await home.start()
                    await asyncio.sleep(1.5)
                    assert connection.server == Server("127.0.0.1", away.port), "a transaction is not interrupted"
                while connection.server != Server("127.0.0.1", home.port) or not connection.connected:
                    await asyncio.sleep(0.05)
                await producer.send(Message(text="4"))
            assert (home.broker.messages, away.broker.messages) == (2, 2)

    asyncio.run(main())


def test_a_blocking_client_returns_too() -> None:
    home_port = free_port()
    with ServerThread("q") as away:
        url = f"failover:(tcp://127.0.0.1:{home_port},{away.url()})?{LOGIN}&priorityBackup=true&{OFTEN}"
        with connect_blocking(url) as connection:
            assert connection.server == Server("127.0.0.1", away.port)
            home = ServerThread("q")
            home.server.port = home_port
            with home:

                def is_home() -> bool:
                    connection.query_queue("q")
                    return connection.server == Server("127.0.0.1", home_port)

                until(is_home, "it has returned")
