"""Special queues: exclusive, last-value, ring, and queues with a dispatch gate.

Other queues have no `SpecialQueue`, so that the path of an ordinary message has one check only. Follows QueueImpl and
LastValueQueue of Artemis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.dispatch_gate import Gate
from atalanta.kernel.queue.reference import DONE, READY
from atalanta.kernel.queue.spec import LAST_VALUE_KEY

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.message.message import Message


class SpecialQueue:
    """State of a special queue. `chosen`: the consumer of an exclusive queue that gets messages.

    `newest` maps a last value to its newest reference in memory; messages in page files are not in it. `outdated` are
    the references with a newer one. They are removed, and a ring is cut to its size, at the end of a batch of inputs,
    after the deliveries. No message of a ring below the sequence `oldest` can be dropped.
    """

    def __init__(self, spec: QueueSpec) -> None:
        self.exclusive: bool = spec.exclusive
        self.chosen: QueueConsumer | None = None
        self.last_value_key: str | None = spec.last_value_key
        self.newest: dict[str, Reference] = {}
        self.ring_size: int = spec.ring_size
        self.oldest: int = 0
        self.outdated: list[Reference] = []
        self.listed: bool = False  # for the end of this batch of inputs
        self.replaced: int = 0
        self.gate: Gate | None = gate_of(spec)

    # -- consumers ------------------------------------------------------------------------------
    def turns(self, consumers: list[QueueConsumer]) -> list[QueueConsumer]:
        """Returns the consumers that may get messages now, in their order; browsers always may."""
        gate = self.gate
        closed = gate is not None and not gate.is_open
        if not closed and self.chosen is None:
            return consumers
        found: list[QueueConsumer] = []
        for consumer in consumers:
            if consumer.browse_only or (
                not closed and (self.chosen is None or consumer is self.chosen)
            ):
                found.append(consumer)
        return found

    def record_delivery(self, consumer: QueueConsumer) -> bool:
        """Records that the consumer gets a message; returns true if this changes the result of `turns`."""
        if self.exclusive and self.chosen is None:
            self.chosen = consumer
            return True
        return False

    # -- last values and rings ------------------------------------------------------------------
    def value_of(self, message: Message) -> str | None:
        """Returns the last value of a message: under the queue's key, else under `_AMQ_LVQ_NAME`."""
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
        """Returns the reference to be removed because `reference` is in memory now; None if there is none.

        The result is the older reference of the value, unless a consumer has it; or `reference`, if it is older than
        the newest.
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

    def take_outdated(self) -> list[Reference]:
        """Returns the older last values that still wait for a consumer, once."""
        found: list[Reference] = []
        for reference in self.outdated:
            if reference.state == READY:
                found.append(reference)
        self.outdated = []
        return found

    def beyond_ring(self, queue: Queue) -> list[Reference]:
        """Returns the oldest messages beyond the ring's size, except those that a consumer holds."""
        found: list[Reference] = []
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
        """Returns the number of messages, in memory and in page files, beyond the ring's size (0 or less: none)."""
        return self.ready_count(queue) - self.ring_size if self.ring_size >= 0 else 0

    def removed(self, reference: Reference) -> None:
        """Records that the reference left the queue, for any reason."""
        value = self.value_of(reference.message)
        if value is not None and self.newest.get(value) is reference:
            del self.newest[value]

    def refuses(self, queue: Queue, reference: Reference) -> bool:
        """Returns true if a delivered message that is given back must be removed.

        A last value with a newer one is removed (LastValueQueue.pruneLastValues). A message older than all that wait in
        a full ring is removed (QueueImpl.addHead). A last value without a newer one counts again.
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
        """Returns true if the ring holds a message older than `sequence` that can be removed instead."""
        references = queue.references
        index = queue.index_of(self.oldest)
        while index < len(references) and references[index].sequence < sequence:
            older = references[index]
            if older.state == READY:
                return True
            self.oldest = older.sequence + 1
            index += 1
        return False

    def record_given_back(self, reference: Reference) -> None:
        """Records that the reference is READY again at its old position: it may be the oldest of the ring."""
        self.oldest = min(self.oldest, reference.sequence)

    def ready_count(self, queue: Queue) -> int:
        """Returns the number of messages that wait for a consumer, in memory and in page files."""
        return queue.message_count - queue.delivering_count - queue.scheduled_count

    def restore(self, queue: Queue) -> list[Reference]:
        """Finds the newest values in memory after recovery (`references` in order); returns the older references."""
        older: list[Reference] = []
        self.newest.clear()
        if self.last_value_key is None:
            return older
        for reference in queue.references:
            if reference.state != DONE:
                found = self.entered(reference)
                if found is not None:
                    older.append(found)
        return older

    def reconfigure(self, spec: QueueSpec, dispatching: bool) -> None:
        """Applies the changed definition; `dispatching`: the queue had consumers at the change."""
        self.exclusive = spec.exclusive
        if not spec.exclusive:
            self.chosen = None
        self.ring_size = spec.ring_size
        self.oldest = 0
        gate = gate_of(spec)
        if gate is not None:
            gate.is_open = dispatching if self.gate is None else self.gate.is_open
        self.gate = gate


def special_of(spec: QueueSpec) -> SpecialQueue | None:
    """Returns the state of a special queue; None for an ordinary queue."""
    if (
        spec.exclusive
        or spec.last_value_key is not None
        or spec.ring_size >= 0
        or gate_of(spec) is not None
    ):
        return SpecialQueue(spec)
    return None


def gate_of(spec: QueueSpec) -> Gate | None:
    pauses = spec.group_rebalance and spec.group_rebalance_pause_dispatch
    if spec.consumers_before_dispatch <= 0 and not pauses:
        return None
    return Gate(spec.consumers_before_dispatch, spec.delay_before_dispatch_ms)
