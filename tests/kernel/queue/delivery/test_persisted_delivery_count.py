"""persist-delivery-count-before-delivery: nobody is handed what the journal does not know to be delivered."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench, consume, endpoint
from tests.kernel.memory.large_rig import LargeBench, fill


def bench_with(on: bool = True, attributes: dict[str, object] | None = None) -> Bench:
    config = BrokerConfig()
    config.persist_delivery_count_before_delivery = on
    bench = Bench(config, AddressSettingsRepository(), paging=True)
    bench.queue("orders", **(attributes or {}))  # type: ignore[arg-type]
    bench.settle()
    return bench


def send(bench: Bench, *numbers: int, durable: bool = True) -> None:
    session = bench.session()
    for number in numbers:
        session.send(bench.now, bench.message("orders", bytes([number]), durable), number)
    bench.settle()


def reader(bench: Bench, credits: int = -1, transacted: bool = False) -> Session:
    session = bench.session(transacted)
    consume(session, bench, "orders", credits=credits)
    return session


def counts(session: Session) -> list[tuple[int, int]]:
    """(message, delivery count) as delivered."""
    return [(body[0], count) for _, count, body in endpoint(session).delivered]


@pytest.mark.parametrize(("on", "count"), [(True, 2), (False, 1)])
def test_a_crash_while_a_message_is_out_counts_as_a_delivery(on: bool, count: int) -> None:
    bench = bench_with(on)
    send(bench, 1)
    first = reader(bench)
    bench.settle()
    assert counts(first) == [(1, 1)]
    bench.restart()
    bench.settle()
    again = reader(bench)
    bench.settle()
    assert counts(again) == [(1, count)]
    bench.restart()
    third = reader(bench)
    bench.settle()
    assert counts(third) == [(1, 2 * count - 1)]


def test_nothing_goes_out_before_its_count_is_on_disk() -> None:
    bench = bench_with()
    send(bench, 1, 2, 3)
    session = reader(bench)
    session.drain(bench.now, 0, 7)
    bench.broker.flush(bench.now)
    queue = bench.broker.queues["orders"]
    assert counts(session) == [] and queue.delivering_count == 3
    assert endpoint(session).drained_tokens == []
    bench.settle()
    assert counts(session) == [(1, 1), (2, 1), (3, 1)]
    assert endpoint(session).drained_tokens == [7]  # behind them
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[2], False, 0)
    bench.settle()
    assert queue.message_count == queue.delivering_count == 0
    assert not bench.broker.dispatcher.counts[queue.id].waiting
    invariants.validate(bench.broker)


def test_credits_are_those_of_what_goes_out() -> None:
    bench = bench_with()
    send(bench, *range(20))
    session = reader(bench, credits=0)
    for expected in range(1, 8):
        session.add_credits(0, 1 - session.consumers[0].credits)  # enough for one
        bench.settle()
        assert [number for number, _ in counts(session)] == list(range(expected))
    plain = bench_with(False)
    send(plain, *range(20))
    other = reader(plain, credits=2_000)
    bounded = bench_with()
    send(bounded, *range(20))
    same = reader(bounded, credits=2_000)
    for settling in (plain, bounded):
        settling.settle()
    assert counts(same) == counts(other)
    assert same.consumers[0].credits == other.consumers[0].credits


def test_those_that_are_not_durable_keep_their_place() -> None:
    bench = bench_with()
    send(bench, 1)
    send(bench, 2, durable=False)
    send(bench, 3)
    session = reader(bench)
    bench.broker.flush(bench.now)
    assert counts(session) == []
    bench.settle()
    assert counts(session) == [(1, 1), (2, 1), (3, 1)]


def test_what_was_chosen_and_given_back_meanwhile_goes_out_once() -> None:
    bench = bench_with()
    send(bench, 1, 2)
    session = reader(bench, transacted=True)
    bench.broker.flush(bench.now)
    session.rollback(bench.now, False, 0)  # before anything went out
    bench.settle()
    assert counts(session) == [(1, 1), (2, 1)]
    session.close_consumer(bench.now, 0)
    bench.settle()
    bench.restart()
    after = reader(bench)
    bench.settle()
    assert counts(after) == [(1, 1), (2, 1)]  # prefetched, given back unread: not counted


def test_a_consumer_that_leaves_before_it_went_out_gets_nothing() -> None:
    bench = bench_with()
    send(bench, 1, 2)
    leaving = reader(bench)
    bench.broker.flush(bench.now)
    leaving.close(bench.now, True)
    other = reader(bench)
    bench.settle()
    assert counts(leaving) == []
    # The connection was lost: as with Artemis nobody knows that they never went out.
    assert counts(other) == [(1, 2), (2, 2)]
    invariants.validate(bench.broker)


def test_a_blocked_connection_gets_them_later_and_in_order() -> None:
    bench = bench_with()
    send(bench, 1, 2)
    session = reader(bench)
    bench.broker.flush(bench.now)
    session.set_blocked(True)
    bench.settle()
    assert counts(session) == []
    send(bench, 3)
    session.set_blocked(False)
    bench.settle()
    assert counts(session) == [(1, 1), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    "attributes",
    [{"exclusive": True}, {"last_value_key": "k"}, {"ring_size": 5}, {"group_first_key": "first"}],
)
def test_special_queues_do_it_too(attributes: dict[str, object]) -> None:
    bench = bench_with(attributes=attributes)
    send(bench, 1, 2, 3)
    session = reader(bench)
    bench.broker.flush(bench.now)
    assert counts(session) == []
    bench.settle()
    assert counts(session) == [(1, 1), (2, 1), (3, 1)]
    bench.restart()
    again = reader(bench)
    bench.settle()
    assert counts(again) == [(1, 2), (2, 2), (3, 2)]


def test_what_comes_from_page_files_and_large_messages_are_counted_too() -> None:
    bench = LargeBench({"max_size_bytes": 40_000, "page_size_bytes": 16_000})
    bench.config.persist_delivery_count_before_delivery = True
    bench.queue("counted")
    bench.settle()
    for _ in range(60):
        bench.publish("counted", head=1_000)
        bench.settle()
    assert bench.pages is not None and bench.pages.files
    fill(bench, 1)
    for count in (1, 2):
        session = bench.session()
        consume(session, bench, "counted")
        bench.settle()
        seen = endpoint(session)
        assert [each for _, each, _ in seen.delivered] == [count] * 60
        bench.power_cut()
    assert bench.broker.queues["counted"].message_count == 60


def test_compaction_keeps_the_counts() -> None:
    bench = bench_with()
    send(bench, 1, 2)
    reader(bench)
    bench.settle()
    bench.compact(bench.journal.last)
    bench.restart()
    session = reader(bench)
    bench.settle()
    assert counts(session) == [(1, 2), (2, 2)]


def test_who_is_stopped_holds_up_nobody_else() -> None:
    """Messages on their way to one consumer wait for that one only, also if they are not durable."""
    bench = bench_with()
    stopped, other = reader(bench), reader(bench)
    send_later = bench.session()
    for number in range(6):
        message = bench.message("orders", bytes([number]), number < 4)
        send_later.send(bench.now, message, number)
    bench.journal.durable = bench.journal.last
    bench.broker.on_durable(bench.now, bench.journal.last)
    bench.broker.flush(bench.now)  # all are chosen, in turn, and the first four wait for their counts
    assert counts(stopped) == counts(other) == []
    stopped.stop()
    bench.settle()
    assert [number for number, _ in counts(other)] == [1, 3, 5]
    assert counts(stopped) == []
    stopped.start()
    bench.broker.dispatches.mark_dirty(bench.broker.queues["orders"])
    bench.settle()
    assert [number for number, _ in counts(stopped)] == [0, 2, 4]
    invariants.validate(bench.broker)
