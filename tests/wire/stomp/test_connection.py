"""Connections: login, versions, receipts, heart-beats, limits, slow readers, the end."""

from __future__ import annotations

import pytest

from atalanta.kernel.security.password import hash_password
from atalanta.kernel.security.resource_limits import ResourceLimit
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.login import LoginConnection
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.stomp.connection import StompConnection
from atalanta.wire.stomp.decoder import BODY_BYTES_MAX, HEAD_BYTES_MAX, LOGIN_HEAD_BYTES_MAX
from tests.kernel.broker_rig import SECOND
from tests.wire.stomp.stomp_rig import StompClient, StompServer, replies


def door(**options: object) -> AcceptorConfig:
    return AcceptorConfig("front", "0.0.0.0", 1, **options)  # type: ignore[arg-type]


# -- login ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "offered, chosen",
    [("1.0,1.1,1.2", "1.2"), ("1.1, 1.0", "1.1"), ("1.0", "1.0"), ("", "1.0"), ("2.0,1.1", "1.1")],
)
def test_the_highest_common_version_is_chosen(server: StompServer, offered: str, chosen: str) -> None:
    assert server.stomp_client(offered).connected["version"] == chosen


def test_a_client_of_no_known_version_is_refused_with_the_known_ones(server: StompServer) -> None:
    client = StompClient(server)
    assert "1.0, 1.1 and 1.2" in client.error("CONNECT", accept_version="2.0", login="admin", passcode="admin")


def test_a_wrong_password_is_answered_and_ends_the_connection(server: StompServer) -> None:
    client = StompClient(server)
    text = client.error("STOMP", accept_version="1.2", login="admin", passcode="wrong")
    assert "AMQ229031" in text and "admin" in text
    assert server.broker.clients.logins_refused == 1


def test_frames_behind_the_login_wait_for_the_password(server: StompServer) -> None:
    server.security.add_user("anna", hash_password("secret", b"\x01" * 32, 2), ["admin"])
    client = StompClient(server)
    client.feed(b"CONNECT\nlogin:anna\npasscode:secret\n\n\0SUBSCRIBE\nid:1\ndestination:a\nreceipt:1\n\n\0")
    client.feed(b"SEND\ndestination:a\n\nx\0")
    assert client.frames() == []
    server.verify()
    assert [each.command for each in client.frames()] == ["CONNECTED", "RECEIPT", "MESSAGE"]


@pytest.mark.parametrize("data", [b"SEND\ndestination:a\n\n\0", b"DISCONNECT\n\n\0", b"ACK\nid:1\n\n\0"])
def test_before_login_only_connect_is_accepted(server: StompServer, data: bytes) -> None:
    client = StompClient(server)
    client.feed(b"CONNECT\n")  # recognised by its first line
    client = StompClient(server)
    stomp = server.stomp
    connection = StompConnection(
        server.host, stomp.beats, stomp.wildcard_queues, client.conn, "1.2.3.4:5", server.now, None
    )
    server.connections[client.conn] = connection
    client.feed(data)
    (answer,) = replies(client.output())
    assert answer.command == "ERROR" and "before CONNECT" in answer["message"]
    assert client.closed is not None


def test_a_second_login_is_an_error(server: StompServer) -> None:
    assert "logged in already" in server.stomp_client().error("CONNECT", login="admin", passcode="admin")


def test_one_acceptor_serves_core_and_stomp_and_management_names_both() -> None:
    server = StompServer(acceptor=door())
    server.stomp_client()
    server.login()
    assert sorted(client.protocol for client in server.broker.clients.connected.values()) == ["CORE", "STOMP"]


def test_an_acceptor_that_does_not_name_stomp_refuses_it() -> None:
    server = StompServer(acceptor=door(protocols=("CORE",)))
    client = StompClient(server)
    client.send("CONNECT", login="admin", passcode="admin")
    assert client.closed is not None
    assert "add STOMP to the protocols parameter" in client.closed and "front" in client.closed


