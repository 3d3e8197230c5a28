"""Full addresses with the policy BLOCK: a SEND waits for its RECEIPT, and the rest of its connection goes on."""

from __future__ import annotations

from atalanta.kernel.memory.memory import SENDERS_TIMER
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.wire.stomp.connection import StompConnection
from tests.wire.core.server.server_rig import text_message
from tests.wire.stomp.stomp_rig import StompClient, StompServer, frame, publish


def test_a_sender_to_a_full_address_waits_for_room() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"max_size_bytes": 5_000, "address_full_policy": "BLOCK"})
    server = StompServer(settings=settings)
    server.login().create_queue("a")
    sender, receiver = server.stomp_client(), server.stomp_client()
    for number in range(10):
        sender.send("SEND", b"x" * 1_000, destination="/queue/a", receipt=str(number))
    before = len(sender.frames())
    assert 1 < before < 6
    receiver.subscribe("/queue/a")
    got = 0
    for _ in range(10):
        got += len(receiver.messages())
    assert got == 10 and len(sender.frames()) == 10 - before


def full_server(*names: str, wait_ms: int = -1) -> StompServer:
    """A server whose queues `a`, and those of the names, have no room for another message of 1,000 bytes.

    `wait_ms`: how long a send waits; -1: for ever.
    """
    settings = AddressSettingsRepository()
    for name in ("a", *names):
        limits: dict[str, SettingValue] = {"max_size_bytes": 3_000, "blocked_send_timeout_ms": wait_ms}
        settings.add(name, {"address_full_policy": "BLOCK", **limits})
    server = StompServer(settings=settings)
    server.login().create_queue("b")
    for name in ("a", *names):
        server.login().create_queue(name)
        filler = server.stomp_client()
        for _ in range(5):
            filler.send("SEND", b"x" * 1_000, destination=f"/queue/{name}")
        server.settle()
        server.lost(filler.conn)
    return server


def emptied(server: StompServer, name: str) -> list[str]:
    """Consumes a queue; the first letters of what was in it or came meanwhile, without the filler's."""
    receiver = server.stomp_client()
    receiver.subscribe(f"/queue/{name}")
    found: list[str] = []
    for _ in range(30):
        found += [text[:1] for text in receiver.texts()]
    receiver.receipt("UNSUBSCRIBE", id="1")
    return [each for each in found if each != "x"]


def receipts(client: StompClient) -> list[str]:
    """The receipts since the last call."""
    found = client.frames()
    assert not [each for each in found if each.command == "ERROR"], found
    return [each["receipt-id"] for each in found if each.command == "RECEIPT"]


def test_who_waits_for_a_receipt_empties_the_queue_itself() -> None:
    """A client that sends and receives on one connection: the full queue is emptied by nobody else."""
    server = full_server()
    client = server.stomp_client()
    client.send("SEND", b"y", destination="/queue/a", receipt="1")
    assert client.frames() == []
    client.send("SUBSCRIBE", destination="/queue/a", id="1", ack="client-individual", receipt="2")
    seen = []
    for _ in range(20):
        for answer in client.frames():
            seen.append(answer.headers.get("receipt-id") or answer.body[:1].decode())
            if answer.command == "MESSAGE":
                client.send("ACK", id=answer["ack"])
    assert seen[0] == "2" and seen.count("1") == 1 and seen[-1] == "y"


def test_what_needs_the_order_waits_behind_it() -> None:
    server = full_server()
    client = server.stomp_client()
    client.send("BEGIN", transaction="t")
    client.send("SEND", b"1", destination="/queue/a", receipt="1", transaction="t")
    client.send("SEND", b"2", destination="/queue/b", receipt="2", transaction="t")
    client.send("COMMIT", transaction="t", receipt="3")
    client.send("SEND", b"3", destination="/queue/b", receipt="4")
    client.send("DISCONNECT", receipt="5")
    assert client.frames() == [] and client.closed is None
    assert emptied(server, "a") == ["1"]
    assert receipts(client) == ["1", "2", "3", "4", "5"]


