"""Messages that the reader of a leased queue cannot convert go to the dead-letter address, once."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import FENCED, ILLEGAL_STATE, BrokerError
from atalanta.kernel.log.log_dead_letters import LogDeadLetters
from atalanta.kernel.queue.paging.iteration import everything
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint
from tests.kernel.queue.paging.paging_rig import SMALL, bench_with, held, numbers_of, send

TTL = 60 * SECOND


def prepared(target: str | None = "dead", paged: bool = False) -> tuple[Bench, int]:
    """A leased queue "orders" with messages 0 to 4 (paged: to 299), the queue "dead", and the epoch."""
    bench = bench_with(SMALL if paged else {})
    if target is not None:
        bench.settings.add("orders", {"dead_letter_address": target, **(SMALL if paged else {})})
    bench.queue("dead")
    send(bench, range(300 if paged else 5))
    return bench, lease(bench)


def lease(bench: Bench) -> int:
    views = bench.broker.log_views
    epoch = views.lease(bench.now, "orders", "g", "me", TTL, 0, RecordingEndpoint(), 1).epoch
    bench.settle()
    return epoch


def dead_letters(bench: Bench) -> LogDeadLetters:
    return LogDeadLetters(bench.broker.log_views, bench.broker.dead_letters)


def move(bench: Bench, epoch: int, sequence: int) -> list[int]:
    """Returns the answers before and after the move is durable."""
    endpoint = RecordingEndpoint()
    dead_letters(bench).move(
        bench.now, "orders", "", "g", epoch, sequence, "not a text", endpoint, 7
    )
    before = len(endpoint.answers)
    bench.settle()
    return [before, len(endpoint.answers)]


def rows(bench: Bench) -> list[int]:
    views = bench.broker.log_views
    position = views.position("orders")
    start = position.first - 1
    found: list[bytes] = []
    while start < position.last:
        chunk = views.read("orders", "", start, position.last, 0, None)
        found.extend(each.message.body for each in chunk.references)
        start = chunk.next
    return numbers_of(found)


def test_a_message_is_moved_once_with_its_origin_and_the_reason() -> None:
    bench, epoch = prepared()
    original = bench.broker.log_views.message_at("orders", "", 3).message.id
    assert move(bench, epoch, 3) == [0, 1]
    assert move(bench, epoch, 3) == [1, 1]
    for _ in range(2):
        assert rows(bench) == [0, 1, 3, 4] and held(bench, "dead") == [2]
        (dead,) = everything(bench.broker.queues["dead"])
        found = {name: dead.message.property_value(name) for name in (
            "_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE", "_AMQ_ORIG_MESSAGE_ID", "_AMQ_ORIG_REASON",
        )}  # fmt: skip
        assert list(found.values()) == ["orders", "orders", original, "not a text"]
        assert bench.broker.log_views.lost_ranges("orders", "", 0, 5) == []
        invariants.validate(bench.broker)
        bench.restart()
    views = bench.broker.log_views
    assert views.ack_through("orders", "", "g", epoch, 5, RecordingEndpoint(), 1) == 4
    bench.settle()
    assert held(bench) == [] and held(bench, "dead") == [2]


def test_a_crash_before_the_move_is_durable_leaves_the_message_in_its_queue() -> None:
    bench, epoch = prepared()
    endpoint = RecordingEndpoint()
    dead_letters(bench).move(
        bench.now, "orders", "", "g", epoch, 3, "why", endpoint, 7
    )
    bench.restart()
    assert rows(bench) == [0, 1, 2, 3, 4] and held(bench, "dead") == []


def test_a_message_that_was_sent_as_non_durable_is_a_durable_dead_letter() -> None:
    bench, epoch = prepared()
    send(bench, range(5, 6), durable=False)
    move(bench, epoch, 6)
    bench.restart()
    assert held(bench, "dead") == [5]


@pytest.mark.parametrize("compact", [False, True])
def test_messages_in_page_files_are_moved(compact: bool) -> None:
    bench, epoch = prepared(paged=True)
    assert bench.broker.queues["orders"].paged is not None
    sequences = [1, 2, 150, 151, 152, 200, 299, 300]
    for sequence in sequences:
        move(bench, epoch, sequence)
        move(bench, epoch, sequence)
        invariants.validate(bench.broker)
    left = [number for number in range(300) if number + 1 not in sequences]
    assert rows(bench) == left
    if compact:
        bench.compact(bench.journal.last)
    bench.restart()
    assert rows(bench) == held(bench) == left
    assert held(bench, "dead") == [sequence - 1 for sequence in sequences]
    invariants.validate(bench.broker)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (None, "queue orders has no dead-letter address: set dead-letter-address for orders"),
        ("nowhere", "no queue takes dead letters of orders: create one at address nowhere"),
        ("orders", "dead-letter address orders of orders leads back to it"),
    ],
)
def test_without_a_queue_for_dead_letters_the_message_stays(target: str | None, why: str) -> None:
    bench, epoch = prepared(target)
    with pytest.raises(BrokerError, match=why) as refused:
        move(bench, epoch, 3)
    assert refused.value.code == ILLEGAL_STATE
    bench.settle()
    assert rows(bench) == [0, 1, 2, 3, 4]
    invariants.validate(bench.broker)


def test_an_older_epoch_and_an_unknown_sequence_are_refused() -> None:
    bench, epoch = prepared()
    lease(bench)
    with pytest.raises(BrokerError) as refused:
        move(bench, epoch, 3)
    assert refused.value.code == FENCED
    with pytest.raises(BrokerError, match="ends at 5"):
        move(bench, epoch + 1, 6)
    assert rows(bench) == [0, 1, 2, 3, 4]
