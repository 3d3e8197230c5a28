"""Large messages on one node: in files, as safe as others, and no file left behind."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import ADDRESS_FULL, ILLEGAL_STATE, RANGE_LOST, SECURITY
from atalanta.kernel.memory.large_body import OPEN_TIMER, next_crc
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.message import BYTES, Message
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import ConsumerClose, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.log_chunk import LogReadResponse, decode_entries
from atalanta.wire.core.packets.logview import (
    LogBody,
    LogBodyResponse,
    LogLease,
    LogRead,
    LogReadLargeResponse,
)
from atalanta.wire.core.packets.message import SendContinuation, SendMessage
from atalanta.wire.core.packets.queue import DeleteQueue
from atalanta.wire.core.packets.transaction import Commit, Rollback
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.large_rig import PIECE, Reader, begin, body_of, files, send_large
from tests.wire.core.server.management_rig import attribute_of, operator_of
from tests.wire.core.server.server_rig import Client, Server, text_message

BODY = body_of(3 * PIECE + 77)


def answered(client: Client) -> list[int]:
    return [packet.correlation for packet in client.packets(NullResponse)]


def acknowledge(server: Server, client: Client, message_id: int, consumer: int = 0) -> None:
    client.send(IndividualAcknowledge(consumer, message_id, False))
    server.settle()
    validate(server.broker)


def with_message(durable: bool = True) -> tuple[Server, Client]:
    server = Server()
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY, durable)
    server.settle()
    client.receive()
    return server, client


def told(server: Server, name: str) -> list[dict[str, object]]:
    return [fields for event, fields in server.trace.events if event == name]


def acknowledged_in_memory(server: Server, client: Client) -> None:
    """By a consumer there; the acknowledgement is not durable yet."""
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    client.send(IndividualAcknowledge(0, reader.look()[0].id, False))
    server.turn()
    server.work_files(3)


def whole_at(server: Server, client: Client) -> None:
    """A consumer there gets it, and nothing else."""
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]


# -- coming in ----------------------------------------------------------------------------------
def test_a_sender_is_answered_when_file_and_record_are_safe(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    correlation = send_large(client, "orders", BODY)
    records = len(server.journal.records)
    server.work_files(5)  # created and written, not synced
    assert answered(client) == [] and len(server.journal.records) == records
    server.work_files(1)
    assert answered(client) == [] and len(server.journal.records) == records + 1
    server.settle()
    assert answered(client) == [correlation]
    assert max(len(payload) for _, _, payload in server.journal.records) < 1_000


def test_what_is_sent_behind_a_large_message_comes_behind_it(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY)
    client.publish("orders", "small", wait=False)
    send_large(client, "orders", b"x" * 10)
    client.publish("orders", "last", wait=False)
    server.settle()
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY, b"small", b"x" * 10, b"last"]


def test_a_sender_faster_than_the_disk_is_not_listened_to(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    begin(client, "orders")
    for _ in range(30):
        client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    connection = server.core(client.conn)
    (body,) = server.broker.large.bodies.values()
    assert connection.holds == 1 and body.size <= 12 * PIECE
    server.now += 3_600 * SECOND
    server.check_alive()
    assert client.closed is None, "its pings are not read either"
    server.settle()
    assert connection.holds == 0 and body.size == 30 * PIECE


@pytest.mark.parametrize("durable", [True, False])
def test_a_sender_that_vanishes_in_the_middle_leaves_no_file(server: Server, durable: bool) -> None:
    client = server.login()
    client.create_queue("orders")
    begin(client, "orders", durable)
    for _ in range(20):
        client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.lost(client.conn)
    server.settle()
    assert files(server) == 0 and server.broker.large.bodies == {}
    assert server.broker.large.unwritten == 0


def test_a_message_that_is_begun_anew_replaces_the_unfinished_one(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    begin(client, "orders")
    client.send(SendContinuation(b"given up", continues=True, sender_id=0))
    send_large(client, "orders", b"whole")
    server.settle()
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [b"whole"] and files(server) == 1


def test_a_full_disk_refuses_the_message_and_nothing_else(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    server.large.full_at = PIECE
    correlation = send_large(client, "orders", BODY)
    small = client.publish("orders", "small")
    server.settle()
    found = [packet for _, packet in client.receive()]
    refused = [packet for packet in found if isinstance(packet, ExceptionResponse)]
    assert [(packet.correlation, packet.code) for packet in refused] == [
        (correlation, ILLEGAL_STATE)
    ]
    assert "no space left" in (refused[0].message or "")
    assert [p.correlation for p in found if isinstance(p, NullResponse)] == [small]
    assert files(server) == 0 and server.broker.queues["orders"].message_count == 1
    assert told(server, "large_message_write_failed")


@pytest.mark.parametrize("address", ["orders", "an address to come"])
def test_an_unfinished_message_does_not_fill_the_disk_past_its_limit(server: Server, address: str) -> None:
    """max-disk-usage: what an honest client has in hand is taken, what follows is not, and the file goes at once."""
    client = server.login()
    client.create_queue("orders")
    begin(client, address)
    client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.settle()
    server.broker.memory.set_disk_full(True)
    for _ in range(9):
        client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
        server.settle()
    assert not client.closed and files(server) == 1
    for _ in range(10):
        if not client.closed:
            client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
        server.settle()
    assert "without credits" in str(client.closed)
    (error,) = client.packets(ExceptionResponse)
    assert error.code == ADDRESS_FULL and "without credits" in (error.message or "")
    assert files(server) == 0 and server.broker.large.bodies == {}


@pytest.mark.parametrize("finished", [False, True])
def test_a_message_that_does_not_fit_leaves_its_room_at_once(server: Server, finished: bool) -> None:
    client = server.login()
    client.create_queue("orders")
    server.large.full_at = PIECE
    if finished:
        send_large(client, "orders", BODY)
    else:
        begin(client, "orders")
        for _ in range(3):
            client.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.settle()
    assert files(server) == 0 and server.broker.large.bodies == {}
    assert client.closed is None and server.broker.large.unwritten == 0


def test_a_sender_that_ignores_credits_loses_its_connection_only() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"address_full_policy": "BLOCK", "max_size_bytes": 1 << 20})
    server = Server(settings=settings)
    greedy = server.login()
    greedy.create_queue("orders")
    other = server.login()
    for _ in range(40):
        if greedy.closed is None:
            greedy.send(SendMessage(text_message("orders", "x" * 50_000, True, None), False, -1, 0))
        server.settle()
    assert greedy.closed is not None and "producerWindowSize" in greedy.closed
    assert server.broker.addresses["orders"].account.bytes < 3 << 20
    other.consume("orders")
    server.settle()
    assert other.bodies()[:1] == ["x" * 50_000] and other.closed is None


def test_who_may_not_send_gets_no_file(server: Server) -> None:
    server.login().create_queue("orders")
    guest = server.login("guest")
    begin(guest, "orders")
    guest.send(SendContinuation(bytes(PIECE), continues=True, sender_id=0))
    server.settle()
    assert files(server) == 0
    guest.send(
        SendContinuation(
            bytes(PIECE), continues=False, requires_response=True, correlation=-9, sender_id=0
        )
    )
    server.settle()
    refused = guest.packets(ExceptionResponse)
    assert [(packet.correlation, packet.code) for packet in refused] == [(-9, SECURITY)]


def test_a_message_nobody_takes_leaves_no_file(server: Server) -> None:
    client = server.login()
    client.create_queue("orders", filter="colour = 'blue'")
    send_large(client, "orders", BODY, colour="red")
    server.settle()
    assert files(server) == 0


def test_a_repeat_leaves_no_second_file(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY, _AMQ_DUPL_ID="one")
    send_large(client, "orders", BODY, _AMQ_DUPL_ID="one")
    server.settle()
    assert files(server) == 1 and len(answered(client)) == 2


# -- going out ----------------------------------------------------------------------------------
def test_credits_decide_how_much_of_it_is_sent() -> None:
    server, client = with_message()
    client.consume("orders", credits=None)
    reader = Reader(client)
    client.send(FlowToken(0, 10))
    server.settle()
    (got,) = reader.look()
    assert got.size == len(BODY) and got.body == b"", "the header used the credit up"
    client.send(FlowToken(0, PIECE + 500))
    server.settle()
    assert len(reader.look()[0].body) == 2 * PIECE, "the last piece may exceed it"
    client.publish("orders", "behind", wait=False)
    server.settle()
    client.send(FlowToken(0, 10 * PIECE))
    server.settle()
    assert reader.bodies() == [BODY, b"behind"]


def test_a_client_that_does_not_read_costs_two_pieces(server: Server) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", body_of(40 * PIECE))
    server.settle()
    slow = server.login()
    slow.consume("orders")
    server.core(slow.conn).on_blocked(server.now, True)
    server.settle()
    reader = Reader(slow)
    reader.look()
    assert sum(len(got.body) for got in reader.look()) <= 2 * PIECE
    server.core(slow.conn).on_blocked(server.now, False)
    server.settle()
    assert reader.bodies() == [body_of(40 * PIECE)]


def test_others_are_served_while_one_gets_a_large_message() -> None:
    server, client = with_message()
    client.consume("orders", 0, credits=None)
    client.send(FlowToken(0, 1))
    server.settle()
    client.receive()
    other = server.login()
    other.consume("orders")
    client.publish("orders", "a", wait=False)
    client.publish("orders", "b", wait=False)
    server.settle()
    assert other.bodies() == ["a", "b"]


def test_a_consumer_closed_in_the_middle_gives_it_back_whole() -> None:
    server, client = with_message()
    client.consume("orders", credits=None)
    client.send(FlowToken(0, PIECE))
    server.settle()
    client.receive()
    client.succeeds(ConsumerClose(0))
    client.consume("orders", 1)
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]
    validate(server.broker)


def test_a_browser_sees_it_and_the_message_stays() -> None:
    server, client = with_message()
    client.consume("orders", browse=True)
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]
    assert [each.delivery_count for each in reader.got] == [0]
    assert server.broker.queues["orders"].message_count == 1 and files(server) == 1


@pytest.mark.parametrize(("named", "shown"), [(5_000_000, 5_000_000), (-1, len(BODY))])
def test_the_size_before_a_compression_is_kept(server: Server, named: int, shown: int) -> None:
    """getBodySize of a Java client is the property; the broker's own figures are those of the file."""
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY, named_size=named)
    server.settle()
    reference = server.broker.queues["orders"].live()[0]
    assert reference.message.property_value("_AMQ_LARGE_SIZE") == shown
    operator = operator_of(server)
    for attribute in ("PersistentSize", "DurablePersistentSize"):
        assert attribute_of(operator, "queue.orders", attribute) == reference.size + len(BODY)


