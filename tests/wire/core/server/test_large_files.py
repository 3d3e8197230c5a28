"""The end of the files of large messages: acknowledgements, deletions, transactions, dead letters; power cuts."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.memory.large_body import OPEN_TIMER
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.core.packets.consumer import FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.logview import (
    LogLease,
)
from atalanta.wire.core.packets.queue import DeleteQueue
from atalanta.wire.core.packets.transaction import Commit, Rollback
from tests.wire.core.server.large_rig import (
    BODY,
    PIECE,
    Reader,
    acknowledge,
    acknowledged_in_memory,
    files,
    restart,
    send_large,
    told,
    whole_at,
    with_message,
)
from tests.wire.core.server.server_rig import Server


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
