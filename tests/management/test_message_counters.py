"""Message counters: what came into a queue by sample period, by hour and day, and as management shows it."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.management.message_counters import COUNTERS_TIMER, DAY_NS, HOUR_NS
from tests.kernel.broker_rig import SECOND
from tests.management.management_rig import Desk, Refused

MIDNIGHT = 20_000 * DAY_NS  # 2024-10-04


def desk_at(hour: int, enabled: bool = True) -> Desk:
    config = BrokerConfig()
    config.message_counter_enabled = enabled
    config.message_counter_max_day_history = 3
    desk = Desk(config)
    desk.now = MIDNIGHT + hour * HOUR_NS
    desk.queue("work")
    return desk


def sample(desk: Desk) -> None:
    assert desk.timers.due.pop(COUNTERS_TIMER, None) is not None
    desk.management.counters.on_timer(desk.now)


def shown(desk: Desk) -> dict[str, object]:
    counter = desk.json("queue.work", "listMessageCounter")
    assert isinstance(counter, dict)
    return counter


def days(desk: Desk) -> list[tuple[str, list[int]]]:
    history = desk.json("queue.work", "listMessageCounterHistory")
    assert isinstance(history, dict)
    return [(one["date"], one["counters"]) for one in history["dayCounters"]]


def test_counts_and_what_came_since_somebody_last_asked() -> None:
    desk = desk_at(15)
    desk.fill("work", 5)
    assert shown(desk)["count"] == 0  # nobody looked yet
    sample(desk)
    first = shown(desk)
    assert first == {
        "destinationName": "work", "destinationSubscription": None, "destinationDurable": True,
        "count": 5, "countDelta": 5, "messageCount": 5, "messageCountDelta": 0,
        "lastAddTimestamp": "10/4/24, 3:00:00 PM", "lastAckTimestamp": "1/1/70, 12:00:00 AM",
        "updateTimestamp": "10/4/24, 3:00:00 PM",
    }  # fmt: skip
    work = desk.broker.queues["work"].live()
    desk.broker.store.acknowledge(work, None, 0)
    desk.fill("work", 2)
    desk.now += 70 * SECOND
    sample(desk)
    second = shown(desk)
    assert (second["count"], second["countDelta"]) == (7, 2)
    assert (second["messageCount"], second["messageCountDelta"]) == (2, -3)
    assert second["lastAckTimestamp"] == "10/4/24, 3:01:10 PM"
    desk.ask("queue.work", "resetMessagesAdded")
    desk.fill("work", 1)
    sample(desk)
    assert shown(desk)["count"] == 8


def test_hours_and_days() -> None:
    desk = desk_at(2)
    desk.fill("work", 4)
    sample(desk)
    desk.now += 3 * HOUR_NS
    desk.fill("work", 1)
    sample(desk)
    assert days(desk) == [("10/4/24", [-1, -1, 4, 0, 0, 1] + [-1] * 18)]
    desk.now += 2 * DAY_NS
    desk.fill("work", 6)
    sample(desk)
    assert days(desk) == [
        ("10/4/24", [-1, -1, 4, 0, 0, 1] + [0] * 18),
        ("10/5/24", [0] * 24),
        ("10/6/24", [0, 0, 0, 0, 0, 6] + [-1] * 18),
    ]
    desk.now += 500 * DAY_NS
    assert [date for date, _ in days(desk)] == ["2/16/26", "2/17/26", "2/18/26"]
    desk.ask("broker", "resetAllMessageCounterHistories")
    assert days(desk) == [("2/18/26", [-1, -1, -1, -1, -1, 0] + [-1] * 18)]


def test_switched_on_and_off_while_the_broker_runs() -> None:
    desk = desk_at(1, enabled=False)
    assert desk.get("broker", "MessageCounterEnabled") is False
    assert COUNTERS_TIMER not in desk.timers.due
    desk.ask("broker", "enableMessageCounters")
    assert desk.get("broker", "MessageCounterEnabled") is True
    desk.ask("broker", "setMessageCounterSamplePeriod", 2_000)
    assert desk.get("broker", "MessageCounterSamplePeriod") == 2_000
    assert desk.timers.due[COUNTERS_TIMER] == desk.now + 2 * SECOND
    desk.ask("broker", "setMessageCounterMaxDayCount", 1)
    assert desk.get("broker", "MessageCounterMaxDayCount") == 1
    desk.fill("work", 3)
    sample(desk)
    desk.ask("broker", "resetAllMessageCounters")
    assert shown(desk)["count"] == 0
    desk.fill("work", 3)
    sample(desk)
    assert shown(desk)["count"] == 3
    desk.ask("queue.work", "resetMessageCounter")
    assert shown(desk)["count"] == 0
    desk.ask("broker", "disableMessageCounters")
    assert COUNTERS_TIMER not in desk.timers.due
    with pytest.raises(Refused, match="AMQ229047"):
        desk.ask("broker", "setMessageCounterSamplePeriod", 0)
    with pytest.raises(Refused, match="greater than 0"):
        desk.ask("broker", "setMessageCounterMaxDayCount", 0)
    with pytest.raises(Refused, match="listMessageCounterHistory"):
        desk.ask("queue.work", "listMessageCounterHistoryAsHTML")


def test_a_deleted_queue_is_forgotten() -> None:
    desk = desk_at(1)
    sample(desk)
    desk.ask("broker", "destroyQueue", "work")
    sample(desk)
    assert [*desk.management.counters.by_queue] == [desk.broker.queues["replies"].id]