def test_a_deletion_in_the_middle_of_a_delivery_lets_the_delivery_end() -> None:
    server, client = with_message()
    browser = server.login()
    browser.consume("orders", credits=None, browse=True)
    browser.send(FlowToken(0, 1))
    server.settle()
    reader = Reader(browser)
    client.consume("orders")
    mine = Reader(client)
    server.settle()
    acknowledge(server, client, mine.look()[0].id)
    assert files(server) == 1, "the browser is not done with it"
    browser.send(FlowToken(0, -1))
    server.settle()
    assert reader.bodies() == [BODY] and files(server) == 0


def test_a_file_that_lost_its_end_costs_the_connection() -> None:
    server, client = with_message()
    (file,) = server.large.contents
    server.large.damage(file, PIECE)
    client.consume("orders")
    server.settle()
    assert "cannot be read" in (client.closed or "")
    (event,) = told(server, "large_message_damaged")
    assert (event["bytes"], event["bytes_found"]) == (len(BODY), PIECE)
    assert server.broker.queues["orders"].message_count == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_file_with_a_flipped_bit_is_not_delivered(restarted: bool) -> None:
    server, client = with_message()
    if restarted:
        client = restart(server)
    (file,) = server.large.contents
    server.large.contents[file][PIECE // 2] ^= 1
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert "cannot be read" in (client.closed or "")
    (event,) = told(server, "large_message_damaged")
    assert event["queues"] == "orders" and event["bytes_found"] == len(BODY)
    assert BODY not in reader.bodies()
    assert server.broker.queues["orders"].message_count == 1


def with_damaged_message(**settings: int | str) -> tuple[Server, Client]:
    """A damaged large message and a small one behind it in `orders`; `dead` is its dead-letter address."""
    found = AddressSettingsRepository()
    found.add("#", settings)
    server = Server(settings=found)
    client = server.login()
    client.create_queue("orders")
    client.create_queue("dead")
    send_large(client, "orders", BODY)
    server.settle()
    client.publish("orders", "behind", wait=False)
    server.settle()
    (file,) = server.large.contents
    server.large.contents[file][PIECE // 2] ^= 1
    return server, client


def taken(server: Server, queue: str) -> tuple[bool, list[bytes]]:
    """Whether a new consumer lost its connection, and what it got and acknowledged."""
    client = server.login()
    client.consume(queue)
    reader = Reader(client)
    server.settle()
    bodies = reader.bodies()
    if client.closed is None:
        for got in reader.got:
            acknowledge(server, client, got.id)
        server.lost(client.conn)
    else:
        assert "cannot be read" in client.closed
    return client.closed is not None, bodies


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("attempts", [10, -1])
def test_a_damaged_message_goes_to_the_dead_letter_address(attempts: int, restarted: bool) -> None:
    server, _ = with_damaged_message(dead_letter_address="dead", max_delivery_attempts=attempts)
    assert taken(server, "orders") == (True, [])
    assert server.broker.queues["dead"].message_count == 1
    if restarted:
        restart(server)
    assert taken(server, "orders") == (False, [b"behind"])
    assert taken(server, "dead") == (True, [])
    assert server.broker.queues["dead"].message_count == 1 and files(server) == 1
    validate(server.broker)


def test_a_damaged_message_without_dead_letter_address_lets_others_by_for_an_hour() -> None:
    server, _ = with_damaged_message(max_delivery_attempts=2)
    assert taken(server, "orders") == (True, [])
    assert taken(server, "orders") == (False, [b"behind"])
    assert server.broker.queues["orders"].message_count == 1
    server.now += 3_600 * SECOND
    server.broker.on_timer(server.now, "kernel.scheduled")
    server.settle()
    assert taken(server, "orders") == (True, [])
    server.settle()
    assert server.broker.queues["orders"].message_count == 0 and files(server) == 0
    assert [event["message"] for event in told(server, "large_message_damaged")] == [
        event["message"] for event in told(server, "message_dead_lettered") * 2
    ]


def test_a_browser_of_a_damaged_message_changes_nothing() -> None:
    server, client = with_damaged_message(dead_letter_address="dead")
    client.consume("orders", browse=True)
    server.settle()
    assert "cannot be read" in (client.closed or "")
    assert [server.broker.queues[name].message_count for name in ("orders", "dead")] == [2, 0]


def test_a_log_view_goes_on_behind_a_damaged_message() -> None:
    server, client = with_damaged_message()
    answer = client.call(LogRead(1, "orders", "", 0, 10, 0))
    assert isinstance(answer, LogReadLargeResponse) and answer.next == 1 and not answer.last
    damaged = b"".join(pieces_of(server, client, answer))
    assert damaged != BODY and len(damaged) == len(BODY) and next_crc(0, BODY) == answer.crc
    rest = client.call(LogRead(1, "orders", "", answer.next, 10, 0))
    assert isinstance(rest, LogReadResponse) and rest.count == 1 and rest.last
    (event,) = told(server, "large_message_damaged")
    assert event["queues"] == "orders" and event["message"] != -1
    assert event["bytes_found"] == len(BODY)


# -- the end of files ---------------------------------------------------------------------------
def test_the_file_goes_when_the_acknowledgement_is_durable() -> None:
    server, client = with_message()
    acknowledged_in_memory(server, client)
    assert files(server) == 1
    server.settle()
    assert files(server) == 0 and server.broker.large.bodies == {}


def test_subscribers_share_the_file(server: Server) -> None:
    client = server.login()
    for name in ("a", "b", "c"):
        client.create_queue(name, "news", 0)
    send_large(client, "news", BODY)
    server.settle()
    assert files(server) == 1
    reader = Reader(client)
    for consumer, name in enumerate(("a", "b", "c")):
        client.consume(name, consumer)
        server.settle()
        assert files(server) == 1
        acknowledge(server, client, reader.look()[-1].id, consumer)
    assert reader.bodies() == [BODY] * 3 and files(server) == 0


def test_a_deleted_queue_takes_its_files_along() -> None:
    server, client = with_message()
    client.succeeds(DeleteQueue("orders"))
    server.settle()
    assert files(server) == 0


@pytest.mark.parametrize("commit", [True, False])
def test_transactions(server: Server, commit: bool) -> None:
    client = server.login(transacted=True)
    client.create_queue("orders")
    send_large(client, "orders", BODY)
    server.settle()
    client.receive()
    server.broker.on_timer(server.now, OPEN_TIMER)
    server.settle()
    assert files(server) == 1 and server.broker.queues["orders"].message_count == 0
    client.succeeds(Commit(-70) if commit else Rollback(False))
    server.broker.on_timer(server.now, OPEN_TIMER)
    server.settle()
    assert files(server) == (1 if commit else 0)
    assert server.broker.queues["orders"].message_count == (1 if commit else 0)
    assert server.broker.large.open == {}


def test_a_rollback_delivers_it_again_from_its_beginning() -> None:
    server, client = with_message()
    taker = server.login(transacted=True)
    taker.consume("orders", credits=None)
    taker.send(FlowToken(0, PIECE))
    server.settle()
    taker.receive()
    taker.send(Rollback(False))
    taker.send(FlowToken(0, -1))
    reader = Reader(taker)
    server.settle()
    assert [(got.body, got.whole) for got in reader.look()][-1] == (BODY, True)


def test_a_dead_letter_shares_the_file() -> None:
    settings = AddressSettingsRepository()
    settings.add("orders", {"dead_letter_address": "dead", "max_delivery_attempts": 1})
    server = Server(settings=settings)
    client = server.login()
    client.create_queue("orders")
    client.create_queue("dead")
    send_large(client, "orders", BODY)
    server.settle()
    taker = server.login(transacted=True)
    taker.consume("orders")
    reader = Reader(taker)
    server.settle()
    taker.send(IndividualAcknowledge(0, reader.look()[0].id, False))
    taker.succeeds(Rollback(False))
    assert files(server) == 1 and server.broker.queues["dead"].message_count == 1
    server.restart()
    client = server.login()
    client.consume("dead")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]
    acknowledge(server, client, reader.look()[0].id)
    assert files(server) == 0


# -- restarts -----------------------------------------------------------------------------------
def restart(server: Server) -> Client:
    """A power cut, and a client of the new life."""
    server.file_jobs.clear()
    server.large.crash()
    server.restart()
    client = server.login()
    server.settle()
    return client


def test_a_confirmed_message_survives_power_cuts() -> None:
    server, client = with_message()
    restart(server)
    whole_at(server, restart(server))
    validate(server.broker)


@pytest.mark.parametrize("jobs", range(7))
def test_a_power_cut_at_any_moment_of_a_send_leaves_all_or_nothing(server: Server, jobs: int) -> None:
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY)
    server.work_files(jobs)
    client = restart(server)
    assert files(server) == 0 and server.broker.queues["orders"].message_count == 0
    assert told(server, "large_message_damaged") == []


