"""What some queues do besides handing out their messages in turn: exclusive, last-value, ring, dispatch gate.

A queue without any of it has no `Special`, so that the path of an ordinary message asks one question only. Behaviour
follows QueueImpl and LastValueQueue of Artemis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.dispatch_gate import Gate
from atalanta.kernel.queue.reference import DONE, READY
from atalanta.kernel.queue.spec import LAST_VALUE_KEY

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.message.message import Message


class Special:
    """`chosen` is the one consumer of an exclusive queue that gets messages.

    `newest` maps a last value to its newest reference in memory; what lies in page files is not in it. A ring is cut to
    its size at the end of a turn, when consumers had their chance: nothing below the sequence `oldest` can be dropped.
    """

    def __init__(self, spec: QueueSpec) -> None:
        self.exclusive: bool = spec.exclusive
        self.chosen: Consumer | None = None
        self.last_value_key: str | None = spec.last_value_key
        self.newest: dict[str, Reference] = {}
        self.ring_size: int = spec.ring_size
        self.oldest: int = 0
        self.overfull: bool = False  # is looked at when this turn ends: Broker.rings
        self.replaced: int = 0
        self.gate: Gate | None = gate_of(spec)

    # -- who is asked ---------------------------------------------------------------------------
    def turns(self, consumers: list[Consumer]) -> list[Consumer]:
        """Those consumers that may get messages now, in their order; browsers always look."""
        gate = self.gate
        shut = gate is not None and not gate.is_open
        if not shut and self.chosen is None:
            return consumers
        found: list[Consumer] = []
        for consumer in consumers:
            if consumer.browse_only or (
                not shut and (self.chosen is None or consumer is self.chosen)
            ):
                found.append(consumer)
        return found

    def handed_out(self, consumer: Consumer) -> bool:
        """The consumer gets the message; True if by this the turns change."""
        if self.exclusive and self.chosen is None:
            self.chosen = consumer
            return True
        return False

    # -- last values and rings ------------------------------------------------------------------
    def value_of(self, message: Message) -> str | None:
        """The last value a message carries: under the queue's key, else under `_AMQ_LVQ_NAME`."""
        key = self.last_value_key
        if key is None:
            return None
        value = message.property_value(key)
        if value is None and key != LAST_VALUE_KEY:
            value = message.property_value(LAST_VALUE_KEY)
        if isinstance(value, bool):
            return "true" if value else "false"
        return None if value is None or isinstance(value, bytes) else str(value)

    def entered(self, reference: Reference) -> Reference | None:
        """Returns the reference that must end because `reference` is in memory now; None if there is none.

        That is the older one of its value, unless a consumer has it; or `reference` itself, if it is older than the
        newest one.
        """
        value = self.value_of(reference.message)
        if value is None:
            return None
        newest = self.newest.get(value)
        older = newest
        if newest is not None and newest.sequence > reference.sequence:
            older = reference
        else:
            self.newest[value] = reference
        return older if older is not None and older.state == READY else None

    def beyond_ring(self, queue: Queue) -> list[Reference]:
        """What is too much for the ring: its oldest messages, but none that a consumer holds."""
        found: list[Reference] = []
        self.overfull = False
        if self.ring_size < 0:
            return found
        excess = self.excess(queue)
        references = queue.references
        index = queue.index_of(self.oldest)
        while index < len(references) and len(found) < excess:
            reference = references[index]
            index += 1
            self.oldest = reference.sequence + 1
            if reference.state == READY:
                found.append(reference)
        return found

    def excess(self, queue: Queue) -> int:
        """How many messages, wherever they lie, the ring has no room for (0 or less: none)."""
        return self.ready_count(queue) - self.ring_size if self.ring_size >= 0 else 0

    def removed(self, reference: Reference) -> None:
        """The reference left the queue, for whatever reason."""
        value = self.value_of(reference.message)
        if value is not None and self.newest.get(value) is reference:
            del self.newest[value]

    def refuses(self, queue: Queue, reference: Reference) -> bool:
        """A delivered message comes back: is there no place for it any more?

        A last value that has a newer one is gone (LastValueQueue.pruneLastValues), and so is what is older than all
        that wait in a full ring (QueueImpl.addHead); the value of a key without a newer one counts again.
        """
        value = self.value_of(reference.message)
        if value is not None:
            newest = self.newest.get(value)
            if newest is None:
                self.newest[value] = reference
            elif newest is not reference:
                return True
        if self.ring_size >= 0 and self.ready_count(queue) >= self.ring_size:
            return not self._older_waits(queue, reference.sequence)
        return False

    def _older_waits(self, queue: Queue, sequence: int) -> bool:
        """Whether the ring holds something older than `sequence` that can make room for it."""
        references = queue.references
        index = queue.index_of(self.oldest)
        while index < len(references) and references[index].sequence < sequence:
            older = references[index]
            if older.state == READY:
                return True
            self.oldest = older.sequence + 1
            index += 1
        return False

    def came_back(self, reference: Reference) -> None:
        """It is READY at its old place: perhaps the oldest of the ring again."""
        self.oldest = min(self.oldest, reference.sequence)

    def ready_count(self, queue: Queue) -> int:
        """Messages that wait for a consumer, in memory and in page files."""
        return queue.message_count - queue.delivering_count - queue.scheduled_count

    def restore(self, queue: Queue) -> list[Reference]:
        """After recovery, with `queue.references` in order: finds the newest values in memory; returns older ones."""
        older: list[Reference] = []
        self.newest.clear()
        for reference in queue.references:
            if reference.state != DONE:
                found = self.entered(reference)
                if found is not None:
                    older.append(found)
        return older

    def reconfigure(self, spec: QueueSpec, dispatching: bool) -> None:
        """The queue's definition was changed, while it had consumers (`dispatching`) or none."""
        self.exclusive = spec.exclusive
        if not spec.exclusive:
            self.chosen = None
        self.ring_size = spec.ring_size
        self.oldest = 0
        gate = gate_of(spec)
        if gate is not None:
            gate.is_open = dispatching if self.gate is None else self.gate.is_open
        self.gate = gate


def special_of(spec: QueueSpec) -> Special | None:
    """None for a queue that asks for nothing of this."""
    if (
        spec.exclusive
        or spec.last_value_key is not None
        or spec.ring_size >= 0
        or gate_of(spec) is not None
    ):
        return Special(spec)
    return None


def gate_of(spec: QueueSpec) -> Gate | None:
    pauses = spec.group_rebalance and spec.group_rebalance_pause_dispatch
    if spec.consumers_before_dispatch <= 0 and not pauses:
        return None
    return Gate(spec.consumers_before_dispatch, spec.delay_before_dispatch_ms)
