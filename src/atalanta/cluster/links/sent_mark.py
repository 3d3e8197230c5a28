"""Highest sequence of a store-and-forward queue that may have reached the peer, kept over a crash of this node.

A message is sent only after its sequence is *reserved*: a durable record says "up to here may have been sent".
Reservations run ahead of sending, the further the more is sent. So a link at full speed does not wait for the disk,
and thousands of messages share a record. When the link is lost, the exact sequence replaces the reservation. While
it is open, a check every CHECK_NS takes back what a slow link, or one without credits, does not use. After a crash
of this node few messages then count as sent that were not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue

STEP_MIN: Final = 256  # sequences of the first reservation; doubled each time
STEP_MAX: Final = 16_384
STEP_IDLE: Final = 64  # reserved by an idle link
CHECK_NS: Final = 200_000_000
PREFIX: Final = "sent."


class SentMark:
    """The mark of one queue: `through` is the highest sequence that may ever have been sent.

    `reserved` is the sequence that a durable record allows. Above `low` the next reservation is requested; below it
    sending costs one comparison.
    """

    def __init__(self, values: NamedValues, timers: Timers, queue: Queue) -> None:
        self.values = values
        self.timers = timers
        self.queue = queue
        self.key = PREFIX + queue.name
        self.through: int = 0
        known = values.get(self.key)
        # A new queue of the same name counts from 1 again.
        if known is not None and known[:8] == _encoded(queue.id):
            self.through = int.from_bytes(known[8:], "big")
        self.reserved: int = self.through
        self.low: int = 0
        self.asked: int = self.through
        self.asked_lsn: int = 0  # of a reservation that is being written; 0: none
        self.step: int = STEP_MIN
        self.timer: str = ""  # key of the timer of `give_back_idle`; "": no checks
        self.seen: int = self.through
        queue.log.send(self.through)

    def may_send(self, sequence: int) -> bool:
        """Returns whether that message may be sent. Requests the next reservation before this is used up (`settle`)."""
        if sequence > self.asked - self.step // 2:
            self.step = min(2 * self.step, STEP_MAX)
            self.asked = max(sequence, self.asked) + self.step
            self.asked_lsn = self._store(self.asked, True)
        return sequence <= self.reserved

    def settle(self, now: int) -> bool:
        """Returns whether a reservation has become durable. Runs in each event-loop iteration while one is written."""
        if self.asked_lsn == 0 or self.values.journal.durable < self.asked_lsn:
            return False
        self.asked_lsn = 0
        self.reserved = self.asked
        self.low = self.reserved - self.step // 2
        if self.timer:
            self.timers.set(self.timer, now + CHECK_NS)
        return True

    def give_back_idle(self, now: int) -> None:
        """Gives back sequences that are not needed until two checks later. A later reservation may include them."""
        used = self.through - self.seen
        self.seen = self.through
        keep = max(2 * used, STEP_IDLE)
        ahead = self.reserved - self.through
        if self.asked_lsn == 0 and ahead > 2 * keep:
            self.reserved = self.asked = self.through + keep
            self.step = max(keep // 2, STEP_IDLE)
            self.low = self.reserved - self.step // 2
            self._store(self.reserved, False)
            ahead = keep
        if self.asked_lsn == 0 and ahead > 2 * STEP_IDLE:
            self.timers.set(self.timer, now + CHECK_NS)

    def link_lost(self) -> None:
        """Gives back all reserved sequences that are not used: the link sends no more."""
        self.queue.log.send(self.through)
        if self.asked != self.through:
            self._store(self.through, False)
        self.reserved = self.asked = self.through
        self.low = 0
        self.asked_lsn = 0
        self.step = STEP_MIN
        if self.timer:
            self.timers.cancel(self.timer)

    def forget(self) -> None:
        """Resets the mark, when an operator assumes that no message has arrived. Allowed only without a link."""
        self.through = 0
        self.link_lost()
        self._store(0, True)

    def _store(self, sequence: int, hurry: bool) -> int:
        value = _encoded(self.queue.id) + _encoded(sequence)
        return self.values.set(self.key, value, idle=not hurry)


def drop(values: NamedValues, name: str) -> None:
    """Removes the mark of a deleted queue."""
    values.forget(PREFIX + name, idle=True)


def _encoded(number: int) -> bytes:
    return number.to_bytes(8, "big")
