"""How far the messages of one store-and-forward queue may have got to the peer, also after a crash of this node.

Bytes of a message leave only once its sequence is *reserved*: a durable record says "up to here may have been sent".
Reservations run ahead of what is sent, the further the more is sent, so that a link that keeps up never waits for the
disk and thousands of messages share a record. When the link is lost the exact place takes the reservation's. While it
stands a look every LOOK_NS takes back what a link does not use that has become slow or waits for credits: should this
node crash then, little stays that has not left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.queue.queue import Queue

STEP_MIN: Final = 256  # sequences a reservation runs ahead at first; twice as many each time
STEP_MAX: Final = 16_384
STEP_IDLE: Final = 64  # what a link that sends nothing keeps
LOOK_NS: Final = 200_000_000
PREFIX: Final = "sent."


class SentMark:
    """`through`: the highest sequence that may have left, ever. `reserved`: what a durable record allows to leave.

    `low` is where the next reservation is asked for: below it sending costs one comparison.
    """

    def __init__(self, broker: Broker, queue: Queue) -> None:
        self.broker = broker
        self.queue = queue
        self.key = PREFIX + queue.name
        self.through: int = 0
        known = broker.values.get(self.key)
        # A queue that was made anew under the same name counts from 1 again.
        if known is not None and known[:8] == _encoded(queue.id):
            self.through = int.from_bytes(known[8:], "big")
        self.reserved: int = self.through
        self.low: int = 0
        self.asked: int = self.through
        self.asked_lsn: int = 0  # of a reservation on its way to the disk; 0: none
        self.step: int = STEP_MIN
        self.timer: str = ""  # key of the timer of `look`; "": nobody looks
        self.seen: int = self.through

    def may_send(self, sequence: int) -> bool:
        """May bytes of that message leave? Asks for more room before there is none; see `settle`."""
        if sequence > self.asked - self.step // 2:
            self.step = min(2 * self.step, STEP_MAX)
            self.asked = max(sequence, self.asked) + self.step
            self.asked_lsn = self._store(self.asked, True)
        return sequence <= self.reserved

    def settle(self) -> bool:
        """Once a turn while a reservation is on its way: is there more room now?"""
        if self.asked_lsn == 0 or self.broker.journal.durable < self.asked_lsn:
            return False
        self.asked_lsn = 0
        self.reserved = self.asked
        self.low = self.reserved - self.step // 2
        if self.timer:
            self.broker.timers.set(self.timer, self.broker.now + LOOK_NS)
        return True

    def look(self, now: int) -> None:
        """Room that would not be used within two more looks is given back; a later reservation may take it again."""
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
            self.broker.timers.set(self.timer, now + LOOK_NS)

    def link_lost(self) -> None:
        """Nothing leaves any more: what was reserved and not used is free again."""
        if self.asked != self.through:
            self._store(self.through, False)
        self.reserved = self.asked = self.through
        self.low = 0
        self.asked_lsn = 0
        self.step = STEP_MIN
        if self.timer:
            self.broker.timers.cancel(self.timer)

    def forget(self) -> None:
        """An operator takes it that nothing has arrived; only while there is no link."""
        self.through = 0
        self.link_lost()
        self._store(0, True)

    def _store(self, sequence: int, hurry: bool) -> int:
        value = _encoded(self.queue.id) + _encoded(sequence)
        return self.broker.values.set(self.key, value, idle=not hurry)


def drop(values: NamedValues, name: str) -> None:
    """Removes the mark of a deleted queue."""
    values.forget(PREFIX + name, idle=True)


def _encoded(number: int) -> bytes:
    return number.to_bytes(8, "big")
