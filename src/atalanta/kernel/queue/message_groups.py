"""Message groups of one queue: all messages with one `_AMQ_GROUP_ID` go to one consumer, in their order.

Follows QueueImpl.handleMessageGroup and BucketMessageGroups of Artemis: who gets the first message of a group is
pinned to it, until it leaves, the group ends (`_AMQ_GROUP_SEQUENCE` -1) or groups are shared anew. Unlike there a busy
consumer holds back its own groups only: other consumers pass over its messages and come back if it leaves.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DONE

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.message.message import Message

GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
LAST_OF_GROUP: Final = -1
# Groups without a message in the queue are forgotten beyond this: Artemis keeps them until their consumer leaves.
PINS_MAX: Final = 100_000
NOWHERE: Final = 1 << 62


class Groups:
    """`pins`: key of a group -> its consumer. `passed`: key -> lowest sequence another consumer passed over."""

    def __init__(self, spec: QueueSpec) -> None:
        self.buckets: int = spec.group_buckets
        self.first_key: str | None = spec.group_first_key
        self.pins: dict[str, Consumer] = {}
        self.passed: dict[str, int] = {}
        self.pins_least: int = PINS_MAX
        self.pins_limit: int = PINS_MAX

    def key_of(self, group: str) -> str:
        """The group itself, or the name of the bucket it shares with others (group-buckets)."""
        if self.buckets <= 0:
            return group
        return str(zlib.crc32(group.encode("utf-8", "surrogatepass")) % self.buckets)

    def takes(self, consumer: Consumer, reference: Reference) -> bool:
        """May this consumer have the message? If not, it is noted as passed over."""
        group = reference.message.group_id
        if group is None:
            return True
        key = self.key_of(group)
        pinned = self.pins.get(key)
        if pinned is None or pinned is consumer:
            return True
        sequence = reference.sequence
        if sequence < self.passed.get(key, NOWHERE):
            self.passed[key] = sequence
        return False

    def handed_out(self, consumer: Consumer, reference: Reference) -> int:
        """The consumer gets the message; returns where others must look again (NOWHERE: nothing changed).

        The first of a group pins the consumer, and is marked with `group-first-key` on its way to it.
        """
        message = reference.message
        group = message.group_id
        if group is None:
            return NOWHERE
        key = self.key_of(group)
        new = key not in self.pins
        if message.property_value(GROUP_SEQUENCE) == LAST_OF_GROUP:
            self.pins.pop(key, None)
            return self.passed.pop(key, NOWHERE)
        if new:
            self.pins[key] = consumer
            if self.first_key is not None:
                consumer.marked = marked_first(message, self.first_key)
        return NOWHERE

    def release(self, consumer: Consumer) -> int:
        """The consumer left: its groups are free; returns where the others must look again."""
        lowest = NOWHERE
        kept: dict[str, Consumer] = {}
        for key, pinned in self.pins.items():
            if pinned is consumer:
                lowest = min(lowest, self.passed.pop(key, NOWHERE))
            else:
                kept[key] = pinned
        self.pins = kept
        return lowest

    def release_all(self) -> int:
        """All groups are to be shared anew (group-rebalance); returns where everybody must look again."""
        lowest = NOWHERE
        for sequence in self.passed.values():
            lowest = min(lowest, sequence)
        self.pins = {}
        self.passed = {}
        return lowest

    def release_group(self, group: str) -> int:
        """One group, by its id (resetGroup)."""
        key = self.key_of(group)
        self.pins.pop(key, None)
        return self.passed.pop(key, NOWHERE)

    def full(self) -> bool:
        return len(self.pins) > self.pins_limit

    def forget_unused(self, references: list[Reference]) -> None:
        """Unpin groups none of whose messages is in the queue; if most are in use, look again only much later."""
        used: dict[str, Consumer] = {}
        for reference in references:
            if reference.state != DONE:
                group = reference.message.group_id
                if group is not None:
                    key = self.key_of(group)
                    pinned = self.pins.get(key)
                    if pinned is not None:
                        used[key] = pinned
        self.pins = used
        for key in list(self.passed):
            if key not in used:
                del self.passed[key]
        self.pins_limit = max(self.pins_least, 2 * len(used))


def marked_first(message: Message, key: str) -> Message:
    """A copy for the wire with `key` = true (GroupFirstMessageReference); id and body stay."""
    copy = message.copy(message.id)
    copy.properties.put(key, True)
    return copy
