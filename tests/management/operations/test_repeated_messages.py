"""The end of repeated messages by an operator: at any period, in the middle of a repeat, after a restart, in pages."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.queue.delivery.scheduled_messages import SCHEDULED_TIMER
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.management.request.jobs import MANAGEMENT_TIMER
from atalanta.message.repetition import Repetition
from tests.kernel.broker_rig import SECOND
from tests.management.management_rig import REPLIES, Desk

MS = 1_000_000


def repeat(desk: Desk, queue: str, period_ms: int, times: int = -1, cron: str = "", n: int = 0) -> int:
    """Sends a message that comes again and again; returns its id."""
    message = desk.message(queue, b"again", n=n)
    repetition = Repetition(period_ms, times, cron)
    repetition.put(message, repetition.first_ms(desk.now // MS, 0))
    made = message.copy(0)
    desk.broker.publisher.publish(desk.now, made, None, 0)
    desk.settle()
    return made.id


def let_time_pass(desk: Desk, milliseconds: int) -> None:
    """The repeated messages come, as often as their timer fires; all of it is on disk."""
    for _ in range(milliseconds):
        desk.now += MS
        come(desk)
        desk.settle()


def come(desk: Desk) -> None:
    """The timer of the scheduled messages fires if it is due; what it appends is not on disk yet."""
    due = desk.timers.due.get(SCHEDULED_TIMER)
    if due is not None and due <= desk.now:
        del desk.timers.due[SCHEDULED_TIMER]
        desk.broker.on_timer(desk.now, SCHEDULED_TIMER)
    desk.broker.flush(desk.now)


def ask_while_they_come(desk: Desk, operation: str, *given: object, commits: int = 2, ms: int = 3) -> object:
    """The answer of an operation on the queue `work`. The messages come between its steps.

    Only each `commits`-th time the disk is done.
    """
    desk.put("queue.work", operation, *given)
    for step in range(1_000):
        desk.now += ms * MS
        come(desk)
        if step % commits == commits - 1:
            desk.settle()
        if desk.broker.queues[REPLIES].live():
            break
        due = desk.timers.due.pop(MANAGEMENT_TIMER, None)
        if due is not None:
            desk.management.on_timer(desk.now)
    return desk.answer()


def scheduled(desk: Desk) -> int:
    desk.settle()
    return desk.broker.queues["work"].scheduled_count


def is_over(desk: Desk) -> bool:
    """Whether nothing comes any more, not after a restart either."""
    for _ in range(2):
        before = desk.broker.queues["work"].message_count
        let_time_pass(desk, 30)
        desk.now += 120 * SECOND
        let_time_pass(desk, 2)
        if scheduled(desk) or desk.broker.queues["work"].message_count != before:
            return False
        validate(desk.broker)
        desk.restart()
        desk.open_desk()
        desk.broker.start_timers(desk.now)
    return True


@pytest.mark.parametrize("commits", [1, 2, 7])
@pytest.mark.parametrize("period_ms", [1, 2, 5, 10, 1_000])
def test_a_removal_ends_a_repetition_of_any_period(period_ms: int, commits: int) -> None:
    desk = Desk()
    desk.queue("work")
    repeat(desk, "work", period_ms)
    let_time_pass(desk, 3)
    assert scheduled(desk) == 1
    ask_while_they_come(desk, "removeAllMessages", commits=commits)
    assert is_over(desk)


@pytest.mark.parametrize("operation", ["removeMessages", "sendMessagesToDeadLetterAddress"])
def test_only_what_a_filter_takes_ends(operation: str) -> None:
    desk = Desk()
    desk.queue("work")
    repeat(desk, "work", 1, n=1)
    repeat(desk, "work", 1, n=2)
    let_time_pass(desk, 3)
    ask_while_they_come(desk, operation, "n = 1")
    assert scheduled(desk) == 1
    [left] = desk.broker.scheduled.of_queue(desk.broker.queues["work"])
    assert left[1].message.property_value("n") == 2
    ask_while_they_come(desk, operation, "n = 2")
    assert is_over(desk)


def test_the_id_of_the_first_message_names_the_repetition() -> None:
    desk = Desk()
    desk.queue("work")
    first = repeat(desk, "work", 1, n=1)
    repeat(desk, "work", 1, n=2)
    let_time_pass(desk, 5)
    listed = desk.ask("queue.work", "listScheduledMessages")
    assert isinstance(listed, list)
    assert [one["_AMQ_SCHED_JOB"] for one in listed if one["n"] == 1] == [first]
    assert ask_while_they_come(desk, "removeMessage", first) is True
    assert scheduled(desk) == 1
    assert ask_while_they_come(desk, "removeMessage", first) is False


def test_a_restart_keeps_the_repetition_removable_by_its_first_id() -> None:
    desk = Desk()
    desk.queue("work")
    first = repeat(desk, "work", 1_000)
    for _ in range(3):
        desk.now += SECOND
        come(desk)
        desk.settle()
    desk.restart()
    desk.open_desk()
    desk.broker.start_timers(desk.now)
    desk.now += SECOND
    let_time_pass(desk, 1)
    assert scheduled(desk) == 1
    desk.ask("queue.work", "deliverScheduledMessage", first)
    assert scheduled(desk) == 1
    assert ask_while_they_come(desk, "removeMessage", first) is True
    assert is_over(desk)


def test_a_repetition_in_the_middle_of_a_repeat_is_removed() -> None:
    desk = Desk()
    desk.queue("work")
    first = repeat(desk, "work", 1_000)
    desk.now += SECOND
    come(desk)
    assert desk.broker.queues["work"].scheduled_count == 0  # the message that follows is not on disk yet
    assert ask_while_they_come(desk, "removeMessage", first, commits=5) is True
    assert is_over(desk)


def test_series_of_cron_end_with_their_job() -> None:
    desk = Desk()
    desk.queue("work")
    first = repeat(desk, "work", 1_000, -1, "* * * * *")
    for _ in range(3 * 60):
        desk.now += SECOND
        come(desk)
        desk.settle()
    assert scheduled(desk) == 2, "one series at a time, and the time of the next one"
    assert desk.broker.queues["work"].message_count <= 3 * 60 + 2
    assert ask_while_they_come(desk, "removeMessage", first) is True
    assert is_over(desk)


def test_a_repetition_of_a_paged_queue_is_removed() -> None:
    settings = AddressSettingsRepository()
    settings.add("work", {"max_size_bytes": 4_000, "page_size_bytes": 2_000, "max_read_page_bytes": 1_000})
    desk = Desk(None, settings, paging=True)
    desk.queue("work")
    repeat(desk, "work", 100, n=1)
    desk.fill("work", 100, n=0)
    desk.fill("work", 100, n=1)
    assert desk.broker.queues["work"].paged is not None
    let_time_pass(desk, 101)
    ask_while_they_come(desk, "removeMessages", "n = 1", ms=40)
    assert scheduled(desk) == 0


def test_a_move_with_a_limit_takes_first_what_can_be_delivered() -> None:
    desk = Desk()
    desk.queue("work")
    desk.queue("other")
    repeat(desk, "work", 1_000)
    desk.fill("work", 3)
    assert desk.ask("queue.work", "moveMessages", 100, None, "other", False, 3) == 3
    assert desk.bodies("other") == [b"0", b"1", b"2"]
    assert desk.ask("queue.work", "moveMessages", None, "other") == 1
    assert desk.broker.queues["other"].scheduled_count == 1 and scheduled(desk) == 0


def test_a_copy_takes_each_repetition_once() -> None:
    desk = Desk()
    desk.queue("work")
    desk.queue("other")
    first = repeat(desk, "work", 1_000)
    desk.ask("queue.work", "copyMessage", first, "other")
    assert desk.broker.queues["other"].scheduled_count == 1 and scheduled(desk) == 1
