"""Transfers the duplicate id caches of a node that scales down to its target.

An Atalanta target takes the ids by the thousand with `updateDuplicateIdCache`. Artemis 2.44 has that operation, but
the operation fails: an array of texts does not fit JsonUtil.convertJsonValue, and ScaleDownHandler does not wait for
the answer. Artemis therefore gets each id with a message that is routed to no queue, and remembers the id. Each id
is sent once, since Artemis would log a warning for each repeat.

Members send on after the first transfer. The second one, right before their DISCONNECT, has the ids since then.

Messages that follow are recognized by `_AMQ_BRIDGE_DUP`. Their own ids are then not checked
(PostOfficeImpl.checkDuplicateID), so the ids may be sent before the messages.

A message that Artemis forwards as a member has the same id at all its peers. The target has such an id for its own
copy of the message, so this node must not transfer the id.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.forward_frame import node_id_bytes
from atalanta.cluster.scale_down.shipments import Shipment
from atalanta.cluster.scale_down.stage import Stage
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.duplicate_spaces import BRIDGE_PREFIX
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.stages import Mover

IDS_MAX: Final = 1_000  # in one request
# Limit of all ids in one request. In JSON one byte may become six characters of two bytes, and a
# request has at most 1 MiB.
BYTES_MAX: Final = 64 << 10
NODE_ID_BYTES: Final = 16
FORWARD_ID_BYTES: Final = 24  # a node id and a message id


class CacheStage(Stage):
    """Sends one cache after the other, each with its oldest ids first."""

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
                return False  # an id of an address that does not exist is not remembered
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
            name, duplicate_id = self._next(self.ids)
            link.sender.ship(Shipment([], [carrier(name, duplicate_id, now)]))
        return not self.ids and link.sender.idle()

    def _members(self) -> dict[bytes, bool]:
        """Returns the prefixes of the ids of messages that were forwarded by members that are Artemis brokers."""
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
        """Requests `updateDuplicateIdCache` for the next ids. Bytes that are no UTF-8 are sent as lone surrogates."""
        name = ids[0][0]
        some: list[object] = []
        left = BYTES_MAX
        while ids and ids[0][0] == name and len(some) < IDS_MAX:
            left -= len(ids[0][1])
            if left < 0 and some:
                break
            some.append(self._next(ids)[1].decode("utf-8", "surrogateescape"))
        self.asking = True
        link = self.mover.link
        link.call(now, "broker", "updateDuplicateIdCache", [name, some], self._answered)

    def _next(self, ids: deque[tuple[str, bytes]]) -> tuple[str, bytes]:
        """Takes the next id, which the target is given now."""
        taken = ids.popleft()
        self.mover.carried[taken] = True
        return taken

    def _answered(self, now: int, succeeded: bool, value: object) -> None:
        self.asking = False
        if not succeeded:
            self.mover.broker.trace.event(
                "scale_down_refused", {"queue": "(duplicate ids)", "why": str(value)}
            )


def carrier(cache: str, duplicate_id: bytes, now: int) -> Message:
    """Returns an empty message that carries the id and is routed to no queue."""
    bridged = cache.startswith(BRIDGE_PREFIX)
    address = cache[len(BRIDGE_PREFIX) :] if bridged else cache
    message = Message.create(address, b"", 0, False, now // 1_000_000, 4)
    message.properties.put(ROUTE_TO, b"")
    message.properties.put(BRIDGE_DUPLICATE if bridged else "_AMQ_DUPL_ID", duplicate_id)
    return message