def test_others_go_on_while_it_waits() -> None:
    server = full_server()
    client = server.stomp_client()
    client.receipt("SUBSCRIBE", destination="/queue/b", id="b", ack="client")
    client.send("SEND", b"1", destination="/queue/a", receipt="1")
    publish(server.login(), text_message("b", "x", False, 1))
    got = client.one()
    client.send("ACK", id=got["ack"], receipt="2")
    client.send("UNSUBSCRIBE", id="b", receipt="3")
    client.send("BEGIN", transaction="t", receipt="4")
    client.send("SEND", b"2", destination="/queue/c", receipt="5", transaction="t")
    client.send("COMMIT", transaction="t", receipt="6")
    client.send("SEND", b"3", destination="/queue/c", receipt="7")
    client.send("SEND", b"4", destination="/queue/c")
    assert sorted(receipts(client)) == ["2", "3", "4", "5", "6", "7"]
    assert server.broker.queues["c"].message_count == 3
    assert server.broker.queues["b"].message_count == 0


def test_two_senders_of_one_connection_keep_their_order() -> None:
    server = full_server()
    client = server.stomp_client()
    for number in range(6):
        client.send("SEND", f"{number}" + "y" * 900, destination="/queue/a", receipt=str(number))
    assert client.frames() == []
    assert emptied(server, "a") == ["0", "1", "2", "3", "4", "5"]
    assert receipts(client) == ["0", "1", "2", "3", "4", "5"]


def test_a_send_without_a_receipt_holds_the_connection() -> None:
    server = full_server()
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/a")
    client.send("SUBSCRIBE", destination="/queue/b", id="b", receipt="1")
    assert client.frames() == []


def test_a_connection_that_is_lost_while_its_message_waits() -> None:
    server = full_server()
    client = server.stomp_client()
    client.send("SEND", b"1" * 100_000, destination="/queue/a", receipt="1")
    connection = server.connection(client.conn)
    assert isinstance(connection, StompConnection) and connection.unfinished >= 100_000
    server.lost(client.conn)
    assert emptied(server, "a") == [] and not server.host.unfinished.users


def test_a_sender_that_hung_up_before_its_message_waits_for_room_ends() -> None:
    """It was told once, while something else held the input."""
    settings = AddressSettingsRepository()
    settings.add("a", {"max_size_bytes": 5_000, "address_full_policy": "BLOCK"})
    server = StompServer(settings=settings)
    server.login().create_queue("a")
    sender = server.stomp_client()
    connection = server.connection(sender.conn)
    connection.hold_input()
    for _ in range(10):
        sender.send("SEND", b"x" * 1_000, destination="/queue/a")
    assert not connection.hung_up(server.now)
    connection.release_input()
    server.settle()
    assert sender.closed == "closed by the peer"
    assert 1 < server.broker.queues["a"].message_count < 6


# -- order ----------------------------------------------------------------------------------------
def test_a_transaction_of_the_same_name_may_begin_behind_one_whose_end_waits() -> None:
    server = full_server()
    client = server.stomp_client()
    for number in ("1", "2"):
        client.send("BEGIN", transaction="t")
        client.send("SEND", number, destination="/queue/a", receipt=f"s{number}", transaction="t")
        client.send("SEND", number, destination="/queue/b", receipt=f"b{number}", transaction="t")
        client.send("COMMIT", transaction="t", receipt=f"c{number}")
    assert receipts(client) == []
    assert emptied(server, "a") == ["1", "2"]
    assert receipts(client) == ["s1", "b1", "c1", "s2", "b2", "c2"]
    assert emptied(server, "b") == ["1", "2"]


def test_abort_waits_for_the_messages_of_its_transaction() -> None:
    server = full_server()
    client = server.stomp_client()
    client.send("BEGIN", transaction="t")
    client.send("SEND", b"1", destination="/queue/a", receipt="1", transaction="t")
    client.send("ABORT", transaction="t", receipt="2")
    assert receipts(client) == []
    assert emptied(server, "a") == []
    assert receipts(client) == ["1", "2"]


