"""Message counters: the messages added to each queue, by sample period and by hour of the day.

The counters follow Artemis' MessageCounter and MessageCounterManagerImpl: no message is counted as it passes; the
queues' own figures are sampled. Days and hours are in UTC (in Artemis in the JVM's time zone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.management.request.times import moment, short_date

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.settings.broker_config import BrokerConfig

COUNTERS_TIMER: Final = "management.counters"
HOURS: Final = 24
DAY_NS: Final = 86_400_000_000_000
HOUR_NS: Final = 3_600_000_000_000
NOT_YET: Final = -1  # an hour before counting began


class DayCounter:
    """The messages added in each hour of one day (`day` counts from the epoch); -1 before counting began."""

    def __init__(self, day: int, hour: int, first: bool) -> None:
        self.day: int = day
        self.counters: list[int] = [NOT_YET if first or at >= hour else 0 for at in range(HOURS)]
        self.counters[hour] = 0

    def add(self, hour: int, count: int) -> None:
        self.fill(hour + 1)
        self.counters[hour] += count

    def fill(self, end: int) -> None:
        """Sets the hours before `end` without a sample to 0, from the first sampled hour on."""
        begun = False
        for at in range(end):
            if self.counters[at] != NOT_YET:
                begun = True
            elif begun:
                self.counters[at] = 0


class MessageCounter:
    """The counter of one queue. `delta` figures count from the previous request for them."""

    def __init__(self) -> None:
        self.count: int = 0
        self.asked_count: int = 0
        self.asked_depth: int = 0
        self.added: int = 0
        self.acknowledged: int = 0
        self.updated_at: int = 0
        self.added_at: int = 0
        self.acknowledged_at: int = 0
        self.days: list[DayCounter] = []

    def sample(self, now: int, queue: Queue, days_max: int) -> None:
        """Takes a sample. `added` of a queue restarts at 0 when an operator resets it."""
        came = queue.added - (self.added if queue.added >= self.added else 0)
        went = queue.acknowledged - (
            self.acknowledged if queue.acknowledged >= self.acknowledged else 0
        )
        self.added = queue.added
        self.acknowledged = queue.acknowledged
        self.count += came
        if came > 0:
            self.added_at = now
        if went > 0:
            self.acknowledged_at = now
        self.updated_at = now
        self.note(now, came, days_max)

    def note(self, now: int, came: int, days_max: int) -> None:
        """Extends the history to the hour of `now`, with an entry for days without messages."""
        day, hour = now // DAY_NS, now % DAY_NS // HOUR_NS
        if not self.days:
            self.days.append(DayCounter(day, hour, True))
        last = self.days[len(self.days) - 1]
        if day > last.day:
            last.fill(HOURS)
            for between in range(max(last.day + 1, day - days_max), day):
                empty = DayCounter(between, 0, False)
                empty.fill(HOURS)
                self.days.append(empty)
            self.days.append(DayCounter(day, hour, False))
        del self.days[: max(0, len(self.days) - days_max)]
        self.days[len(self.days) - 1].add(hour, came)

    def reset(self) -> None:
        self.count = self.asked_count = self.asked_depth = 0
        self.updated_at = self.added_at = self.acknowledged_at = 0

    def shown(self, queue: Queue) -> dict[str, object]:
        """Returns the fields of MessageCounter.toJson and resets the deltas."""
        delta, self.asked_count = self.count - self.asked_count, self.count
        depth = queue.message_count
        depth_delta, self.asked_depth = depth - self.asked_depth, depth
        return {
            "destinationName": queue.name,
            "destinationSubscription": None,
            "destinationDurable": queue.durable,
            "count": self.count,
            "countDelta": delta,
            "messageCount": depth,
            "messageCountDelta": depth_delta,
            "lastAddTimestamp": moment(self.added_at),
            "lastAckTimestamp": moment(self.acknowledged_at),
            "updateTimestamp": moment(self.updated_at),
        }

    def history(self) -> dict[str, object]:
        """Returns the fields of DayCounterInfo.toJSON."""
        days = [
            {"date": short_date(one.day * DAY_NS), "counters": list(one.counters)}
            for one in self.days
        ]
        return {"dayCounters": days}


class MessageCounters:
    """The counters of all queues. A counter is created at its queue's first sample."""

    def __init__(self, config: BrokerConfig, queues: dict[str, Queue], timers: Timers) -> None:
        self.queues = queues
        self.timers = timers
        self.enabled_at_start: bool = config.message_counter_enabled
        self.enabled: bool = False
        self.sample_period_ms: int = config.message_counter_sample_period_ms
        self.days_max: int = config.message_counter_max_day_history
        self.by_queue: dict[int, MessageCounter] = {}

    def start(self, now: int) -> None:
        if self.enabled_at_start:
            self.enable(now)

    def enable(self, now: int) -> None:
        if not self.enabled:
            self.enabled = True
            self._arm(now)

    def disable(self) -> None:
        """Stops the sampling and deletes counts and histories."""
        if self.enabled:
            self.enabled = False
            self.timers.cancel(COUNTERS_TIMER)
            self.reset_all()
            self.reset_histories()

    def set_sample_period(self, now: int, period_ms: int) -> None:
        self.sample_period_ms = period_ms
        if self.enabled:
            self._arm(now)

    def _arm(self, now: int) -> None:
        self.timers.set(COUNTERS_TIMER, now + self.sample_period_ms * 1_000_000)

    def on_timer(self, now: int) -> None:
        if not self.enabled:
            return
        kept: dict[int, MessageCounter] = {}
        for queue in self.queues.values():
            counter = self.of(queue)
            counter.sample(now, queue, self.days_max)
            kept[queue.id] = counter
        self.by_queue = kept
        self._arm(now)

    def of(self, queue: Queue) -> MessageCounter:
        found = self.by_queue.get(queue.id)
        if found is None:
            found = self.by_queue[queue.id] = MessageCounter()
        return found

    def history(self, now: int, queue: Queue) -> dict[str, object]:
        counter = self.of(queue)
        counter.note(now, 0, self.days_max)
        return counter.history()

    def reset_all(self) -> None:
        for counter in self.by_queue.values():
            counter.reset()

    def reset_histories(self) -> None:
        for counter in self.by_queue.values():
            counter.days.clear()
