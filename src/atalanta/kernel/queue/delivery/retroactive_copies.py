"""Retroactive addresses: the copies of retained messages that a new queue starts with.

Follows ActiveMQServerImpl.copyRetroactiveMessages and QueueImpl.rerouteMessages. A new queue gets the messages in the
ring of its routing type that its filter takes, in order, with the `_AMQ_ORIG_*` headers of the divert. Differences:
messages on their way into the ring (not durable yet) are included, as are scheduled messages, which Artemis removes
from the ring; expired messages are not. The copies have ids of their own and the address of the original, even if the
queue's address is a wildcard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.reference import DONE
from atalanta.kernel.routing.retroactive_names import KEPT_MARK, MARK, Retained
from atalanta.kernel.routing.router import Route
from atalanta.message.message import TEXT

if TYPE_CHECKING:
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message

# The limits of one record of copies; a client's message may have any size below that of a record.
COPIES_A_RECORD: Final = 1_000
COPIES_BYTES: Final = 32 << 20




class Copies:
    """Copies for one queue: their plans, and the batch with their records."""

    def __init__(self) -> None:
        self.batch = records.Batch()
        self.plans: list[RoutingPlan] = []
        self.references: list[Reference] = []
        self.bytes: int = 0

    def full(self) -> bool:
        """Returns true if the copies fill one record."""
        count = len(self.batch)
        return count >= COPIES_A_RECORD or (count > 0 and self.bytes >= COPIES_BYTES)






def copy_retained(
    plans: PlanWriter,
    now: int,
    queue: Queue,
    sources: list[Retained],
    age_ms: int,
    bytes_max: int,
    marked_only: bool,
) -> Copies:
    """Makes the copies that `queue` starts with. All are appended to the journal except those that are returned.

    `age_ms` and `bytes_max` limit what each of the sources gives; -1: they do not. `marked_only`: each gives the newest
    message that is marked, unless it is empty.
    """
    selector = queue.filter
    copies = Copies()
    kept: list[Reference] = []
    for retained in sources:
        found = _kept(plans.store, now, retained.ring(queue.spec.routing_type))
        if marked_only:
            found = _marked(found)
        kept.extend(_newest(found, now // 1_000_000 - age_ms if age_ms >= 0 else 0, bytes_max))
    if len(sources) > 1:
        kept.sort(key=_by_id)
    for reference in kept:
        message = _copy(reference.message, queue)
        if marked_only:
            message.remove_property(MARK)
            message.put_property(KEPT_MARK, True)
        if selector is not None and not selector.matches(message):
            continue
        if copies.full():
            plans.append(copies.batch, copies.plans, copies.references, None, 0)
            copies = Copies()
        plan = RoutingPlan(message)
        plan.routes = [Route(queue, b"")]
        copies.plans.append(plan)
        copies.bytes += message.size
        copies.references.extend(plans.add(plan, copies.batch))
    return copies


def _kept(store: MessageStore, now: int, ring: Queue) -> list[Reference]:
    """Returns the newest messages of a ring, in order, up to its size; then its scheduled messages."""
    if ring.deleted:
        return []
    now_ms = now // 1_000_000
    found: list[Reference] = list(everything(ring))
    later: list[Reference] = []
    for awaiting in store.awaiting:
        for reference in awaiting.references:
            if reference.queue is ring and reference.state != DONE:
                if reference.sequence == 0:
                    later.append(reference)
                else:
                    found.append(reference)
    for _, reference in store.scheduled.of_queue(ring):
        if reference.sequence == 0:
            later.append(reference)
    found.sort(key=_by_sequence)
    size = ring.spec.ring_size
    if 0 <= size < len(found):
        found = found[len(found) - size :]
    return [
        reference
        for reference in [*found, *later]
        if reference.message.expiration == 0 or reference.message.expiration > now_ms
    ]


def _marked(found: list[Reference]) -> list[Reference]:
    """Returns the newest of the marked messages; none if that is empty."""
    for reference in reversed(found):
        message = reference.message
        if message.has_property(MARK):
            return [] if _is_empty(message) else [reference]
    return []


def _is_empty(message: Message) -> bool:
    if message.large is not None:
        return False
    return not message.text() if message.kind == TEXT else len(message.body) == 0


def _newest(found: list[Reference], since_ms: int, bytes_max: int) -> list[Reference]:
    """Returns the messages since a time, the newest ones up to a size. Those without a time count as new."""
    if since_ms > 0:
        found = [each for each in found if each.message.timestamp == 0 or each.message.timestamp >= since_ms]
    if bytes_max >= 0:
        first = len(found)
        left = bytes_max
        while first > 0 and found[first - 1].message.size <= left:
            first -= 1
            left -= found[first].message.size
        found = found[first:]
    return found


def _copy(original: Message, queue: Queue) -> Message:
    copy = original.copy(0)
    origin = copy.property_value("_AMQ_ORIG_ADDRESS")
    copy.address = origin if isinstance(origin, str) else queue.spec.address
    return copy


def _by_sequence(reference: Reference) -> int:
    return reference.sequence


def _by_id(reference: Reference) -> int:
    return int(reference.message.id)
