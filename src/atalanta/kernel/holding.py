"""While messages come back to a queue (returning.py), what arrived later is not handed out before them.

Later here, by the ids of this node; or later at the node that brings them, where another one does (arrival.py). In a
queue nothing overtakes what has to wait, whoever sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.arrival import place_of
from atalanta.kernel.endpoint import Endpoint
from atalanta.kernel.queue_consumers import BROWSERS, NOBODY, TAKERS, Hold, arrange
from atalanta.kernel.reference import DONE, READY, Reference

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.queue import Queue

UNSTORED: Final = "unstored."  # keys of what waits for the journal only
LATEST: Final = (1 << 63) - 1


def hold(broker: Broker, queue: Queue, key: str, message_id: int) -> None:
    """Nothing that arrived later than that; `key` of the timer by which the queue asks for what comes before it."""
    if queue.held is None:
        queue.held = Hold(broker.timers)
    queue.held.before[key] = message_id
    broker.mark_dirty(queue)


def hold_younger(broker: Broker, queue: Queue, key: str, younger: dict[int, int]) -> None:
    """Of each link nothing that arrived later than that; an empty dict lets go. Only one part does so."""
    held = queue.held
    if held is None:
        if not younger:
            return
        held = Hold(broker.timers)
        queue.held = held
    held.brings = key
    if held.younger != younger:
        held.younger = younger
        broker.mark_dirty(queue)
        _end(queue, held)


def _end(queue: Queue, held: Hold) -> None:
    if not held.before and not held.younger:
        queue.held = None
        arrange(queue)


def waits(held: Hold, reference: Reference) -> bool:
    """Whether something that comes back goes before it. Ids say nothing of what lies in front of lower ones itself."""
    message = reference.message
    place = place_of(message)
    if place > held.unstored or (place > held.first and not reference.placed):
        return True
    link = int(message.arrival_link)
    return link > 0 and link in held.younger and message.arrival > held.younger[link]


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
        _end(queue, held)


def dispatch_held(queue: Queue, held: Hold, now: int, messages_max: int) -> bool:
    """As Queue.dispatch; wakes who makes them come when there is nothing else to hand out."""
    held.first = held.unstored = LATEST
    for key, before in held.before.items():
        if key.startswith(UNSTORED):
            held.unstored = min(held.unstored, before)
        else:
            held.first = min(held.first, before)
    held.turn = TAKERS
    arrange(queue)
    if queue.alike and queue.priorities.only >= 0:
        more = _dispatch_some(queue, held, now, messages_max)
    else:
        more = _dispatch_older(queue, held, now, messages_max)
    held.turn = BROWSERS
    arrange(queue)
    if queue.turns:
        more = queue.dispatch(now, messages_max) or more
    held.turn = NOBODY
    arrange(queue)
    if not more and (held.back or queue.paged is None):
        for key, before in held.before.items():
            if before == held.first and before <= held.unstored and not key.startswith(UNSTORED):
                held.timers.set(key, now)
        if held.younger:
            held.timers.set(held.brings, now)
    return more


def _dispatch_some(queue: Queue, held: Hold, now: int, messages_max: int) -> bool:
    """Of the next few alone: the queue may be long, and held for many turns."""
    references = queue.references
    size = len(references)
    start = queue.index_of(queue.cursor)
    while start < size and references[start].state != READY:
        start += 1
    if start == size or waits(held, references[start]):
        held.back = start < size
        return False
    queue.cursor = references[start].sequence
    end = min(size, start + 2 * messages_max)
    cut = start
    while cut < end and (
        references[cut].state != READY or not waits(held, references[cut])
    ):
        cut += 1
    held.back = cut < size
    some = references[start:cut]
    last = some[len(some) - 1]
    queue.references = some
    more = queue.dispatch(now, messages_max)
    if queue.references is some:
        queue.references = references
    else:  # it was cleaned up in between
        queue.references = [each for each in references if each.state != DONE]
        queue.tombstones = 0
    return more or (cut == end and end < size and queue.cursor > last.sequence)


def _dispatch_older(queue: Queue, held: Hold, now: int, messages_max: int) -> bool:
    """All that may be handed out: each consumer looks through it by itself."""
    references = queue.references
    cut = queue.index_of(queue.cursor)
    while cut < len(references) and (
        references[cut].state != READY or not waits(held, references[cut])
    ):
        cut += 1
    held.back = cut < len(references)
    ready = queue.counting is not None  # who has no credit left may have it for what was counted
    for consumer in queue.turns:
        ready = ready or consumer.ready()
    if not ready:
        return False
    older = references[:cut]
    queue.references = older
    more = queue.dispatch(now, messages_max)
    if queue.references is older:
        queue.references = references
    else:
        queue.references = [each for each in references if each.state != DONE]
        queue.tombstones = 0
    return more