def test_a_power_cut_before_the_acknowledgement_is_durable_keeps_the_file() -> None:
    server, client = with_message()
    acknowledged_in_memory(server, client)
    whole_at(server, restart(server))


def test_a_file_that_a_power_cut_brings_back_goes_at_the_start() -> None:
    server, client = with_message()
    kept = {file: bytes(data) for file, data in server.large.contents.items()}
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    acknowledge(server, client, reader.look()[0].id)
    server.large.contents = {file: bytearray(data) for file, data in kept.items()}
    restart(server)
    assert files(server) == 0
    assert told(server, "large_message_orphans_deleted") == [{"files": 1}]


@pytest.mark.parametrize("left", [0, PIECE, -1])
def test_a_message_whose_file_is_damaged_is_told_about_once_and_left_out(left: int) -> None:
    server, _ = with_message()
    (file,) = server.large.contents
    server.large.damage(file, left)
    restart(server)
    (event,) = told(server, "large_message_damaged")
    assert event["queues"] == "orders" and event["bytes"] == len(BODY)
    assert event["bytes_found"] == max(left, 0)
    assert server.broker.queues["orders"].message_count == 0 and files(server) == 0
    restart(server)
    assert len(told(server, "large_message_damaged")) == 1
    validate(server.broker)


def test_a_non_durable_message_does_not_outlive_the_node() -> None:
    server, _ = with_message(durable=False)
    assert files(server) == 1
    restart(server)
    assert files(server) == 0


