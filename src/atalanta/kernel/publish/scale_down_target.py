"""The target of a scale-down: takes over the messages of a node that leaves.

The leaving node sends the messages like a peer, by binding ids of this node (`_AMQ_ROUTE_TO`), with two more headers.
`_AMQ_SCALEDOWN_TO` holds ids of a third node, for which the message was waiting (BindingsImpl.handleScaledDownMessage).
`_AMQ_ACK_ROUTE_TO` names queues in which a prepared transaction has acknowledged the message already
(BindingsImpl.routeFromCluster). The message is in such a queue again only after a rollback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.routing.bindings import OFF, RemoteBinding
from atalanta.message.internal_headers import (
    ACK_ROUTE_TO,
    FORWARD_DUPLICATE,
    ORIGIN,
    SCALEDOWN_NODE,
    SCALEDOWN_TO,
)
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.journal.records import Batch
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

NODES_MAX: Final = 1_000
KEY_PREFIX: Final = "absorbed."
IDS_MAX: Final = 100_000


@mypyc_attr(allow_interpreted_subclasses=True)
class Ways:
    """Finds the store-and-forward queue for another node; this base class knows no other node."""

    def forward_queue(self, now: int, node_id: str, make: bool) -> Queue | None:
        """Returns the store-and-forward queue of that node; None if there is none and none may or can be made."""
        return None


class Absorbed:
    """State of the scale-downs to this node.

    `nodes`: ids of nodes whose messages have all arrived. `bindings`: ids of this node for queues of a node that is
    absent.
    """

    def __init__(self) -> None:
        self.ways: Ways = Ways()
        self.nodes: dict[str, bool] = {}
        self.bindings: dict[tuple[int, int], RemoteBinding] = {}

    def add(self, broker: Broker, node_id: str) -> None:
        """Records the node, also for restarts; the oldest nodes are forgotten beyond NODES_MAX."""
        if len(self.nodes) >= NODES_MAX and node_id not in self.nodes:
            oldest = next(iter(self.nodes))
            del self.nodes[oldest]
            broker.values.forget(KEY_PREFIX + oldest)
        self.nodes[node_id] = True
        broker.values.set(KEY_PREFIX + node_id, b"")

    def restore(self, broker: Broker) -> None:
        for key in broker.values.keys(KEY_PREFIX):
            self.nodes[key[len(KEY_PREFIX) :]] = True




# -- messages that were waiting for a third node ------------------------------------------------------
def redirect(broker: Broker, message: Message) -> None:
    """Replaces the ids on a third node by `_AMQ_ROUTE_TO` with this node's bindings to that node.

    If this node has never met the third node, a multicast message waits for that node, since the other subscriptions
    have got their copies. A message that the third node may have already waits for that node, too. An anycast message
    is routed by its address. A real Artemis does not name the node of the ids: a message whose ids are unknown is
    routed by its address as well.
    """
    properties = message.properties
    raw_ids = properties.get(SCALEDOWN_TO)
    node_id = properties.get(SCALEDOWN_NODE)
    properties.remove(SCALEDOWN_TO)
    properties.remove(SCALEDOWN_NODE)
    if ORIGIN in properties:
        broker.origins.note()
    if not isinstance(raw_ids, bytes):
        return
    forward: Queue | None = None
    if isinstance(node_id, str):
        owed = FORWARD_DUPLICATE in properties or not _anycast(broker, message)
        forward = broker.absorbed.ways.forward_queue(broker.now, node_id, owed)
    ids = b""
    for start in range(0, len(raw_ids) - 7, 8):
        remote_id = int.from_bytes(raw_ids[start : start + 8], "big", signed=True)
        remote: RemoteBinding | None = None
        if forward is not None or not isinstance(node_id, str):
            remote = _binding_to(broker, message.address, remote_id, forward)
        if remote is not None:
            ids += remote.id.to_bytes(8, "big", signed=True)
    if ids:
        properties.put(ROUTE_TO, ids)
    else:
        properties.remove(FORWARD_DUPLICATE)
        if not isinstance(node_id, str):
            properties.remove(BRIDGE_DUPLICATE)  # a leaving Atalanta names each target once, so a repeat is one


def _anycast(broker: Broker, message: Message) -> bool:
    if message.routing_type >= 0:
        return message.routing_type == ANYCAST
    address = broker.addresses.get(message.address)
    return address is not None and not address.multicast


def _binding_to(
    broker: Broker, address_name: str, remote_id: int, forward: Queue | None
) -> RemoteBinding | None:
    address = broker.addresses.get(address_name)
    if address is not None:
        for remote in address.remotes():
            if remote.remote_id == remote_id and (forward is None or remote.forward is forward):
                return remote
    if forward is None:
        return None
    # The third node is known and its queue is not: that is enough to keep the message for that node.
    absorbed = broker.absorbed
    key = (forward.id, remote_id)
    found = absorbed.bindings.get(key)
    if found is None and len(absorbed.bindings) < IDS_MAX:
        found = RemoteBinding(
            broker.take_binding_id(), address_name, "", "", remote_id, 1, forward, OFF
        )
        absorbed.bindings[key] = found
        broker.remotes_by_id[found.id] = found
    return found


# -- messages that a prepared transaction has acknowledged -----------------------------------------
def set_acknowledged_aside(plan: Plan, message: Message) -> None:
    """Moves the routes that `_AMQ_ACK_ROUTE_TO` names from `plan.routes` to `plan.acknowledged`."""
    raw_ids = message.properties.get(ACK_ROUTE_TO)
    message.remove_property(ACK_ROUTE_TO)
    if not isinstance(raw_ids, bytes):
        return
    ids: dict[int, bool] = {}
    for start in range(0, len(raw_ids) - 7, 8):
        ids[int.from_bytes(raw_ids[start : start + 8], "big", signed=True)] = True
    plan.acknowledged = [route for route in plan.routes if route.queue.id in ids]
    plan.routes = [route for route in plan.routes if route.queue.id not in ids]


def store_acknowledged(
    broker: Broker, plan: Plan, batch: Batch, arrived: list[Reference]
) -> Plan:
    """Writes the acknowledged routes: the messages enter their queues without a consumer.

    A commit finishes them; a rollback makes them deliverable. Returns the plan that was written: the plan itself, or a
    copy of it if the transaction sends the message as well.
    """
    assert plan.acknowledged is not None
    there = plan
    if plan.routes:
        there = Plan(plan.message.copy(0))
        there.duplicates = plan.duplicates
        plan.duplicates = []
    there.routes = plan.acknowledged
    plan.acknowledged = None
    for reference in broker.plans.add(there, batch):
        reference.queue.reserve(reference, 1)
        arrived.append(reference)
    return there
