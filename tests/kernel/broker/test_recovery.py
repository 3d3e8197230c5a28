"""Sequences, binding ids and the age of duplicate ids are right after a crash."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.journal import records
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.message.encoding.buffer import DecodeError
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, consume, endpoint


def test_a_sequence_acknowledged_through_is_never_given_to_a_new_message(bench: Bench) -> None:
    """The same holds for the sequence of a message that was non-durable before the first lease."""
    bench.queue("archive", "flights", 0)
    session = bench.session()
    session.send(bench.now, bench.message("flights", b"1"), 1)
    session.send(bench.now, bench.message("flights", b"2", durable=False), 2)
    session.send(bench.now, bench.message("flights", b"3", durable=False), 3)
    bench.settle()
    answers = RecordingEndpoint()
    held = bench.broker.log_views.lease(bench.now, "archive", "g", "me", 60 * SECOND, 0, answers, 1)
    bench.settle()  # the first lease makes all messages durable
    end = bench.broker.log_views.plan("archive", "", 0, -1, -1)[0]
    bench.broker.log_views.ack_through("archive", "", "g", held.epoch, end, answers, 2)
    bench.settle()
    bench.restart()
    after = bench.session()
    after.send(bench.now, bench.message("flights", b"4"), 4)
    after.send(bench.now, bench.message("flights", b"5"), 5)
    bench.settle()
    chunk = bench.broker.log_views.read("archive", "", end, end + 100, 0, None)
    assert [found.message.body for found in chunk.references] == [b"4", b"5"]
    bench.restart()
    assert bench.broker.queues["archive"].message_count == 2


def test_only_durable_sequences_are_shown_as_the_end_of_a_log(bench: Bench) -> None:
    """A planned end is kept by the reader: after a crash it must not cover other messages."""
    bench.queue("archive", "flights", 0)
    session = bench.session()
    session.send(bench.now, bench.message("flights", b"1"), 1)
    session.send(bench.now, bench.message("flights", b"2", durable=False), 2)
    bench.settle()
    assert bench.broker.log_views.plan("archive", "", 0, -1, -1)[0] == 1
    assert bench.broker.log_views.position("archive").last == 1


def test_binding_ids_of_temporary_queues_are_not_used_again_after_a_crash(bench: Bench) -> None:
    """A peer may still hold messages for a binding id of before (`_AMQ_ROUTE_TO`)."""
    old = bench.queue("temporary", "a", 0, durable=False).id
    bench.settle()
    bench.restart()
    assert bench.queue("another", "b", 0, durable=False).id != old


def test_the_newest_duplicate_ids_are_known_after_compaction_and_a_crash() -> None:
    config = BrokerConfig(id_cache_size=10)
    bench = Bench(config)
    bench.queue("in")
    session = bench.session()
    for number in range(10):
        session.send(bench.now, bench.message("in", b"", _AMQ_DUPL_ID=f"d{number}"), number)
    bench.settle()
    half = bench.journal.last - 5
    bench.compact(half)
    for number in range(10, 15):
        session.send(bench.now, bench.message("in", b"", _AMQ_DUPL_ID=f"d{number}"), number)
    bench.settle()
    bench.restart()
    after = bench.session()
    count = bench.broker.queues["in"].message_count
    for number in range(5, 15):
        after.send(bench.now, bench.message("in", b"", _AMQ_DUPL_ID=f"d{number}"), number)
    bench.settle()
    assert bench.broker.queues["in"].message_count == count


def test_no_duplicate_ids_are_kept_where_the_cache_has_no_size(bench: Bench) -> None:
    bench.settings.add("free", {"id_cache_size": 0})
    bench.settings.add("short", {"id_cache_size": 1})
    bench.queue("free")
    bench.queue("short")
    session = bench.session()
    for address in ("free", "short"):
        for name in ("a", "a", "b", "a"):
            session.send(bench.now, bench.message(address, b"", _AMQ_DUPL_ID=name), 1)
    bench.settle()
    assert bench.broker.queues["free"].message_count == 4
    assert bench.broker.queues["short"].message_count == 3
    bench.restart()
    assert bench.broker.caches.count() == 1


def test_a_lease_cannot_be_renewed_past_consumers_that_came_meanwhile() -> None:
    import pytest

    from atalanta.kernel.errors import FENCED, BrokerError

    bench = Bench()
    bench.queue("archive", "flights", 0)
    answers = RecordingEndpoint()
    held = bench.broker.log_views.lease(bench.now, "archive", "g", "me", SECOND, 0, answers, 1)
    bench.settle()
    bench.now += 2 * SECOND
    bench.broker.log_views.end_leases(bench.now)
    session = bench.session()
    consume(session, bench, "archive")
    with pytest.raises(BrokerError) as refused:
        bench.broker.log_views.lease(bench.now, "archive", "g", "me", SECOND, held.epoch, answers, 2)
    assert refused.value.code == FENCED
    assert endpoint(session).errors == []


def test_a_record_that_cannot_be_taken_is_named_with_its_place(bench: Bench) -> None:
    """A filter that this version cannot read; batches within batches, which nobody writes."""
    bench.queue("work", filter_text="a = 1")
    (payload,) = [one for _, kind, one in bench.journal.records if kind == records.QUEUE]
    wrong = payload.replace("a = 1".encode("utf-16-le"), "a = =".encode("utf-16-le"))
    nested = b""
    for _ in range(5_000):
        nested = b"\0\0\0\1" + bytes([records.BATCH]) + len(nested).to_bytes(4, "big") + nested
    for kind, damaged in ((records.QUEUE, wrong), (records.BATCH, nested)):
        with pytest.raises(DecodeError, match=f"record 7 of kind {kind}: "):
            Recovery(Bench().broker).on_record(7, kind, damaged)


def test_a_name_that_another_queue_took_is_not_lost_with_the_one_before(bench: Bench) -> None:
    bench.queue("work")
    (payload,) = [one for _, kind, one in bench.journal.records if kind == records.QUEUE]
    old, new = (number.to_bytes(8, "big") for number in (7, 8))
    again = Bench()
    recovery = Recovery(again.broker)
    recovery.on_record(1, records.QUEUE, old + payload[8:])
    recovery.on_record(2, records.QUEUE, new + payload[8:])
    recovery.on_record(3, records.QUEUE_DELETED, old)
    assert again.broker.queues["work"].id == 8
    recovery.on_record(4, records.QUEUE_DELETED, new)
    assert again.broker.queues == {}
