"""Repeated messages: delivered again and again, as the clients of ActiveMQ Classic ask for (ScheduledMessage).

A repeated message waits for its time, as a scheduled one does, but is never delivered. When its time has come, there
are two copies instead: one that is delivered, and one that waits for the next time, with an id of its own.
`_AMQ_SCHED_…` properties say when that is, and which message was the first: its id names the whole repetition.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from atalanta.message.cron import Cron
from atalanta.message.instant import later_ms
from atalanta.message.properties import Int
from atalanta.message.user_id import hashed_uuid

if TYPE_CHECKING:
    from atalanta.message.message import Message

# What clients set: in ms, the number of further deliveries (-1: no end), and five fields of cron.
PERIOD_OPTION: Final = "AMQ_SCHEDULED_PERIOD"
TIMES_OPTION: Final = "AMQ_SCHEDULED_REPEAT"
CRON_OPTION: Final = "AMQ_SCHEDULED_CRON"
REPETITION_OPTIONS: Final = (PERIOD_OPTION, TIMES_OPTION, CRON_OPTION)
PERIOD: Final = "_AMQ_SCHED_PERIOD"
TIMES: Final = "_AMQ_SCHED_REPEAT"
CRON: Final = "_AMQ_SCHED_CRON"
SCHEDULED: Final = "_AMQ_SCHED_DELIVERY"  # the time, in ms since 1970
# Properties that only the first of the messages has: the sender's id, and that which excludes repeats.
FIRST_ONLY: Final = ("__HDR_MESSAGE_ID", "_AMQ_DUPL_ID")
JOB: Final = "_AMQ_SCHED_JOB"  # the id of the first message, in those that follow it
# Properties that only brokers write: clients ask by the options above.
BROKERS_ONLY: Final = (PERIOD, TIMES, CRON, JOB)
# One message would otherwise fill a disk: each delivery is a message of its own, in the journal and in its queue.
PERIOD_MS_MIN: Final = 1_000  # of an acceptor without schedulerPeriodMin
PERIOD_MS_MAX: Final = 100 * 365 * 86_400_000
TIMES_MAX: Final = (1 << 31) - 1


class Repetition:
    """The times of a repeated message: `times` more, `period_ms` apart; with `cron` that often at each of its times.

    `times` -1: without end; with `cron` a series ends when the next one begins.
    """

    def __init__(self, period_ms: int, times: int, cron: str) -> None:
        self.period_ms = period_ms
        self.times = times
        self.cron = cron

    def put(self, message: Message, at_ms: int) -> None:
        """Makes a message one that comes at that time, and then again as this says."""
        properties = message.properties
        properties.put(SCHEDULED, at_ms)
        for name in (PERIOD, TIMES, CRON):
            properties.remove(name)
        if self.times != 0:
            properties.put(PERIOD, self.period_ms)
            properties.put(TIMES, Int(self.times))
        if self.cron:
            properties.put(CRON, self.cron)

    def first_ms(self, now_ms: int, delay_ms: int) -> int:
        """Returns the time of the first delivery in ms; a delay counts unless cron says the time."""
        if self.cron:
            return Cron(self.cron).next_ms(now_ms)
        return later_ms(now_ms, delay_ms if delay_ms > 0 else self.period_ms)

    def following(self, now_ms: int, due_ms: int) -> list[tuple[int, Repetition]]:
        """Returns what a message whose time has come schedules: the times (ms), and what follows then.

        Times that passed while the node was down are not made up for.
        """
        found: list[tuple[int, Repetition]] = []
        times = self.times
        at_ms = later_ms(due_ms, self.period_ms)
        if at_ms <= now_ms:
            at_ms = later_ms(now_ms, self.period_ms)
        if self.cron:
            series_ms = Cron(self.cron).next_ms(max(now_ms, due_ms))
            if series_ms > 0:
                found.append((series_ms, self))
                if times != 0:  # without an end in time, the series of one message would become more and more
                    fitting = max((series_ms - 1 - at_ms) // self.period_ms + 1, 0)
                    times = fitting if times < 0 else min(times, fitting)
        if times != 0:
            found.append((at_ms, Repetition(self.period_ms, max(times - 1, -1), "")))
        return found


def wanted_repetition(period_ms: int, times: int, cron: str, period_ms_min: int) -> Repetition | None:
    """Returns what a sender asks for, None if it asks for no repetition. ValueError: why it cannot be had.

    `period_ms_min`: what the acceptor allows.
    """
    found = repetition_of(period_ms, times, cron)
    if found is not None and found.times != 0 and found.period_ms < period_ms_min:
        raise ValueError(
            f"{PERIOD_OPTION} is {period_ms} ms, but the acceptor allows {period_ms_min} ms and more:"
            f" ask for that, or lower schedulerPeriodMin of the acceptor"
        )
    return found


def repetition_of(period_ms: int, times: int, cron: str) -> Repetition | None:
    """Returns the repetition of these numbers, None without one. ValueError: they mean nothing."""
    if cron:
        Cron(cron)
    if not cron and period_ms <= 0 and times == 0:
        return None
    if times != 0 and period_ms <= 0:
        raise ValueError(f"{TIMES_OPTION} needs {PERIOD_OPTION}, which is above 0 ms")
    return Repetition(min(max(period_ms, 0), PERIOD_MS_MAX), min(max(times, -1), TIMES_MAX), cron)


def is_repeated(message: Message) -> bool:
    """Returns True if a message comes again, so that it waits for its time even if that has passed."""
    return message.special and (message.has_property(TIMES) or message.has_property(CRON))


def disclaim(message: Message) -> None:
    """Removes the properties that only brokers write: a client of CORE asks for no repetition."""
    for name in BROKERS_ONLY:
        message.remove_property(name)


def stored_repetition(message: Message) -> Repetition | None:
    """Returns the repetition of a message, None if it comes only once. ValueError: another client wrote nonsense."""
    period_ms = message.property_value(PERIOD)
    times = message.property_value(TIMES)
    cron = message.property_value(CRON)
    return repetition_of(
        period_ms if isinstance(period_ms, int) else 0,
        times if isinstance(times, int) else 0,
        cron if isinstance(cron, str) else "",
    )


def job_of(message: Message) -> int:
    """Returns the id of the first message of its repetition: its own id, unless it follows another one."""
    first = message.property_value(JOB) if message.special else None
    return first if isinstance(first, int) else int(message.id)


def due_message(message: Message, message_id: int) -> Message:
    """Returns the message that is delivered in the place of one whose time has come."""
    twin = message.copy(message_id)
    for name in (SCHEDULED, *BROKERS_ONLY):
        twin.remove_property(name)
    return twin


def next_message(message: Message, message_id: int, at_ms: int, repetition: Repetition) -> Message:
    """Returns the message that waits in the place of one whose time has come. It lives as long after its time.
    """
    twin = message.copy(message_id)
    if twin.expiration > 0:
        twin.expiration = later_ms(twin.expiration, at_ms - message.scheduled_ms)
    twin.timestamp = at_ms
    user_id = message.user_id
    if user_id is not None:
        twin.user_id = hashed_uuid(sha256(user_id + message_id.to_bytes(8, "big")).digest())
    for name in FIRST_ONLY:
        twin.remove_property(name)
    repetition.put(twin, at_ms)
    twin.put_property(JOB, job_of(message))
    return twin.copy(message_id)  # with its properties encoded only: it may wait long
