"""The first bytes of a connection choose its protocol; before that a stranger costs next to nothing."""

from __future__ import annotations

import tracemalloc

import pytest

from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import CheckForFailover, CheckForFailoverReply, Ping
from atalanta.wire.core.server.connection import CoreConnection
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.detect import FIRST_BYTES_MAX, NEED_MORE, UNKNOWN, detect
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.http_upgrade import UpgradeRequest
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.sniffer import Sniffer
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Server

FOREIGN = {
    "AMQP": b"AMQP\x00\x01\x00\x00",
    "STOMP": b"CONNECT\r\naccept-version:1.2\r\n\r\n\x00",
    "OPENWIRE": b"\x00\x00\x01\x2c\x01ActiveMQ\x00\x00\x00\x0c",
    "MQTT": b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04test",
    "HTTP": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
}


def door(**options: object) -> AcceptorConfig:
    return AcceptorConfig("front", "0.0.0.0", 1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("step", [1, 100])
def test_a_protocol_that_is_not_implemented_is_named_with_its_acceptor(name: str, step: int) -> None:
    server = Server(acceptor=door())
    client = server.connect()
    data = FOREIGN[name]
    for at in range(0, len(data), step):
        client.feed(data[at : at + step])
    assert client.closed is not None
    assert name in client.closed and "acceptor front" in client.closed and "CORE" in client.closed
    assert client.receive() == []


@pytest.mark.parametrize("name", ["AMQP", "MQTT"])
@pytest.mark.parametrize("served", [(), ("AMQP", "MQTT", "CORE")])
def test_amqp_and_mqtt_are_closed_at_once_also_where_the_acceptor_names_them(
    name: str, served: tuple[str, ...]
) -> None:
    server = Server(acceptor=door(protocols=served))
    client = server.connect()
    client.feed(FOREIGN[name][:8])
    assert client.closed == (
        f"the peer speaks {name}, which is not implemented at acceptor front: use a client of CORE"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"\x10\x10\x00\x04MQTT",
        b"\x10\x80\x01\x00\x04MQTT",
        b"\x10\xff\xff\xff\x7f\x00\x04MQTT",
        b"\x10\x10\x00\x06MQIsdp\x03",
    ],
)
def test_mqtt_is_known_by_its_name_behind_a_length_of_any_size(data: bytes) -> None:
    for end in range(1, len(data)):
        assert detect(data[:end]) in (NEED_MORE, "MQTT")
    assert detect(data) == "MQTT"
    assert detect(b"\x10\x10\x00\x04MQTX") == UNKNOWN
    assert detect(b"\x10\xff\xff\xff\xff\x00\x04MQTT") == UNKNOWN


@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize("request_line", [b"POST /messaging HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n"])
def test_core_over_http_is_refused_with_the_remedy(request_line: bytes, step: int) -> None:
    server = Server(acceptor=door())
    client = server.connect()
    for at in range(0, 16, step):
        client.feed(request_line[at : at + step])
    assert client.closed is not None
    for part in ("HTTP", "acceptor front", "httpEnabled=true", "httpUpgradeEnabled"):
        assert part in client.closed


def test_core_where_it_is_not_enabled_is_refused_with_the_remedy() -> None:
    server = Server(acceptor=door(protocols=("AMQP",)))
    client = server.greeted()
    assert client.closed is not None
    assert "CORE" in client.closed and "front" in client.closed
    assert "add CORE to the protocols parameter" in client.closed


def test_bytes_of_no_protocol_are_refused_as_soon_as_none_can_follow() -> None:
    server = Server(acceptor=door())
    for first in (b"X", b"ARTEMIX", b"\x00\x00\x00\x10abcd", b"SSH-2.0-OpenSSH"):
        client = server.connect()
        client.feed(first)
        assert client.closed is not None and "unknown protocol" in client.closed, first


@pytest.mark.parametrize("step", [1, 3, 100])
def test_core_goes_on_with_all_its_bytes(step: int) -> None:
    server = Server(acceptor=door(protocols=("CORE", "AMQP")))
    client = server.connect()
    data = HANDSHAKE + codec.encode(Ping(60_000), 0, 136)
    for at in range(0, len(data), step):
        client.feed(data[at : at + step])
    assert len(client.packets(Ping)) == 1
    assert isinstance(server.connections[client.conn], CoreConnection)


