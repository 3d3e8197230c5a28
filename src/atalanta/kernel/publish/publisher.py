"""The publisher of messages: duplicate check, routes, one journal record.

`publish` is the hot path. When the record is durable, the queues (kernel/queue/queue.py) enqueue the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import REPEATED, UNROUTED
from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    QUEUE_DOES_NOT_EXIST,
    BrokerError,
)
from atalanta.kernel.publish.acknowledged_routes import set_acknowledged_aside
from atalanta.kernel.publish.duplicate_detection import (
    headers_of_links,
    put_back,
    repeat_error,
    restore_bridge_id,
)
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.duplicate_spaces import BRIDGE_PREFIX, IMPORT, application_id
from atalanta.kernel.routing.router import add_remote_route, join_route, route_by_ids
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import (
    ACK_ROUTE_TO,
    FORWARD_DUPLICATE,
    ORIGIN,
    SCALEDOWN_NODE,
)
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.publish.divert_routing import DivertRouting
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.publish.unknown_bindings import UnknownBindings
    from atalanta.kernel.queue.delivery.bridge_origin import Origins
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.bindings import RemoteBinding

FEW_MAX: Final = 100


class Publisher:
    """Publishes the messages of senders and peers."""

    def __init__(
        self,
        plans: PlanWriter,
        diverts: DivertRouting,
        unknown_bindings: UnknownBindings,
        origins: Origins,
    ) -> None:
        self.plans = plans
        self.store = plans.store
        self.diverts = diverts
        self.router = diverts.router
        self.step_work_max: int = diverts.router.config.step_work_max
        # So many messages of a transaction are always one step.
        self.few_max: int = max(1, min(FEW_MAX, self.step_work_max // 2))
        self.duplicates = diverts.duplicates
        self.registry = diverts.addresses
        self.addresses: dict[str, Address] = diverts.addresses.by_name
        self.queues_by_id: dict[int, Queue] = diverts.queues.by_id
        # A peer's message names remote bindings like local queues.
        self.remotes_by_id: dict[int, RemoteBinding] = unknown_bindings.bindings.remotes
        self.unknown_bindings = unknown_bindings
        self.origins = origins
        self.trace = diverts.trace

    def publish(
        self,
        now: int,
        message: Message,
        endpoint: Reply | None,
        token: int,
        known: Address | None = None,
    ) -> int:
        """Routes, journals and enqueues one message; calls `endpoint.done(token)` when the message is durable.

        Returns the number of queues that take the message. BrokerError if the address is unknown and may not be
        created. `known`: the message's address, if the caller has found it already.
        """
        if not message.special and message.sent_id is None:
            address = self.addresses.get(message.address) if known is None else known
            if address is not None:
                queue = address.sole_queue(message)
                if queue is not None:
                    address.routed += 1
                    self.store.publish_to_one(message, queue, endpoint, token)
                    return 1
        plan = self.prepare(now, message)
        if plan.repeats_lsn >= 0:
            if endpoint is not None:
                endpoint.notice(token, REPEATED)
            self.store.reply_when_durable(plan.repeats_lsn, endpoint, token)
            return 0
        if plan.unrouted and endpoint is not None:
            endpoint.notice(token, UNROUTED)
        self.plans.commit(plan, endpoint, token)
        return len(plan.routes)

    def prepare(self, now: int, message: Message) -> RoutingPlan:
        """Checks for duplicates and finds the routes; changes round-robin positions and the message's own headers.

        Nothing is written. Diverts may create the address they lead to, as a sender may.
        """
        plan = RoutingPlan(message)
        if message.special and message.has_property(ROUTE_TO):
            self._prepare_from_peer(now, plan, message)
            return plan
        name, only_queue = split_fqqn(message.address)
        address = self.registry.routable(name)
        if address is None:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} does not exist")
        if message.special or message.sent_id is not None:
            plan.repeats_lsn = self.duplicates.find(plan, message, name)
            if plan.repeats_lsn >= 0:
                return plan
        try:
            self.diverts.route(now, plan, address, only_queue, True)
        except Undecided:
            restore_bridge_id(plan)  # the message is prepared again
            raise
        taken = plan.is_routed()
        address.count_routed(taken)
        if not taken:
            self.diverts.route_unrouted(now, plan, name)
            plan.unrouted = not plan.is_routed() and expects_queue(address, message.routing_type)
        return plan

    def exhaustion(self, messages: list[Message]) -> BrokerError | None:
        """Returns the error for a transaction while the disk has no room; None if it holds a repeat, whose error tells
        its sender that the messages are there."""
        error = self.store.memory.exhaustion()
        if error is not None and any(self.duplicates.knows(each) for each in messages):
            return None
        return error

    def prepare_all(self, now: int, messages: list[Message], strict: bool) -> list[RoutingPlan]:
        """Prepares messages of a transaction. Raises BrokerError with DUPLICATE_ID for a repeat.

        With `strict` a message that no queue takes is an error, too, unless its address may be without subscribers.
        Raises Undecided if the node of a group is not known yet; then the messages can be prepared again.
        """
        plans: list[RoutingPlan] = []
        undecided: list[str] = []
        headers = [] if self.router.grouping is None else headers_of_links(messages)
        for message in messages:
            try:
                plan = self.prepare(now, message)
            except Undecided as waiting:
                undecided.extend(waiting.ids)
                continue
            if plan.repeats_lsn >= 0:
                raise repeat_error(message)
            if strict and plan.unrouted:
                raise BrokerError(QUEUE_DOES_NOT_EXIST, f"no queue of address {message.address} takes the message")
            plans.append(plan)
        if undecided:
            put_back(headers)
            raise Undecided(undecided)
        return plans

    def _prepare_from_peer(self, now: int, plan: RoutingPlan, message: Message) -> None:
        """Prepares a message that another node forwards, or an operator imports: routed by binding ids, repeats dropped
        by the bridge's id. No divert sends an imported one elsewhere."""
        raw_ids = message.property_value(ROUTE_TO)
        bridge_id = message.property_value(BRIDGE_DUPLICATE)
        imported = False
        if isinstance(bridge_id, bytes):
            name = BRIDGE_PREFIX + message.address
            plan.repeats_lsn = self.duplicates.find_id(plan, name, bridge_id)
            if plan.repeats_lsn >= 0:
                return
            imported = bridge_id.startswith(IMPORT)
            if imported:
                self.duplicates.note_own(plan, message)
        else:
            duplicate_id = message.duplicate_id
            if duplicate_id is not None:
                known = application_id(message.address, duplicate_id)
                plan.repeats_lsn = self.duplicates.find_id(plan, message.address, known)
                if plan.repeats_lsn >= 0:
                    return
        message.remove_property(ROUTE_TO)
        message.remove_property(BRIDGE_DUPLICATE)
        if message.special and message.has_property(ORIGIN):
            self.origins.note()
        address = self.registry.routable(message.address)
        if address is not None and not imported and self.diverts.divert_exclusively(now, plan, address):
            return
        if isinstance(raw_ids, bytes):
            plan.routes, unknown, away = route_by_ids(
                raw_ids, self.queues_by_id, self.remotes_by_id
            )
            for remote in away:
                self._route_around(plan, message, remote)
            if away:
                message.remove_property(SCALEDOWN_NODE)
            if unknown:
                self._route_again(now, plan, message, unknown)
            if message.special and message.has_property(ACK_ROUTE_TO):
                set_acknowledged_aside(plan, message)

    def _route_around(self, plan: RoutingPlan, message: Message, away: RemoteBinding) -> None:
        """Routes a message to another binding of its group than that of a member that is away, if there is one.

        The node that chose the member is further off and does not know. A message of a group that a grouping handler
        keeps together, and one that waited for the member at a node that left, wait for the member.
        """
        address = self.addresses.get(away.address)
        group = None if address is None else address.groups.get(away.routing_name)
        if (
            group is not None
            and away in group.remotes
            and (message.group_id is None or self.router.grouping is None)
            and not message.has_property(FORWARD_DUPLICATE)
            and not message.has_property(SCALEDOWN_NODE)
        ):
            place = group.choose(message, message.routing_type, split_fqqn(message.address)[1])
            here = len(group.locals)
            if 0 <= place < here:
                join_route(plan.routes, group.locals[place], b"")
                return
            if place >= here and not group.is_away(place):
                add_remote_route(plan.routes, group.remotes[place - here])
                return
        add_remote_route(plan.routes, away)

    def _route_again(self, now: int, plan: RoutingPlan, message: Message, unknown: list[int]) -> None:
        """Reports the unknown queues that a peer named, and routes the message by its address if it named no other."""
        self.trace.event(
            "route_to_unknown_binding", {"address": message.address, "bindings": str(unknown)}
        )
        if not plan.routes:
            plan.routes = self.unknown_bindings.route(now, message, unknown)


def expects_queue(address: Address, routing_type: int) -> bool:
    """Returns True if a sender may expect that a queue takes its message; a topic may be without subscribers.

    Without a routing type (-1) an address that its first message has created is none that anybody has made a topic.
    """
    if routing_type >= 0:
        return routing_type == ANYCAST
    return address.auto_created or not address.multicast
