"""The duplicate ids that a leaving node would have recognized, so that the target does.

One of ours takes them by the thousand (updateDuplicateIdCache). A real Artemis 2.44 has that operation, and fails at it
(an array of texts does not fit its own conversion, JsonUtil.convertJsonValue; ScaleDownHandler does not wait for the
answer): it gets each id with a message that goes nowhere, and remembers it, once: it would warn of each repeat.
Messages that follow are known by `_AMQ_BRIDGE_DUP`, and then their own ids are not looked at
(PostOfficeImpl.checkDuplicateID), so the ids may go before them.

What a real Artemis forwards as a member has the same id at all its peers: the target has such an id for its own copy of
a message, and of this node's it must not hear.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.forwarding import node_id_bytes
from atalanta.cluster.scale_down.shipments import Shipment
from atalanta.cluster.scale_down.stage import Stage
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE, BRIDGE_PREFIX
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.stages import Mover

IDS_MAX: Final = 1_000  # in one question
# Of all ids in one question: in JSON a byte may be six characters of two bytes, and a request has 1 MiB at most.
BYTES_MAX: Final = 64 << 10
NODE_ID_BYTES: Final = 16
FORWARD_ID_BYTES: Final = 24  # of a node, and of a message


class CacheStage(Stage):
    """Cache by cache, the oldest ids first, as they were remembered."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover
        self.ids: deque[tuple[str, bytes]] | None = None
        self.asking = False

    def step(self, now: int) -> bool:
        link = self.mover.link
        if self.ids is None:
            if not link.sender.idle():
                return False
            if not link.ours and not self.mover.queues_made(now):
                return False  # an id of an address that is not there is not remembered
            members = self._members()
            self.ids = deque(
                (name, each)
                for name, cache in self.mover.broker.caches.by_name.items()
                for each in cache.ids
                if len(each) != FORWARD_ID_BYTES or each[:NODE_ID_BYTES] not in members
                if (name, each) not in self.mover.carried
            )
        if self.asking:
            return False
        if link.ours:
            if self.ids:
                self._ask(now, self.ids)
            return not self.ids and not self.asking
        while self.ids and link.sender.has_room():
            name, duplicate_id = self.ids.popleft()
            self.mover.carried[(name, duplicate_id)] = True
            link.sender.ship(Shipment([], [carrier(name, duplicate_id, now)]))
        return not self.ids and link.sender.idle()

    def _members(self) -> dict[bytes, bool]:
        """Beginnings of the ids of what a member has forwarded here, if it is a real Artemis."""
        prefix = f"{self.mover.broker.config.internal_naming_prefix}sf."
        known = [
            name.rsplit(".", 1)[1]
            for name, queue in self.mover.broker.queues.items()
            if queue.internal and name.startswith(prefix)
        ]
        for cluster in self.mover.part.clusters.connections:
            known.extend(cluster.topology.members)
        return {node_id_bytes(node_id): True for node_id in known}

    def _ask(self, now: int, ids: deque[tuple[str, bytes]]) -> None:
        """What is no UTF-8 travels as lone surrogates."""
        name = ids[0][0]
        some: list[object] = []
        left = BYTES_MAX
        while ids and ids[0][0] == name and len(some) < IDS_MAX:
            left -= len(ids[0][1])
            if left < 0 and some:
                break
            some.append(ids.popleft()[1].decode("utf-8", "surrogateescape"))
        self.asking = True
        link = self.mover.link
        link.call(now, "broker", "updateDuplicateIdCache", [name, some], self._answered)

    def _answered(self, now: int, succeeded: bool, value: object) -> None:
        self.asking = False
        if not succeeded:
            self.mover.broker.trace.event(
                "scale_down_refused", {"queue": "(duplicate ids)", "why": str(value)}
            )


def carrier(cache: str, duplicate_id: bytes, now: int) -> Message:
    """An empty message for no queue at all."""
    bridged = cache.startswith(BRIDGE_PREFIX)
    address = cache[len(BRIDGE_PREFIX) :] if bridged else cache
    message = Message.create(address, b"", 0, False, now // 1_000_000, 4)
    message.properties.put(ROUTE_TO, b"")
    message.properties.put(BRIDGE_DUPLICATE if bridged else "_AMQ_DUPL_ID", duplicate_id)
    return message
