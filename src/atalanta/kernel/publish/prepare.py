"""The preparation of a message before any record is written: the duplicate check and the routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, BrokerError
from atalanta.kernel.publish.deduplicate import repeat, repeat_of, restore_bridge_id
from atalanta.kernel.publish.divert_routing import divert_exclusively, route_plan
from atalanta.kernel.publish.grouping import Undecided, route_grouped
from atalanta.kernel.publish.reroute import dead_letter_unrouted
from atalanta.kernel.publish.scale_down_target import set_acknowledged_aside
from atalanta.kernel.publish.unknown_binding import route_stray
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE, BRIDGE_PREFIX
from atalanta.kernel.routing.router import route, route_by_ids
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import ACK_ROUTE_TO, ORIGIN
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker


def prepare(broker: Broker, now: int, message: Message) -> Plan:
    """Checks for duplicates and finds the routes; changes round-robin positions and the message's own headers.

    Diverts may create the address they lead to, as a sender may.
    """
    plan = Plan(message)
    if message.special and message.has_property(ROUTE_TO):
        _prepare_from_peer(broker, now, plan, message)
        return plan
    name, only_queue = split_fqqn(message.address)
    address = broker.addresses.get(name)
    if address is None:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {name} does not exist")
    if message.special:
        plan.repeats_lsn = repeat_of(broker, plan, message, name)
        if plan.repeats_lsn >= 0:
            return plan
    handler = broker.grouping
    try:
        if address.rules is not None:
            route_plan(broker, now, plan, address, only_queue, True)
        elif handler is not None and message.group_id is not None:
            plan.routes = route_grouped(broker, handler, now, plan, address, only_queue, True)
        else:
            plan.routes = route(address, message, message.routing_type, only_queue)
    except Undecided:
        restore_bridge_id(plan)  # the message is prepared again
        raise
    if plan.routes or plan.diverted is not None:
        address.routed += 1
    else:
        address.unrouted += 1
        if broker.settings.match(name).send_to_dla_on_no_route:
            dead_letter_unrouted(broker, now, plan, name)
    return plan


def _prepare_from_peer(broker: Broker, now: int, plan: Plan, message: Message) -> None:
    """Prepares a message that another node forwards: routed by binding ids, repeats dropped by the bridge's id."""
    raw_ids = message.property_value(ROUTE_TO)
    bridge_id = message.property_value(BRIDGE_DUPLICATE)
    if isinstance(bridge_id, bytes):
        name = BRIDGE_PREFIX + message.address
        plan.repeats_lsn = repeat(broker, plan, name, bridge_id)
        if plan.repeats_lsn >= 0:
            return
    else:
        duplicate_id = message.duplicate_id
        if duplicate_id is not None:
            plan.repeats_lsn = repeat(broker, plan, message.address, duplicate_id)
            if plan.repeats_lsn >= 0:
                return
    message.remove_property(ROUTE_TO)
    message.remove_property(BRIDGE_DUPLICATE)
    if message.special and message.has_property(ORIGIN):
        broker.origins.note()
    address = broker.addresses.get(message.address)
    if address is not None and divert_exclusively(broker, now, plan, address):
        return
    if isinstance(raw_ids, bytes):
        plan.routes, unknown = route_by_ids(raw_ids, broker.queues_by_id, broker.remotes_by_id)
        if unknown and not plan.routes:
            _route_again(broker, now, plan, message, unknown)
        if message.special and message.has_property(ACK_ROUTE_TO):
            set_acknowledged_aside(plan, message)


def _route_again(broker: Broker, now: int, plan: Plan, message: Message, unknown: list[int]) -> None:
    """Routes a message whose peer named unknown queues by its address, and reports the bindings."""
    broker.trace.event(
        "route_to_unknown_binding", {"address": message.address, "bindings": str(unknown)}
    )
    plan.routes = route_stray(broker, now, message, unknown)
