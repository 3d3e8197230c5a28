"""Repeated messages: delivered again and again, as the clients of ActiveMQ Classic ask for (ScheduledMessage).

A repeated message waits for its time, as a scheduled one does, but is never delivered. When its time has come, there
are two copies instead: one that is delivered, and one that waits for the next time, with an id of its own.
`_AMQ_SCHED_…` properties say when that is.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from atalanta.message.cron import Cron
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
PERIOD_MS_MAX: Final = 100 * 365 * 86_400_000
TIMES_MAX: Final = (1 << 31) - 1


class Repetition:
    """The times of a repeated message: `times` more, `period_ms` apart; with `cron` that often at each of its times.

    `times` -1: without end.
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
        return now_ms + (delay_ms if delay_ms > 0 else self.period_ms)

    def following(self, now_ms: int, due_ms: int) -> list[tuple[int, Repetition]]:
        """Returns what a message whose time has come schedules: the times (ms), and what follows then.

        Times that passed while the node was down are not made up for.
        """
        found: list[tuple[int, Repetition]] = []
        if self.cron:
            at_ms = Cron(self.cron).next_ms(max(now_ms, due_ms))
            if at_ms > 0:
                found.append((at_ms, self))
        if self.times != 0:
            at_ms = due_ms + self.period_ms
            if at_ms <= now_ms:
                at_ms = now_ms + self.period_ms
            found.append((at_ms, Repetition(self.period_ms, max(self.times - 1, -1), "")))
        return found


def repetition_of(period_ms: int, times: int, cron: str) -> Repetition | None:
    """Returns what a sender asks for, None if it asks for no repetition. ValueError: why it cannot be had."""
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


def due_message(message: Message, message_id: int) -> Message:
    """Returns the message that is delivered in the place of one whose time has come."""
    twin = message.copy(message_id)
    for name in (SCHEDULED, PERIOD, TIMES, CRON):
        twin.remove_property(name)
    return twin


def next_message(message: Message, message_id: int, at_ms: int, repetition: Repetition) -> Message:
    """Returns the message that waits in the place of one whose time has come. It lives as long after its time.
    """
    twin = message.copy(message_id)
    if twin.expiration > 0:
        twin.expiration = max(at_ms + twin.expiration - max(message.scheduled_ms, 0), 1)
    twin.timestamp = at_ms
    user_id = message.user_id
    if user_id is not None:
        twin.user_id = hashed_uuid(sha256(user_id + message_id.to_bytes(8, "big")).digest())
    for name in FIRST_ONLY:
        twin.remove_property(name)
    repetition.put(twin, at_ms)
    return twin.copy(message_id)  # with its properties encoded only: it may wait long
