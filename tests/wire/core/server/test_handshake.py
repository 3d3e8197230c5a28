"""Before login: what is looked at, what closes the connection, and that nothing else happens."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from atalanta.kernel.errors import (
    SESSION_CREATION_REJECTED,
)
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.wire.core import packet_types
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    CheckForFailover,
    CheckForFailoverReply,
    DisconnectV2,
    DisconnectV3,
    ExceptionResponse,
    PacketsConfirmed,
    Ping,
)
from atalanta.wire.core.packets.query import QueueQuery
from atalanta.wire.core.packets.session import (
    CreateSession,
    CreateSessionResponse,
    ReattachSession,
    ReattachSessionResponse,
)
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    SubscribeTopology,
    SubscribeTopologyV2,
)
from atalanta.wire.core.server.connection import UNAUTHENTICATED_FRAME_BYTES_MAX
from atalanta.wire.endpoint import AcceptorConfig
from tests.golden.frames import golden_frames
from tests.kernel.broker_rig import SECOND
from tests.wire.core.samples import all_packets
from tests.wire.core.server.server_rig import Server

ALLOWED = {
    (packet_types.PING, 0),
    (packet_types.SUBSCRIBE_TOPOLOGY, 0),
    (packet_types.SUBSCRIBE_TOPOLOGY_V2, 0),
    (packet_types.CREATESESSION, 1),
    (packet_types.CREATESESSION_V2, 1),
    (packet_types.REATTACH_SESSION, 1),
    (packet_types.CHECK_FOR_FAILOVER, 1),
    (packet_types.CLUSTER_CONNECT, 3),
}
CHANNELS = (0, 1, 3, 10, -1, 1 << 40)


def frame(code: int, channel: int, body: bytes) -> bytes:
    head = (len(body) + 9).to_bytes(4, "big") + (code & 0xFF).to_bytes(1, "big")
    return head + channel.to_bytes(8, "big", signed=True) + body


def bodies() -> dict[int, bytes]:
    """A well-formed body for every packet type there is, an empty one for all other numbers."""
    found = {packet.type: codec.encode(packet, 10, 136)[13:] for packet in all_packets()}
    return {code: found.get(code, b"") for code in range(-128, 128)}


@pytest.mark.parametrize("channel", CHANNELS)
def test_every_packet_before_login_is_on_the_list_or_ends_the_connection(server: Server, channel: int) -> None:
    server.queue("orders")
    server.settle()
    records = list(server.journal.records)
    names = (sorted(server.broker.addresses), sorted(server.broker.queues))
    for code, body in bodies().items():
        client = server.greeted()
        client.feed(frame(code, channel, body))
        if (code, channel) in ALLOWED:
            assert client.closed is None, f"{packet_types.packet_name(code)} on channel {channel}"
        else:
            assert client.closed is not None, f"{packet_types.packet_name(code)} on channel {channel}"
            assert client.receive() == []
    server.settle()
    assert server.journal.records == records
    assert (sorted(server.broker.addresses), sorted(server.broker.queues)) == names
    assert server.broker.memory.used_bytes == 0
    assert all(not connection.sessions for connection in server.cores())


def test_strangers_leave_no_memory_behind_whatever_they_send(server: Server) -> None:
    packets = list(bodies().items())

    def round_of_strangers() -> None:
        for code, body in packets:
            for channel in CHANNELS:
                client = server.greeted()
                client.feed(frame(code, channel, body))
                server.turn()
                if client.closed is None:
                    server.lost(client.conn)
        server.wire.written.clear()
        server.wire.closed.clear()
        server.trace.events.clear()

    round_of_strangers()
    tracemalloc.start()
    try:
        round_of_strangers()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 32 << 10
    assert server.connections == {} and not server.protocol.resumable.lost


def test_a_peer_that_does_not_read_its_answers_before_login_is_let_go(server: Server) -> None:
    client = server.greeted()
    client.send(SubscribeTopologyV2(False, 136), 0)
    server.core(client.conn).on_blocked(server.now, True)
    server.turn()
    assert client.closed is not None and "before login" in client.closed


def test_what_is_refused_before_login_is_not_even_decoded(server: Server) -> None:
    client = server.greeted()
    client.feed(frame(packet_types.SESS_SEND, 0, b"\xff" * 40))
    assert client.closed is not None and "before login" in client.closed


@pytest.mark.parametrize("length", [UNAUTHENTICATED_FRAME_BYTES_MAX, 1 << 30, (1 << 31) - 1])
def test_a_huge_frame_before_login_is_refused_by_its_length(server: Server, length: int) -> None:
    client = server.greeted()
    client.feed(length.to_bytes(4, "big"))
    assert client.closed is not None
    assert str(UNAUTHENTICATED_FRAME_BYTES_MAX) in client.closed


def test_a_peer_without_login_costs_little_memory_however_long_it_goes_on(server: Server) -> None:
    client = server.greeted()
    ping = codec.encode(Ping(60_000), 0, 136)
    subscribe = codec.encode(SubscribeTopologyV2(False, 136), 0, 136)
    client.feed(ping + subscribe)
    client.receive()
    client.seen.clear()
    tracemalloc.start()
    try:
        for _ in range(2_000):
            client.feed(ping + subscribe)
            server.turn()
            server.wire.written.clear()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert client.closed is None
    assert kept < 64 << 10


def test_nothing_else_than_core_is_served(server: Server) -> None:
    for greeting in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"AMQP\x00\x01\x00\x00",
        b"\x00\x00\x00\x10abcdefgh",
    ):
        client = server.connect()
        client.feed(greeting)
        assert client.closed is not None
        assert client.receive() == []


def test_bytes_may_come_one_by_one(server: Server) -> None:
    client = server.connect()
    for byte in HANDSHAKE + codec.encode(Ping(60_000), 0, 136):
        client.feed(bytes([byte]))
    assert [type(packet) for _, packet in client.receive()] == [Ping]


def test_the_topology_before_login_is_the_nodes_own_entry_alone() -> None:
    for request in (
        SubscribeTopologyV2(False, 136),
        SubscribeTopologyV2(True, 136),
        SubscribeTopology(True),
    ):
        server = Server()
        client = server.greeted()
        client.send(request, 0)
        members = client.packets(ClusterTopology)
        assert [(member.node_id, member.last) for member in members] == [("node-a", True)]


def test_failover_and_reattach_are_answered_without_login(server: Server) -> None:
    client = server.greeted()
    client.send(CheckForFailover("node-a"), 1)
    client.send(ReattachSession("somebody-elses", 3), 1)
    answers = [packet for _, packet in client.receive()]
    assert isinstance(answers[0], CheckForFailoverReply) and answers[0].ok
    assert isinstance(answers[1], ReattachSessionResponse) and not answers[1].reattached


def test_who_comes_from_another_node_may_confirm_what_its_session_got_there(server: Server) -> None:
    """A real client does so with its pings, before it has made that session here; else it hangs for 30 s."""
    client = server.greeted()
    client.send(CheckForFailover("node-b"), 1)
    client.send(PacketsConfirmed(41), 10)
    client.send(
        CreateSession(name="s", session_channel=10, version=136, user="admin", password="admin"), 1
    )
    server.settle()
    assert client.packets(CreateSessionResponse)
    assert client.closed is None


# -- life ---------------------------------------------------------------------------------------
def test_a_silent_connection_is_dropped_after_its_time_to_live_and_a_pinging_one_is_not(server: Server) -> None:
    silent = server.login()
    alive = server.login()
    for client in (silent, alive):
        client.send(Ping(5_000), 0)
        assert [packet.connection_ttl_ms for packet in client.packets(Ping)] == [5_000]
    for _ in range(6):
        server.now += SECOND
        alive.send(Ping(5_000), 0)
        server.check_alive()
    assert silent.closed is not None
    assert alive.closed is None


@pytest.mark.parametrize(
    ("asked_ms", "ttl_ms"), [(5_000, 10_000), (100_000, 60_000), (-1, 60_000), (30_000, 30_000)]
)
def test_the_acceptor_limits_the_time_to_live(asked_ms: int, ttl_ms: int) -> None:
    acceptor = AcceptorConfig(
        "a", "0.0.0.0", 1, connection_ttl_min_ms=10_000, connection_ttl_max_ms=60_000
    )
    server = Server(acceptor=acceptor)
    client = server.login()
    client.send(Ping(asked_ms), 0)
    assert server.core(client.conn).ttl_ns == ttl_ms * 1_000_000


def test_the_broker_replaces_the_time_to_live_that_clients_ask_for() -> None:
    server = Server(BrokerConfig(connection_ttl_override_ms=3_000))
    client = server.login()
    client.send(Ping(60_000), 0)
    server.now += 4 * SECOND
    server.check_alive()
    assert client.closed is not None
    assert server.trace.events[-1] == (
        "connection_timed_out", {"remote": "1.2.3.4:5", "why": "no data from it for 4.0 s"}
    )  # fmt: skip


@pytest.mark.parametrize(("timeout_s", "stays"), [(10, False), (30, True), (0, True)])
def test_who_does_not_log_in_is_shown_the_door(timeout_s: int, stays: bool) -> None:
    server = Server(acceptor=AcceptorConfig("a", "0.0.0.0", 1, handshake_timeout_s=timeout_s))
    idle = server.connect()
    user = server.login()
    server.now += 20 * SECOND
    server.check_alive()
    assert (idle.closed is None) == stays
    assert user.closed is None
    told = [fields for name, fields in server.trace.events if name == "connection_timed_out"]
    assert stays or told == [
        {"remote": "1.2.3.4:5", "why": f"it has not logged in within {timeout_s} s"}
    ]


def test_a_byte_now_and_then_does_not_keep_the_door_open() -> None:
    acceptor = AcceptorConfig("a", "0.0.0.0", 1, handshake_timeout_s=10)
    for bytes_sent in (HANDSHAKE + b"\x00\x00\x10\x00" + bytes(40), b"A" * 7 + bytes(40)):
        server = Server(acceptor=acceptor)
        client = server.connect()
        for byte in bytes_sent[:20]:
            client.feed(bytes([byte]))
            server.now += SECOND
            server.check_alive()
            if client.closed is not None:
                break
        assert client.closed is not None
        assert server.connections == {}


def test_a_node_that_stops_says_good_bye(server: Server) -> None:
    client = server.login()
    for connection in server.cores():
        connection.stop(server.now)
    server.turn()
    byes = [packet for packet in client.packets(DisconnectV3)]
    assert [(bye.node_id, bye.reason) for bye in byes] == [("node-a", 4)]
    assert client.closed is not None
    server.broker.stopping = True
    late = server.greeted().open_session(10, "admin", "admin")
    assert isinstance(late, ExceptionResponse) and late.code == SESSION_CREATION_REJECTED


@pytest.mark.parametrize(("version", "kind"), [(129, DisconnectV2), (130, DisconnectV2), (131, DisconnectV3)])
def test_an_old_client_can_read_the_good_bye(server: Server, version: int, kind: type[Packet]) -> None:
    client = server.greeted()
    client.send(SubscribeTopologyV2(False, version), 0)
    client.open_session(10, "admin", "admin", version=version)
    client.receive()
    server.core(client.conn).send_disconnect()
    assert [type(packet) for _, packet in client.receive()] == [kind]


def test_frames_are_confirmed_by_window_and_by_the_clock(server: Server) -> None:
    client = server.greeted()
    client.open_session(10, "admin", "admin", window=2_000, start=False)
    client.open_session(11, "admin", "admin", window=-1, start=False)
    for _ in range(3):
        client.send(QueueQuery("x" * 100))
        client.send(QueueQuery("x" * 100), 11)
    assert client.packets(PacketsConfirmed) == []
    for _ in range(12):
        client.send(QueueQuery("x" * 100))
    confirmed = [
        (channel, packet.command_id)
        for channel, packet in client.receive()
        if isinstance(packet, PacketsConfirmed)
    ]
    # A query of 100 characters is a frame of 217 bytes: ten of them fill the window.
    assert confirmed == [(10, 9)]
    server.check_alive()
    assert [packet.command_id for packet in client.packets(PacketsConfirmed)] == [14]
    server.check_alive()
    assert client.packets(PacketsConfirmed) == []


# -- damage -------------------------------------------------------------------------------------
def test_damaged_conversations_end_their_connection_and_nothing_else() -> None:
    """Captured client frames, cut and corrupted: no error but the two that `Server.data` expects."""
    source = random.Random(5)
    by_type: dict[int, list[tuple[int, bytes]]] = {}
    for golden in golden_frames():
        if golden.sender == "client":
            by_type.setdefault(golden.type, []).append((golden.channel, golden.data))
    server = Server()
    server.login().create_queue("orders")
    closed = 0
    for _, samples in sorted(by_type.items()):
        for channel, data in samples[:25]:
            for _ in range(6):
                broken = bytearray(data)
                for _ in range(source.randint(1, 3)):
                    broken[source.randrange(13, len(broken)) if len(broken) > 13 else 0] = (
                        source.randrange(256)
                    )
                cut = bytes(broken[: source.randrange(13, len(broken) + 1)])
                if source.random() < 0.5:
                    cut = (len(cut) - 4).to_bytes(4, "big") + cut[4:]
                user = source.choice(("admin", "cluster"))
                client = server.login(user, "secret" if user == "cluster" else "admin")
                if channel > 10:
                    client.open_session(channel, "admin", "admin")
                client.feed(cut)
                server.turn()
                closed += client.closed is not None
                if client.closed is None:
                    server.lost(client.conn)
    assert closed > 500
    witness = server.login()
    witness.consume("orders")
    assert witness.closed is None


def test_damage_in_every_packet_type_on_a_session_gives_no_other_error() -> None:
    source = random.Random(9)
    server = Server()
    for packet in all_packets():
        data = codec.encode(packet, 10, 136)
        for _ in range(40):
            broken = bytearray(data[13:] or b"\0")
            for _ in range(source.randint(0, 3)):
                broken[source.randrange(len(broken))] = source.randrange(256)
            body = bytes(broken[: source.randrange(len(broken) + 1)])
            client = server.login()
            client.feed(frame(packet.type, source.choice((0, 1, 3, 10)), body))
            server.turn()
            if client.closed is None:
                server.lost(client.conn)