def test_a_composite_message_waits_for_room_at_each_destination() -> None:
    server = full_server("d")
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/b,/queue/a,/queue/d", receipt="1")
    client.send("SEND", b"2", destination="/queue/b", receipt="2")
    client.send("SEND", b"3", destination="/queue/c", receipt="3")
    assert receipts(client) == ["3"]
    assert emptied(server, "a") == []
    assert receipts(client) == []
    assert emptied(server, "d") == ["1"]
    assert receipts(client) == ["1", "2"]
    assert emptied(server, "a") == ["1"] and emptied(server, "b") == ["1", "2"]


def test_a_message_behind_two_others_holds_the_connection() -> None:
    server = full_server("d")
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/a", receipt="1")
    client.send("SEND", b"2", destination="/queue/d", receipt="2")
    client.send("SEND", b"3", destination="/queue/a,/queue/d", receipt="3")
    client.send("BEGIN", transaction="t", receipt="4")
    assert receipts(client) == []
    assert emptied(server, "a") == ["1"]
    assert receipts(client) == ["1", "4"]  # it is behind one only
    assert emptied(server, "d") == ["2", "3"]
    assert receipts(client) == ["2", "3"]


def test_what_comes_together_with_the_room_goes_on() -> None:
    """The room comes first, the message that waits goes on later: what came between holds the input only until then."""
    server = full_server()
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/a", receipt="1")
    session = server.connection(client.conn)
    assert isinstance(session, StompConnection) and session.session is not None
    session.session.unblocked("/queue/a".removeprefix("/queue/"))
    session.feed(server.now, frame("SEND", {"destination": "/queue/a"}, b"2"))
    session.feed(server.now, frame("DISCONNECT", {"receipt": "3"}))
    assert emptied(server, "a") == ["1", "2"]
    assert receipts(client) == ["1", "3"]


# -- limits ---------------------------------------------------------------------------------------
def test_one_connection_has_a_bounded_number_of_messages_waiting() -> None:
    server = full_server()
    client = server.stomp_client()
    for number in range(4):
        client.send("SEND", f"{number}" + "y" * 600_000, destination="/queue/a", receipt=str(number))
    client.send("SEND", b"b", destination="/queue/b", receipt="b")
    assert receipts(client) == []
    assert emptied(server, "a") == ["0", "1", "2", "3"]
    assert receipts(client) == ["0", "1", "2", "b", "3"]


def test_small_messages_are_bounded_too() -> None:
    server = full_server()
    client = server.stomp_client()
    for number in range(1_100):
        client.send("SEND", destination="/queue/a", receipt=str(number))
    session = server.connection(client.conn)
    assert isinstance(session, StompConnection) and session.session is not None
    assert sum(len(lane) for lane in session.session.waiting.lanes.values()) <= 1_024
    found: list[str] = []
    for _ in range(300):
        emptied(server, "a")
        found += receipts(client)
        if len(found) == 1_100:
            break
    assert found == [str(number) for number in range(1_100)]


def test_what_waits_counts_for_the_share_of_its_user() -> None:
    server = full_server()
    server.host.unfinished.user_bytes_max = 100_000
    client = server.stomp_client()
    client.send("SEND", b"z" * 200_000, destination="/queue/a", receipt="mine")
    answer = client.one()
    assert answer.command == "ERROR" and "cannot wait for room" in answer["message"]
    assert answer["receipt-id"] == "mine"
    assert not server.host.unfinished.users


def test_nothing_follows_a_message_that_is_refused_while_it_waits() -> None:
    """A transaction is not committed without it."""
    server = full_server()
    client = server.stomp_client()
    client.send("BEGIN", transaction="t")
    client.send("SEND", b"1", destination="/queue/b", receipt="1", transaction="t")
    client.send("SEND", b"2", destination="/queue/a", receipt="2", transaction="t")
    client.send("COMMIT", transaction="t", receipt="3")
    assert receipts(client) == ["1"]
    server.security.add_rule("a", {"consume": ["admin"], "send": ["nobody"]})
    assert emptied(server, "a") == []
    refused = client.one()
    assert refused.command == "ERROR" and refused["receipt-id"] == "2"
    assert server.broker.queues["b"].message_count == 0


