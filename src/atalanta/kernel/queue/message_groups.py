"""Message groups of one queue: all messages with one `_AMQ_GROUP_ID` go to one consumer, in their order.

Follows QueueImpl.handleMessageGroup and BucketMessageGroups of Artemis: a group is pinned to the consumer of its first
message, until the consumer closes, the group ends (`_AMQ_GROUP_SEQUENCE` -1) or groups are rebalanced. Unlike Artemis,
a busy consumer holds back its own groups only: other consumers skip their messages, and examine them again if it
closes. A new group goes to the consumer with the fewest (Queue.assignMessageGroup of ActiveMQ Classic), or of several
to the one whose turn it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DONE
from atalanta.message.encoding.digits import all_digits

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.message.message import Message

GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
LAST_OF_GROUP: Final = -1
BUCKET_KEY: Final = "_AMQ_GROUP_BUCKET_INT_KEY_"  # and the number of a bucket: its name in management
# Groups without a message in the queue are removed beyond this; Artemis keeps them until their consumer closes.
PINS_MAX: Final = 100_000
NO_SEQUENCE: Final = 1 << 62


class MessageGroups:
    """State of the groups. `pins`: key of a group -> its consumer. `passed`: key -> lowest skipped sequence.

    `counts`: consumer -> number of its pins.
    """

    def __init__(self, spec: QueueSpec) -> None:
        self.buckets: int = spec.group_buckets
        self.first_key: str | None = spec.group_first_key
        self.pins: dict[str, QueueConsumer] = {}
        self.counts: dict[QueueConsumer, int] = {}
        self.passed: dict[str, int] = {}
        self.ended_at: QueueConsumer | None = None  # the consumer of the latest group that ended; then no group began
        self.pins_least: int = PINS_MAX
        self.pins_limit: int = PINS_MAX

    def key_of(self, group: str) -> str:
        """Returns the key: the group id, or the name of the bucket that several groups share (group-buckets)."""
        if self.buckets <= 0:
            return group
        number = group[len(BUCKET_KEY) :]
        if group.startswith(BUCKET_KEY) and all_digits(number, 9):
            return f"{BUCKET_KEY}{int(number) % self.buckets}"
        return f"{BUCKET_KEY}{(java_hash(group) & 0x7FFF_FFFF) % self.buckets}"

    def takes(self, consumer: QueueConsumer, reference: Reference) -> bool:
        """Returns true if this consumer may have the message; if not, the message is recorded as skipped."""
        group = reference.message.group_id
        if group is None:
            return True
        key = self.key_of(group)
        pinned = self.pins.get(key)
        if pinned is None or pinned is consumer:
            return True
        sequence = reference.sequence
        if sequence < self.passed.get(key, NO_SEQUENCE):
            self.passed[key] = sequence
        return False

    def keeps_turn(self, reference: Reference) -> bool:
        """Returns true if the delivery takes no turn: the group has its consumer, or ends (handleMessageGroup)."""
        message = reference.message
        group = message.group_id
        return group is not None and (
            self.key_of(group) in self.pins or message.property_value(GROUP_SEQUENCE) == LAST_OF_GROUP
        )

    def choose(self, found: QueueConsumer, others: list[QueueConsumer], reference: Reference) -> QueueConsumer:
        """Returns the consumer of a message that `found` may have: for a new group one of `others` that has fewer."""
        message = reference.message
        if message.group_id is None or self.keeps_turn(reference):
            return found
        fewest = self.counts.get(found, 0)
        ended = self.ended_at is found  # it had its turn, as in Classic: another with as many comes first
        for other in others:
            count = self.counts.get(other, 0)
            fewer = count < fewest or (ended and count == fewest and other is not found)
            if fewer and not other.browse_only and other.ready():
                if other.selector is None or other.selector.matches(message):
                    found, fewest, ended = other, count, False
        return found

    def record_delivery(self, consumer: QueueConsumer, reference: Reference) -> int:
        """Records a delivery; returns the sequence from which others must examine again (NO_SEQUENCE: no change).

        The first message pins the group to the consumer, and is marked with `group-first-key` on the wire.
        """
        message = reference.message
        group = message.group_id
        if group is None:
            return NO_SEQUENCE
        key = self.key_of(group)
        new = key not in self.pins
        if message.property_value(GROUP_SEQUENCE) == LAST_OF_GROUP:
            self._unpin(key)
            self.ended_at = consumer
            return self.passed.pop(key, NO_SEQUENCE)
        if new:
            self.pins[key] = consumer
            self.ended_at = None
            self.counts[consumer] = self.counts.get(consumer, 0) + 1
            if self.first_key is not None:
                consumer.marked = marked_first(message, self.first_key)
        return NO_SEQUENCE

    def release(self, consumer: QueueConsumer) -> int:
        """Releases the groups of a closed consumer; returns the sequence from which others must examine again."""
        lowest = NO_SEQUENCE
        kept: dict[str, QueueConsumer] = {}
        for key, pinned in self.pins.items():
            if pinned is consumer:
                lowest = min(lowest, self.passed.pop(key, NO_SEQUENCE))
            else:
                kept[key] = pinned
        self.pins = kept
        self.counts.pop(consumer, None)
        if self.ended_at is consumer:
            self.ended_at = None
        return lowest

    def release_all(self) -> int:
        """Releases all groups (group-rebalance); returns the sequence from which all must examine again."""
        lowest = NO_SEQUENCE
        for sequence in self.passed.values():
            lowest = min(lowest, sequence)
        self.pins = {}
        self.counts = {}
        self.passed = {}
        return lowest

    def release_group(self, group: str) -> int:
        """Releases one group, by its id (resetGroup); returns a sequence as `release` does."""
        key = self.key_of(group)
        self._unpin(key)
        return self.passed.pop(key, NO_SEQUENCE)

    def _unpin(self, key: str) -> None:
        consumer = self.pins.pop(key, None)
        if consumer is not None:
            self.counts[consumer] -= 1

    def full(self) -> bool:
        return len(self.pins) > self.pins_limit

    def forget_unused(self, references: list[Reference]) -> None:
        """Removes groups without a message in the queue; the limit becomes twice the number of the others."""
        used: dict[str, QueueConsumer] = {}
        for reference in references:
            if reference.state != DONE:
                group = reference.message.group_id
                if group is not None:
                    key = self.key_of(group)
                    pinned = self.pins.get(key)
                    if pinned is not None:
                        used[key] = pinned
        self.pins = used
        self.counts = {}
        for consumer in used.values():
            self.counts[consumer] = self.counts.get(consumer, 0) + 1
        for key in list(self.passed):
            if key not in used:
                del self.passed[key]
        self.pins_limit = max(self.pins_least, 2 * len(used))


def java_hash(text: str) -> int:
    """Returns SimpleString.hashCode of Artemis: over the signed bytes of UTF-16, unlike String.hashCode."""
    found = 0
    for byte in text.encode("utf-16-le", "surrogatepass"):
        found = (found * 31 + byte - ((byte & 0x80) << 1)) & 0xFFFF_FFFF
    return found


def marked_first(message: Message, key: str) -> Message:
    """Returns a copy for the wire with `key` = true (GroupFirstMessageReference); id and body are the same."""
    copy = message.copy(message.id)
    copy.properties.put(key, True)
    return copy