def test_no_more_than_the_first_bytes_are_ever_held() -> None:
    server = Server(acceptor=door())
    for byte in range(256):
        client = server.connect()
        fed = 0
        while client.closed is None and fed <= FIRST_BYTES_MAX:
            client.feed(bytes([byte]))
            fed += 1
        assert client.closed is not None, f"{fed} bytes {byte}"


def test_strangers_that_say_little_are_closed_in_time_and_leave_nothing() -> None:
    server = Server(acceptor=door(handshake_timeout_s=10))

    def strangers() -> None:
        for first in (b"", b"A", b"ARTEMI", b"\x10", b"CONNECT\r"):
            for _ in range(20):
                client = server.connect()
                client.feed(first)
        server.now += 11 * SECOND
        server.check_alive()
        assert server.connections == {}
        server.wire.closed.clear()
        server.trace.events.clear()

    strangers()
    tracemalloc.start()
    try:
        strangers()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 16 << 10


def test_the_time_for_a_login_counts_from_the_accept_not_from_the_first_bytes() -> None:
    server = Server(acceptor=door(handshake_timeout_s=10))
    client = server.connect()
    server.now += 9 * SECOND
    client.feed(HANDSHAKE)
    server.now += 2 * SECOND
    server.check_alive()
    assert client.closed is not None


def test_a_stranger_that_does_not_read_is_closed() -> None:
    server = Server()
    client = server.connect()
    server.connections[client.conn].on_blocked(server.now, True)
    server.turn()
    assert client.closed is not None and "before login" in client.closed


def test_core_behind_http_where_the_acceptor_allows_it() -> None:
    server = Server(acceptor=door(http_upgrade_enabled=True))
    client = server.connect()
    request = UpgradeRequest("host", bytes(16))
    for byte in request.request:
        client.feed(bytes([byte]))
    request.feed(b"".join(server.wire.written.pop(client.conn)))
    assert request.done and not request.rest
    client.feed(HANDSHAKE + codec.encode(Ping(60_000), 0, 136))
    assert len(client.packets(Ping)) == 1


def test_a_second_upgrade_behind_the_first_is_no_way_around() -> None:
    server = Server(acceptor=door(http_upgrade_enabled=True))
    client = server.connect()
    request = UpgradeRequest("host", bytes(16)).request
    client.feed(request + FOREIGN["HTTP"])
    assert client.closed is not None


@pytest.mark.parametrize("told", [True, False])
def test_first_bytes_behind_the_end_of_a_node_get_refusals_and_the_goodbye_if_told(told: bool) -> None:
    server = Server()
    client = server.connect()
    server.host.leave_to("node-b", TransportConfiguration("b"))
    server.broker.stopping = True
    server.connection(client.conn).refuse_requests(told)
    client.feed(HANDSHAKE)
    client.send(CheckForFailover("elsewhere"), 1)
    packets = [packet for _, packet in client.receive()]
    assert [getattr(packet, "target_node_id", None) for packet in packets] == [
        *(["node-b"] if told else []), None
    ]  # fmt: skip
    answer = packets[-1]
    assert isinstance(answer, CheckForFailoverReply) and not answer.ok
    server.connection(client.conn).send_delayed_disconnect()
    assert len(client.receive()) == 1


def test_held_bytes_are_taken_in_order_after_the_release() -> None:
    server = Server()
    client = server.connect()
    sniffer = server.connection(client.conn)
    assert isinstance(sniffer, Sniffer)
    sniffer.hold_input()
    sniffer.hold_input()
    client.feed(HANDSHAKE[:3])
    client.feed(HANDSHAKE[3:])
    sniffer.release_input()
    server.resume()
    assert server.connection(client.conn) is sniffer
    sniffer.release_input()
    client.feed(codec.encode(Ping(60_000), 0, 136))
    server.resume()
    assert len(client.packets(Ping)) == 1


def test_a_refusal_is_a_protocol_error_that_the_node_logs() -> None:
    server = Server(acceptor=door())
    client = server.connect()
    with pytest.raises(ProtocolError, match="AMQP, which is not implemented at acceptor front"):
        server.connections[client.conn].feed(server.now, FOREIGN["AMQP"])