def test_a_user_without_permission_is_refused_by_name(server: StompServer) -> None:
    server.login().create_queue("a")
    client = server.stomp_client(login="guest", passcode="guest")
    assert "guest" in client.error("SEND", "x", destination="a")
    client = server.stomp_client(login="guest", passcode="guest")
    assert "guest" in client.error("SUBSCRIBE", destination="a", id="1")
    assert server.broker.queues["a"].message_count == 0


# -- receipts -------------------------------------------------------------------------------------
def test_a_durable_message_is_confirmed_when_it_is_on_disk(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    client.send("SEND", "x", destination="/queue/a", persistent="true", receipt="1")
    client.send("DISCONNECT", receipt="2")
    assert client.output() == b""
    answers = client.frames()
    assert [(each.command, each["receipt-id"]) for each in answers] == [("RECEIPT", "1"), ("RECEIPT", "2")]
    assert client.closed == "the client disconnected"


def test_acknowledgements_are_on_disk_before_the_receipt_of_disconnect(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    client.receipt("SEND", "x", destination="/queue/a", persistent="true")
    [message] = client.messages()
    client.send("ACK", id=message["ack"])
    client.send("DISCONNECT", receipt="2")
    assert client.output() == b""
    assert client.one()["receipt-id"] == "2"


def test_too_many_receipts_at_once_stop_the_input_for_a_while(server: StompServer) -> None:
    client = server.stomp_client()
    for number in range(3_000):
        client.send("SEND", "x", destination="/queue/a", persistent="true", receipt=str(number))
    connection = server.connections[client.conn]
    assert isinstance(connection, StompConnection) and connection.holds == 1
    seen = [each["receipt-id"] for _ in range(5) for each in client.frames()]
    assert seen == [str(number) for number in range(3_000)]


def test_an_error_names_the_receipt_of_its_frame(server: StompServer) -> None:
    client = server.stomp_client()
    client.send("COMMIT", transaction="none", receipt="77")
    client.send("SEND", "x", destination="/queue/a")
    answer = client.one()
    assert answer["receipt-id"] == "77" and b"no transaction 'none'" in answer.body
    assert "a" not in server.broker.queues


# -- transactions ---------------------------------------------------------------------------------
def test_a_transaction_sends_and_acknowledges_at_its_commit(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    client.receipt("SEND", "1", destination="/queue/a")
    (message,) = client.messages()
    client.receipt("BEGIN", transaction="t")
    client.receipt("ACK", id=message["ack"], transaction="t")
    client.receipt("SEND", "2", destination="/queue/b", transaction="t")
    assert server.broker.queues["a"].message_count == 1 and server.broker.queues["b"].message_count == 0
    client.receipt("COMMIT", transaction="t")
    assert server.broker.queues["a"].message_count == 0 and server.broker.queues["b"].message_count == 1
    assert "no transaction" in client.error("ABORT", transaction="t")


def test_an_abort_delivers_again_and_sends_nothing(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    client.receipt("SEND", "1", destination="/queue/a")
    (message,) = client.messages()
    client.receipt("BEGIN", transaction="t")
    client.receipt("SEND", "2", destination="/queue/a", transaction="t")
    client.receipt("ACK", id=message["ack"], transaction="t")
    client.receipt("ABORT", transaction="t")
    (again,) = client.messages()
    assert again.body == b"1" and again["redelivered"] == "true"


def test_a_nack_in_a_transaction_waits_for_the_commit(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    client.receipt("SEND", "1", destination="/queue/a")
    (message,) = client.messages()
    for name, count in (("t", 0), ("u", 1)):
        client.receipt("BEGIN", transaction=name)
        client.receipt("NACK", id=message["ack"], transaction=name)
        client.receipt("ABORT" if name == "t" else "COMMIT", transaction=name)
        assert len(client.messages()) == count


@pytest.mark.parametrize("mode", ["client", "client-individual"])
def test_what_a_transaction_sends_acknowledges_and_refuses_is_one_record(mode: str) -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ", "max_delivery_attempts": 2})
    server = StompServer(settings=settings)
    server.login().create_queue("DLQ")
    client = server.stomp_client()
    client.subscribe("/queue/a", ack=mode)
    client.subscribe("/queue/b", "2", ack=mode)
    for destination in ("/queue/b", "/queue/a", "/queue/a"):
        client.receipt("SEND", destination, destination=destination, persistent="true")
    got = client.messages()
    client.receipt("BEGIN", transaction="t")
    client.receipt("SEND", "new", destination="/queue/c", transaction="t", persistent="true")
    client.receipt("ACK", id=got[0]["ack"], transaction="t")
    for message in got[1:] if mode == "client-individual" else got[2:]:
        client.receipt("NACK", id=message["ack"], transaction="t", requeue="false")
    before = server.journal.last
    client.receipt("COMMIT", transaction="t")
    assert server.journal.last == before + 1
    server.restart()
    counts = {name: server.broker.queues[name].message_count for name in ("a", "b", "c", "DLQ")}
    assert counts == {"a": 0, "b": 0, "c": 1, "DLQ": 2}


def test_the_last_attempt_in_a_transaction_ends_in_the_dead_letter_queue() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ", "max_delivery_attempts": 2})
    server = StompServer(settings=settings)
    server.login().create_queue("DLQ")
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual", **{"activemq.prefetchSize": "1"})
    for text in ("poison", "good"):
        client.receipt("SEND", text, destination="/queue/a", persistent="true")
    found = []
    for number in range(3):
        (message,) = client.messages()
        found.append((message.body, message["redelivered"]))
        client.receipt("BEGIN", transaction=f"t{number}")
        client.receipt("NACK", id=message["ack"], transaction=f"t{number}")
        client.receipt("COMMIT", transaction=f"t{number}")
    assert found == [(b"poison", "false"), (b"poison", "true"), (b"good", "false")]
    assert server.broker.queues["DLQ"].message_count == 1


def test_transactions_are_independent_and_end_with_the_connection(server: StompServer) -> None:
    client = server.stomp_client()
    client.receipt("BEGIN", transaction="t")
    client.receipt("BEGIN", transaction="u")
    client.receipt("SEND", "t", destination="/queue/a", transaction="t")
    client.receipt("SEND", "u", destination="/queue/a", transaction="u")
    client.receipt("COMMIT", transaction="u")
    assert "already" in client.error("BEGIN", transaction="t")
    other = server.stomp_client()
    other.subscribe("/queue/a")
    assert other.texts() == ["u"]


# -- heart-beats ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "asked, options, answered, ttl_ms",
    [
        ("0,0", {}, "0,0", -1),
        ("1000,0", {}, "0,1000", 2_000),
        ("0,100", {}, "500,0", -1),
        ("4000,3000", {}, "3000,4000", 8_000),
        ("100,0", {}, "0,500", 1_000),
        ("9000,0", {"connection_ttl_max_ms": 6_000}, "0,3000", 6_000),
        ("1000,0", {"options_by_protocol": {StompAcceptor: StompAcceptor(ttl_modifier=1.5)}}, "0,1000", 1_500),
        ("0,0", {"connection_ttl_ms": 5_000}, "0,2500", 5_000),
    ],
)
def test_heart_beats_are_agreed(asked: str, options: dict[str, object], answered: str, ttl_ms: int) -> None:
    server = StompServer(acceptor=door(**options))
    client = server.stomp_client(heart_beat=asked)
    assert client.connected["heart-beat"] == answered
    connection = server.connections[client.conn]
    assert isinstance(connection, StompConnection) and connection.ttl_ns == (ttl_ms * 1_000_000 if ttl_ms > 0 else -1)


def test_the_server_beats_when_it_has_nothing_to_say(server: StompServer) -> None:
    client = server.stomp_client(heart_beat="0,1000")
    client.subscribe("/queue/a")
    seen = []
    for _ in range(4):
        server.now += SECOND
        server.beat()
        seen.append(client.output())
    assert seen == [b"\n"] * 4
    server.now += SECOND // 2
    client.send("SEND", "x", destination="/queue/a")
    assert len(client.messages()) == 1
    server.now += SECOND // 2
    server.beat()
    assert client.output() == b""
    server.now += SECOND // 2
    server.beat()
    assert client.output() == b"\n"


def test_heart_beats_of_closed_connections_are_forgotten(server: StompServer) -> None:
    staying = server.stomp_client(heart_beat="0,1000")
    for _ in range(1_000):
        client = server.stomp_client(heart_beat="0,999999999")
        client.receipt("DISCONNECT")
    assert len(server.stomp.beats.due) < 300
    server.now += SECOND
    server.beat()
    assert staying.output() == b"\n"


def test_a_client_that_breaks_its_promise_is_closed(server: StompServer) -> None:
    beating, silent = server.stomp_client(heart_beat="1000,0"), server.stomp_client(heart_beat="1000,0")
    patient = server.stomp_client("")
    for _ in range(20):
        server.now += SECOND
        beating.feed(b"\n")
        server.check_alive()
    assert beating.closed is None and patient.closed is None
    assert silent.closed == "silent"


@pytest.mark.parametrize("value", ["1", "1,2,3", "-1,0", "a,b", "1,9999999999"])
def test_a_malformed_heart_beat_is_refused(server: StompServer, value: str) -> None:
    client = StompClient(server)
    assert "heart-beat" in client.error("CONNECT", login="admin", passcode="admin", heart_beat=value)


# -- limits ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "data, text",
    [
        (b"CONNECT\n" + b"a:" + b"x" * LOGIN_HEAD_BYTES_MAX, f"{LOGIN_HEAD_BYTES_MAX} bytes"),
        (b"CONNECT\ncontent-length:5\n\nhello\0", "CONNECT has a body"),
        (b"CONNECT\n\nhello\0", "CONNECT has a body"),
        (b"CONNECT\ncontent-length:-1\n\n", "content-length is '-1'"),
        (b"CONNECT\ncontent-length:99999999999999999999\n\n", "content-length"),
        (b"CONNECT\nno colon\n\n\0", "has no colon"),
        (b"CONNECT\n\xff:a\n\n\0", "not UTF-8"),
    ],
)
def test_a_login_frame_is_small(server: StompServer, data: bytes, text: str) -> None:
    client = StompClient(server)
    client.feed(data)
    (answer,) = replies(client.output())
    assert answer.command == "ERROR" and text in answer["message"]
    assert client.closed is not None and text in client.closed


@pytest.mark.parametrize(
    "data, text",
    [
        (b"SEND\na:" + b"x" * HEAD_BYTES_MAX, f"{HEAD_BYTES_MAX} bytes"),
        (b"SEND\n" + b"a:\n" * 1_001 + b"\n", "1000 headers"),
        (b"SEND\ncontent-length:%d\n\n" % (BODY_BYTES_MAX + 1), f"at most {BODY_BYTES_MAX} bytes"),
        (b"SEND\ndestination:a\ncontent-length:1\n\nabc", "no NUL behind the 1 bytes"),
        (b"SEND\ndestination:a\n\n\xff\0", "byte 0 of the body is not UTF-8"),
        (b"SEND\ndestination:a\\t\n\n\0", "STOMP 1.2 has no escape \\t"),
        (b"SEND\n\n\0", "without the header destination"),
        (b"SEND\ndestination:\n\n\0", "destination is empty"),
        (b"SEND\ndestination:a\npriority:high\n\n\0", "not a whole number"),
        (b"PUT\n\n\0", "'PUT' is no command"),
        (b"MESSAGE\n\n\0", "'MESSAGE' is no command"),
    ],
)
def test_a_malformed_frame_is_answered_and_ends_the_connection(server: StompServer, data: bytes, text: str) -> None:
    client = server.stomp_client()
    client.feed(data)
    (answer,) = replies(client.output())
    assert answer.command == "ERROR" and text in answer["message"]
    assert client.closed is not None and text in client.closed


def test_a_header_that_is_not_utf_8_is_answered_with_the_receipt_before_it(server: StompServer) -> None:
    client = server.stomp_client()
    client.feed("SEND\nname:ž\nreceipt:7\n".encode() + b"bad:\xe2\x82\ndestination:/queue/a\n\n\0")
    (answer,) = replies(client.output())
    assert answer.command == "ERROR" and answer["receipt-id"] == "7"
    assert answer["message"] == "SEND: the header 'bad:\ufffd' is not UTF-8"


def test_the_first_of_repeated_headers_counts(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    client.feed(b"SEND\ndestination:/queue/a\nn:1\nn:2\n\n\0")
    assert client.one()["n"] == "1"


# -- flow -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("protocol", ["STOMP", "CORE"])
def test_a_client_that_hung_up_while_it_waits_for_the_share_of_its_user_ends(
    server: StompServer, protocol: str
) -> None:
    server.host.unfinished.user_bytes_max = 100_000
    first = server.stomp_client()
    first.feed(b"SEND\ndestination:/queue/a\n\n" + b"x" * 120_000)
    if protocol == "STOMP":
        other = server.stomp_client()
        conn = other.conn
        other.feed(b"SEND\ndestination:/queue/a\n\n" + b"x" * 20_000)
    else:
        conn = server.login().conn
        server.data(conn, (90_000).to_bytes(4, "big") + b"x" * 20_000)
    connection = server.connection(conn)
    assert isinstance(connection, LoginConnection) and connection.share_waits
    assert connection.hung_up(server.now)
    server.lost(conn)
    first.feed(b"\0")
    server.settle()
    assert first.closed is None and server.broker.queues["a"].message_count == 1
    assert not server.host.unfinished.users


def test_a_slow_reader_gets_no_more_until_it_reads(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    connection = server.connection(client.conn)
    connection.on_blocked(server.now, True)
    client.send("SEND", "x", destination="/queue/a")
    assert client.frames() == []
    connection.on_blocked(server.now, False)
    server.turn()
    assert client.texts() == ["x"]


# -- the end --------------------------------------------------------------------------------------
def test_a_node_that_stops_says_so(server: StompServer) -> None:
    client = server.stomp_client()
    server.connection(client.conn).stop(server.now)
    answer = client.one()
    assert answer.command == "ERROR" and answer["message"] == "the node stops"
    assert client.closed is not None


def test_a_node_that_leaves_names_its_successor(server: StompServer) -> None:
    client = server.stomp_client()
    server.host.leave_to("b", TransportConfiguration.tcp("b", "10.0.0.2", 61_613))
    connection = server.connection(client.conn)
    connection.hold_input()
    connection.disconnect(server.now, 0)
    assert client.one()["message"] == "the node leaves: its successor is 10.0.0.2:61613"
    assert client.closed is not None and connection.can_move() is not None


def test_an_operator_closes_a_session(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    (kernel,) = next(iter(server.broker.clients.connected.values())).sessions.values()
    kernel.endpoint.ended_by_operator(server.now)
    answer = client.one()
    assert answer.command == "ERROR" and "operator" in answer["message"] and client.closed is not None


def test_a_user_has_as_many_sessions_as_its_limit_allows() -> None:
    server = StompServer(BrokerConfig(resource_limits=[ResourceLimit("admin", 1, -1)]))
    server.stomp_client()
    client = StompClient(server)
    client.error("CONNECT", login="admin", passcode="admin")
