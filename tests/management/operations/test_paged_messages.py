"""Operators count, list, move and remove messages wherever they lie."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.management.management_rig import Desk

COUNT = 300
MORE = 3_000


@pytest.fixture
def desk() -> Desk:
    settings = AddressSettingsRepository()
    settings.add("work", {"max_size_bytes": 10_000, "page_size_bytes": 4_000, "max_read_page_bytes": 5_000})
    made = Desk(settings=settings, paging=True)
    made.trace.on = False
    made.queue("work")
    made.queue("other")
    made.fill("work", COUNT)
    paged = made.broker.queues["work"].paged
    assert paged is not None and paged.count > COUNT // 2
    return made


def numbers(desk: Desk, queue: str) -> list[int]:
    return [int(each.message.body) for each in everything(desk.broker.queues[queue])]


def test_counting_and_listing_change_nothing(desk: Desk) -> None:
    assert desk.get("queue.work", "MessageCount") == COUNT
    assert desk.ask("queue.work", "countMessages") == COUNT
    assert desk.ask("queue.work", "countMessages", "number >= 290") == 10
    shown = desk.json("queue.work", "listMessagesAsJSON", "number > 100 AND number < 110")
    assert isinstance(shown, list) and len(shown) == 9
    assert numbers(desk, "work") == list(range(COUNT))
    invariants.validate(desk.broker)


def test_all_are_moved_in_their_order(desk: Desk) -> None:
    assert desk.ask("queue.work", "moveMessages", None, "other") == COUNT
    assert numbers(desk, "work") == []
    assert numbers(desk, "other") == list(range(COUNT))
    invariants.validate(desk.broker)


def test_all_are_removed_and_no_file_is_left(desk: Desk) -> None:
    assert desk.ask("queue.work", "removeAllMessages") == COUNT
    desk.settle()
    assert desk.pages is not None and not desk.pages.files
    invariants.validate(desk.broker)


@pytest.mark.parametrize(
    ("operation", "arguments", "elsewhere"),
    [
        ("removeMessages", (), []),
        ("moveMessages", ("other",), list(range(2_990, MORE))),
        ("expireMessages", (), []),
        ("sendMessagesToDeadLetterAddress", (), []),
        ("changeMessagesPriority", (7,), []),
    ],
)
def test_the_last_of_many_are_changed_though_memory_is_full(
    desk: Desk, operation: str, arguments: tuple[object, ...], elsewhere: list[int]
) -> None:
    desk.fill("work", MORE, ballast="x" * 200)
    assert desk.ask("queue.work", operation, "number >= 2990", *arguments) == 10
    left = [*range(COUNT), *range(2_990)]
    if operation == "changeMessagesPriority":
        left += range(2_990, MORE)
        changed = [each for each in everything(desk.broker.queues["work"]) if each.message.priority == 7]
        assert [int(each.message.body) for each in changed] == list(range(2_990, MORE))
    assert (numbers(desk, "work"), numbers(desk, "other")) == (left, elsewhere)
    invariants.validate(desk.broker)
    desk.restart()
    assert (numbers(desk, "work"), numbers(desk, "other")) == (left, elsewhere)
    assert desk.broker.queues["work"].message_count == len(left)
    invariants.validate(desk.broker)


def test_one_of_many_is_removed(desk: Desk) -> None:
    assert desk.ask("queue.work", "removeMessages", "number = 250") == 1
    assert numbers(desk, "work") == [number for number in range(COUNT) if number != 250]
    desk.restart()
    assert numbers(desk, "work") == [number for number in range(COUNT) if number != 250]