@pytest.mark.parametrize("transacted", [False, True])
def test_a_non_durable_message_in_a_leased_queue_survives_power_cuts(transacted: bool) -> None:
    server = Server()
    client = server.login()
    client.create_queue("orders")
    sender = server.login(transacted=True) if transacted else client
    send_large(sender, "orders", BODY, durable=False)
    if transacted:
        server.settle()
    client.send(LogLease(1, "orders", "g", "me", 60_000, 0))
    server.settle()
    if transacted:
        sender.succeeds(Commit(-70))
    else:
        send_large(sender, "orders", BODY, durable=False)
    server.settle()
    for _ in range(2):
        restart(server)
        found = server.broker.log_views.read("orders", "", 0, 10, 1 << 30, None).references
        bodies = [server.large.contents[each.message.large.file] for each in found if each.message.large]
        assert bodies == [BODY] * (1 if transacted else 2)


def test_the_journal_moves_the_record_and_the_file_stays() -> None:
    server, client = with_message()
    server.compact(server.journal.last)
    server.journal.records = [r for r in server.journal.records if r[0] > 0]
    whole_at(server, restart(server))


# -- log view -----------------------------------------------------------------------------------
def test_a_log_view_reads_it_whole() -> None:
    server, client = with_message()
    client.publish("orders", "small", wait=False)
    server.settle()
    client.receive()
    answer = client.call(
        LogRead(correlation=1, queue="orders", incarnation="", start=0, end=10, max_bytes=0)
    )
    assert isinstance(answer, LogReadResponse)
    bodies = [entry.message.body for entry in decode_entries(answer)]
    assert bodies[0] == BODY and len(bodies) == 2


