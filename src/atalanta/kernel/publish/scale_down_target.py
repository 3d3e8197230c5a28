"""The target of a scale-down: takes over the messages of a node that leaves.

The leaving node sends the messages like a peer, by binding ids of this node (`_AMQ_ROUTE_TO`). A second header,
`_AMQ_SCALEDOWN_TO`, holds ids of a third node, for which the message was waiting
(BindingsImpl.handleScaledDownMessage). Acknowledged messages: kernel/publish/acknowledged_routes.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.routing.bindings import OFF, RemoteBinding
from atalanta.message.internal_headers import (
    FORWARD_DUPLICATE,
    ORIGIN,
    SCALEDOWN_NODE,
    SCALEDOWN_TO,
)
from atalanta.message.message import ROUTE_TO

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.queue.delivery.bridge_origin import Origins
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.bindings import BindingRegistry
    from atalanta.message.message import Message

NODES_MAX: Final = 1_000
KEY_PREFIX: Final = "absorbed."  # of the journal's values
BINDINGS_MAX: Final = 100_000


@mypyc_attr(allow_interpreted_subclasses=True)
class ForwardQueues:
    """Finds the store-and-forward queue of another node; this base class knows no other node."""

    def forward_queue(self, now: int, node_id: str, make: bool) -> Queue | None:
        """Returns the store-and-forward queue of that node; None if there is none and none may or can be made."""
        return None


class ScaleDownTarget:
    """The scale-downs to this node.

    `nodes`: ids of nodes whose messages have all arrived. `bindings`: ids of this node for queues of a node that is
    absent, by (id of the store-and-forward queue, id at that node). `node_bindings`: all bindings of the node.
    """

    def __init__(
        self,
        addresses: AddressRegistry,
        node_bindings: BindingRegistry,
        values: NamedValues,
        origins: Origins,
    ) -> None:
        self.addresses = addresses
        self.node_bindings = node_bindings
        self.values = values
        self.origins = origins
        self.forward_queues: ForwardQueues = ForwardQueues()
        self.nodes: dict[str, bool] = {}
        self.bindings: dict[tuple[int, int], RemoteBinding] = {}

    def start(self, forward_queues: ForwardQueues) -> None:
        """Restores `nodes` from the journal; from now on messages may wait for the nodes of `forward_queues`."""
        self.forward_queues = forward_queues
        for key in self.values.keys(KEY_PREFIX):
            self.nodes[key[len(KEY_PREFIX) :]] = True

    def add(self, node_id: str) -> None:
        """Records the node, also for restarts; the oldest nodes are forgotten beyond NODES_MAX."""
        if len(self.nodes) >= NODES_MAX and node_id not in self.nodes:
            oldest = next(iter(self.nodes))
            del self.nodes[oldest]
            self.values.forget(KEY_PREFIX + oldest)
        self.nodes[node_id] = True
        self.values.set(KEY_PREFIX + node_id, b"")

    def redirect(self, now: int, message: Message) -> None:
        """Replaces the ids on a third node by `_AMQ_ROUTE_TO` with this node's bindings to that node.

        If this node has never met the third node, a multicast message waits for that node, since the other
        subscriptions have got their copies. A message that the third node may have already waits for that node, too. An
        anycast message is routed by its address. A real Artemis does not name the node of the ids: a message whose ids
        are unknown is routed by its address as well.
        """
        properties = message.properties
        raw_ids = properties.get(SCALEDOWN_TO)
        node_id = properties.get(SCALEDOWN_NODE)
        properties.remove(SCALEDOWN_TO)
        properties.remove(SCALEDOWN_NODE)
        if ORIGIN in properties:
            self.origins.note()
        if not isinstance(raw_ids, bytes):
            return
        forward: Queue | None = None
        if isinstance(node_id, str):
            owed = FORWARD_DUPLICATE in properties or not self._is_anycast(message)
            forward = self.forward_queues.forward_queue(now, node_id, owed)
        ids = b""
        away = False
        for start in range(0, len(raw_ids) - 7, 8):
            remote_id = int.from_bytes(raw_ids[start : start + 8], "big", signed=True)
            remote: RemoteBinding | None = None
            if forward is not None or not isinstance(node_id, str):
                remote = self._binding_to(message.address, remote_id, forward)
            if remote is not None:
                away = away or not remote.connected
                ids += remote.id.to_bytes(8, "big", signed=True)
        if ids:
            properties.put(ROUTE_TO, ids)
            if away and isinstance(node_id, str):
                properties.put(SCALEDOWN_NODE, node_id)  # the message has been waiting for that node
        else:
            properties.remove(FORWARD_DUPLICATE)
            if not isinstance(node_id, str):
                # A leaving Atalanta names each target once, so a repeat is one.
                properties.remove(BRIDGE_DUPLICATE)

    def _is_anycast(self, message: Message) -> bool:
        if message.routing_type >= 0:
            return message.routing_type == ANYCAST
        address = self.addresses.by_name.get(message.address)
        return address is not None and not address.multicast

    def _binding_to(
        self, address_name: str, remote_id: int, forward: Queue | None
    ) -> RemoteBinding | None:
        address = self.addresses.by_name.get(address_name)
        if address is not None:
            for remote in address.remotes():
                if remote.remote_id == remote_id and (
                    forward is None or remote.forward is forward
                ):
                    return remote
        if forward is None:
            return None
        # The third node is known and its queue is not: that is enough to keep the message for that node.
        key = (forward.id, remote_id)
        found = self.bindings.get(key)
        if found is None and len(self.bindings) < BINDINGS_MAX:
            found = RemoteBinding(
                self.node_bindings.take_id(), address_name, "", "", remote_id, 1, forward, OFF
            )
            self.bindings[key] = found
            self.node_bindings.add(found)
        return found
