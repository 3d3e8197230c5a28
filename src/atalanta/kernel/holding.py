"""While messages come back to a queue (returning.py), what arrived later is not handed out before them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import Endpoint
from atalanta.kernel.queue_consumers import BROWSERS, NOBODY, TAKERS, Hold, arrange
from atalanta.kernel.reference import READY

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.queue import Queue

UNSTORED: Final = "unstored."  # keys of what waits for the journal only


def hold(broker: Broker, queue: Queue, key: str, message_id: int) -> None:
    if queue.held is None:
        queue.held = Hold(broker.timers)
    queue.held.before[key] = message_id
    broker.mark_dirty(queue)


class Stored(Endpoint):
    """What came back to the queue is durable there."""

    def __init__(self, broker: Broker, queue: Queue, key: str) -> None:
        self.broker = broker
        self.queue = queue
        self.key = key

    def done(self, token: int) -> None:
        let_go(self.broker, self.queue, self.key)


def hold_until_durable(broker: Broker, queue: Queue, message_id: int) -> None:
    """What came back just now is shown once its record is on disk: that message, and what arrived later."""
    lsn = broker.journal.last
    key = f"{UNSTORED}{lsn}"
    before = message_id - 1
    if queue.held is not None:
        before = min(before, queue.held.before.get(key, before))  # of another member's
    hold(broker, queue, key, before)
    broker.reply_when_durable(lsn, Stored(broker, queue, key), 0)


def let_go(broker: Broker, queue: Queue, key: str) -> None:
    held = queue.held
    if held is not None and held.before.pop(key, 0):
        broker.mark_dirty(queue)
        if not held.before:
            queue.held = None
            arrange(queue)


def dispatch_held(queue: Queue, held: Hold, now: int, messages_max: int) -> bool:
    """As Queue.dispatch; wakes who makes them come when there is nothing else to hand out."""
    first = min(held.before.values())
    references = queue.references
    cut = queue.index_of(queue.cursor)
    while cut < len(references) and (
        references[cut].state != READY or references[cut].message.id <= first
    ):
        cut += 1
    rest = references[cut:]
    held.back = bool(rest)
    queue.references = references[:cut]
    held.turn = TAKERS
    arrange(queue)
    more = queue.dispatch(now, messages_max)
    queue.references = queue.references + rest
    held.turn = BROWSERS
    arrange(queue)
    if queue.turns:
        more = queue.dispatch(now, messages_max) or more
    held.turn = NOBODY
    arrange(queue)
    if not more and (rest or queue.paged is None):
        for key, before in held.before.items():
            if before == first and not key.startswith(UNSTORED):
                held.timers.set(key, now)
    return more