@pytest.mark.parametrize("size", [5 << 20, 500_000, 10])
def test_a_log_view_sends_no_bodies_if_it_is_asked_for_none(server: Server, size: int) -> None:
    client = server.login()
    client.create_queue("orders")
    body = body_of(size)
    send_large(client, "orders", body)
    message = Message.create("orders", body, BYTES, True, 1_000)
    message.put_property("colour", "blue")
    client.send(SendMessage(message, False, -1, 0))
    server.settle()
    client.receive()
    answer = client.call(LogRead(1, "orders", "", 0, 10, -1_000))
    assert isinstance(answer, LogReadResponse), answer
    assert (answer.count, answer.next, answer.last) == (2, 2, True) and len(answer.entries) < 1_000
    entries = decode_entries(answer)
    assert [(entry.sequence, entry.message.body) for entry in entries] == [(1, b""), (2, b"")]
    assert entries[1].message.properties.get("colour") == "blue"
    whole = client.call(LogRead(1, "orders", "", 1, 10, 1_000))
    if isinstance(whole, LogReadResponse):
        assert decode_entries(whole)[0].message.body == body
    else:
        assert isinstance(whole, LogReadLargeResponse) and whole.size == size


def test_a_reader_without_bodies_does_not_keep_the_node_from_other_work() -> None:
    """The bodies count against a limit of their own: the node reads them, from page files for instance."""
    server = Server()
    client = server.login()
    client.create_queue("orders")
    for _ in range(12):
        client.send(SendMessage(Message.create("orders", bytes(1 << 20), BYTES, True, 1_000), False, -1, 0))
        server.settle()
    client.receive()
    first = client.call(LogRead(1, "orders", "", 0, 12, -(2 << 20)))
    assert isinstance(first, LogReadResponse) and 4 < first.count < 8 and not first.last
    rest = client.call(LogRead(1, "orders", "", first.next, 12, -(2 << 20)))
    assert isinstance(rest, LogReadResponse) and first.count + rest.count == 12 and rest.last