# -- blocked-send-timeout ---------------------------------------------------------------------------
def passes(server: StompServer, seconds: float) -> None:
    server.now += int(seconds * 1_000_000_000)
    server.broker.set_now(server.now)
    if server.timers.due.get(SENDERS_TIMER, server.now + 1) <= server.now:
        server.timers.cancel(SENDERS_TIMER)
        server.broker.on_timer(server.now, SENDERS_TIMER)
    server.settle()


def test_a_send_with_a_receipt_is_refused_after_the_time() -> None:
    server = full_server(wait_ms=10_000)
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/a", receipt="1")
    passes(server, 9.9)
    assert client.frames() == []
    passes(server, 0.2)
    answer = client.one()
    assert answer.command == "ERROR" and answer["receipt-id"] == "1" and "is full" in answer["message"]
    assert emptied(server, "a") == []


def test_a_send_without_a_receipt_is_refused_after_the_time() -> None:
    server = full_server(wait_ms=10_000)
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/a")
    passes(server, 9.9)
    assert client.frames() == []
    passes(server, 0.2)
    answer = client.one()
    assert answer.command == "ERROR" and "is full" in answer["message"]
    assert emptied(server, "a") == []


def test_a_send_that_gets_room_in_time_is_stored() -> None:
    server = full_server(wait_ms=10_000)
    client = server.stomp_client()
    client.send("SEND", b"1", destination="/queue/a", receipt="1")
    passes(server, 9.9)
    assert emptied(server, "a") == ["1"]
    passes(server, 20)
    assert receipts(client) == ["1"]


def test_large_commits_that_wait_for_room_go_one_after_the_other() -> None:
    """A commit of many bytes goes in steps: what stands behind it in the same turn has to wait for its end."""
    server = full_server()
    client = server.stomp_client()
    count = 300  # messages of 90,000 bytes: more than the work of one step
    for name in ("1", "2"):
        client.receipt("BEGIN", transaction=name)
        for number in range(count):
            body = f"{name}-{number} " + "x" * 90_000
            client.send("SEND", body, destination="/queue/orders", transaction=name, persistent="true")
        client.send("SEND", name, destination="/queue/a", transaction=name, receipt=f"s{name}")
        client.send("COMMIT", transaction=name, receipt=f"c{name}")
    client.send("SEND", "3", destination="/queue/a", receipt="s3")
    assert receipts(client) == []
    assert emptied(server, "a") == ["1", "2", "3"]
    assert receipts(client) == ["s1", "c1", "s2", "c2", "s3"]
    found = [reference.message.text() or "" for reference in server.broker.queues["orders"].live()]
    assert [text.split()[0] for text in found] == [f"{name}-{n}" for name in "12" for n in range(count)]


def test_messages_with_large_heads_are_bounded_too() -> None:
    server = full_server()
    client = server.stomp_client()
    for number in range(100):
        client.send("SEND", destination="/queue/a", receipt=str(number), more="h" * 60_000)
    session = server.connection(client.conn)
    assert isinstance(session, StompConnection) and session.session is not None
    assert sum(len(lane) for lane in session.session.waiting.lanes.values()) < 20


def test_many_receipts_that_wait_for_room_do_not_stop_what_empties_the_queue() -> None:
    server = full_server()
    client = server.stomp_client()
    client.receipt("SUBSCRIBE", destination="/queue/a", id="s", ack="client-individual", consumer_window_size="0")
    for number in range(950):
        client.send("SEND", destination="/queue/a", receipt=str(number))
    for number in range(60):
        client.send("SEND", destination="/queue/b", receipt=f"b{number}", persistent="true")
    found = 0
    idle = 0
    while idle < 5:
        messages = [each for each in client.frames() if each.command == "MESSAGE"]
        idle = 0 if messages else idle + 1
        for each in messages:
            client.send("ACK", id=each["ack"], receipt="a")
        found += len(messages)
    assert found > 950
