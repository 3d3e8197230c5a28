"""Management of queues to which older messages come back: their places may be below those of a log, and move."""

from __future__ import annotations

import pytest

from atalanta.kernel import housekeeping
from atalanta.kernel.management_jobs import MANAGEMENT_TIMER
from atalanta.kernel.returning import Return, Room
from tests.kernel.management_bench import Desk

OLDER = 3_500


def dense(desk: Desk, priorities: bool = False) -> None:
    """`work` with OLDER messages, and `away` with one that came behind those, before the last three of `work`."""
    desk.queue("work")
    desk.queue("away")
    desk.fill("work", OLDER)
    desk.fill("away", 1)
    for number in range(OLDER, OLDER + 3):
        message = desk.message("work", b"%d" % number, True, number=number)
        if priorities:
            message.priority = 9
        desk.broker.publish(desk.now, message, None, 0)
    desk.settle()


def bring_back(desk: Desk) -> None:
    """All of `work` that is older than what comes back moves below 0."""
    work, away = desk.broker.queues["work"], desk.broker.queues["away"]
    back = Return(desk.broker, away.live()[0], [work], {})
    assert back.keeps_its_place() and back.waits_for() is None
    room = Room()
    room.left = 2 * OLDER
    assert back.makes_room(10, room)
    back.go()
    desk.settle()
    assert work.live()[0].sequence < 0


@pytest.mark.parametrize("operation", ["removeMessages", "moveMessages"])
def test_a_job_under_way_misses_nothing_that_moves_below_its_place(operation: str) -> None:
    desk = Desk()
    dense(desk)
    desk.queue("other")
    given = ["number >= 3000"] if operation == "removeMessages" else ["number >= 3000", "other", False]
    desk.put("queue.work", operation, *given)
    desk.settle()
    assert MANAGEMENT_TIMER in desk.timers.due
    bring_back(desk)
    assert desk.answer() == OLDER - 3_000 + 3
    assert desk.broker.queues["work"].passes is None
    assert desk.broker.queues["work"].message_count == 3_000 + 1
    housekeeping.validate(desk.broker)


def test_a_purge_of_an_address_takes_what_lies_below_the_first_place() -> None:
    desk = Desk()
    dense(desk)
    desk.queue("beside", address="work")
    bring_back(desk)
    for _ in range(2):  # whichever queue it begins with
        desk.ask("address.work", "purge")
    assert desk.broker.queues["work"].message_count == 0
    assert all(queue.passes is None for queue in desk.broker.queues.values())


def test_messages_of_several_priorities_are_shown_from_the_first_place_on() -> None:
    desk = Desk()
    dense(desk, priorities=True)
    bring_back(desk)
    shown = desk.ask("queue.work", "browse", 1, 5_000)
    assert isinstance(shown, list)
    assert len(shown) == OLDER + 4