def pieces_of(server: Server, client: Client, announced: LogReadLargeResponse) -> list[bytes]:
    """The pieces of the body of the only message, up to the end."""
    found: list[bytes] = []
    while (read := sum(map(len, found))) < announced.size:
        answer = client.call(LogBody(1, "orders", "", 1, read, 0))
        assert isinstance(answer, LogBodyResponse), answer
        found.append(answer.data)
        if not answer.data:
            break
    return found


@pytest.mark.parametrize("large", [False, True])
def test_a_log_view_hands_out_a_body_above_four_mebibytes_in_pieces(server: Server, large: bool) -> None:
    client = server.login()
    client.create_queue("orders")
    body = body_of(9 << 20)
    if large:
        send_large(client, "orders", body)
    else:
        message = Message.create("orders", body, BYTES, True, 1_000)
        client.send(SendMessage(message, False, -1, 0))
    client.publish("orders", "behind", wait=False)
    server.settle()
    client.receive()
    answer = client.call(LogRead(1, "orders", "", 0, 10, 0))
    assert isinstance(answer, LogReadLargeResponse), answer
    assert (answer.size, answer.next, answer.last) == (len(body), 1, False)
    pieces = pieces_of(server, client, answer)
    assert b"".join(pieces) == body and max(map(len, pieces)) <= 4 << 20
    rest = client.call(LogRead(1, "orders", "", answer.next, 10, 0))
    assert isinstance(rest, LogReadResponse) and rest.count == 1 and rest.last
    code, _ = client.fails(LogBody(1, "orders", "", 1, 10 << 20, 0))
    assert code == ILLEGAL_STATE
    code, _ = client.fails(LogBody(1, "orders", "", 7, 0, 0))
    assert code == RANGE_LOST


@pytest.mark.parametrize("large", [False, True])
def test_a_browser_of_a_session_that_acknowledges_at_delivery_takes_nothing(server: Server, large: bool) -> None:
    sender = server.login()
    sender.create_queue("orders")
    if large:
        send_large(sender, "orders", BODY)
    else:
        sender.send(SendMessage(text_message("orders", "small", True, None), False, -1, 0))
    server.settle()
    client = server.login(pre_acknowledge=True)
    client.consume("orders", browse=True)
    browser = Reader(client)
    server.settle()
    assert len(browser.bodies()) == 1
    assert server.broker.queues["orders"].message_count == 1
    taker = server.login(pre_acknowledge=True)
    taker.consume("orders")
    reader = Reader(taker)
    server.settle()
    assert len(reader.bodies()) == 1
    assert server.broker.queues["orders"].message_count == 0
