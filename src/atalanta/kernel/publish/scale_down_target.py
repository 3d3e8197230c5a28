"""What a node does that takes over the messages of one that leaves (fact sheet A1.f).

The leaving node sends them like a peer, by binding ids of ours (`_AMQ_ROUTE_TO`). Two headers are its own:
`_AMQ_SCALEDOWN_TO` holds ids of a third node, for which the message was waiting there (BindingsImpl.
handleScaledDownMessage); `_AMQ_ACK_ROUTE_TO` names queues in which a prepared transaction has acknowledged the
message already (BindingsImpl.routeFromCluster): it lies there again only if that is rolled back.
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
    """Where what is for another node waits; this base class knows no other node."""

    def forward_queue(self, now: int, node_id: str, make: bool) -> Queue | None:
        """The store-and-forward queue of that node; None if there is none, and none may or can be made."""
        return None


class Absorbed:
    """`nodes`: whose messages have all come here. `bindings`: ids of ours for queues of a node that is not there."""

    def __init__(self) -> None:
        self.ways: Ways = Ways()
        self.nodes: dict[str, bool] = {}
        self.bindings: dict[tuple[int, int], RemoteBinding] = {}

    def add(self, broker: Broker, node_id: str) -> None:
        """Remembered over restarts; the oldest are forgotten beyond NODES_MAX."""
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
    """Ids on a third node become `_AMQ_ROUTE_TO` with ids of our own bindings to it.

    Of a node that this one has never met: a multicast message waits for it, since the other subscriptions have got
    their copies, and so does what the node may have already; an anycast message is routed by its address. As is any
    message of which a real Artemis does not say whose ids it has, where they are nobody's.
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
            properties.remove(BRIDGE_DUPLICATE)  # ours says of each message once where it goes: a repeat is one


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
    # We know the way and not the queue: enough to keep the message for that node.
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


# -- what a prepared transaction has acknowledged -----------------------------------------------------
def set_acknowledged_aside(plan: Plan, message: Message) -> None:
    """Of the plan's routes, those that `_AMQ_ACK_ROUTE_TO` names."""
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
    """They enter their queues as nobody's: a commit finishes them, a rollback gives them to consumers.

    Returns what was written: the plan itself, or a copy of it where the transaction sends the message as well.
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
