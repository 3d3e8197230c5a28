"""Routing at an address that has rules (kernel/routing/address_rules.py): the message's expiration and the diverts.

Follows BindingsImpl.route (exclusive diverts first: if one takes the message, the address' queues do not), DivertImpl
and PostOfficeImpl.route, with two differences. A message passes each divert once, where Artemis would loop for ever. A
message counts as routed if a queue takes one of its copies, where Artemis may make it a dead letter besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, BrokerError
from atalanta.kernel.queue.delivery.origin_headers import remember_origin
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.registry.duplicate_spaces import application_id
from atalanta.kernel.routing.divert_config import PASS, STRIP
from atalanta.message.fqqn import split_fqqn
from atalanta.message.properties import Byte

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.publish.duplicate_detection import DuplicateDetection
    from atalanta.kernel.publish.message_router import MessageRouter
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.address_rules import AddressRules
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.message.message import Message

COPIES_MAX: Final = 1_000  # of one message: diverts that lead to each other multiply the copies


class DivertRouting:
    """Routes messages at addresses with and without rules, and creates the addresses that diverts lead to."""

    def __init__(
        self,
        router: MessageRouter,
        addresses: AddressRegistry,
        queues: QueueRegistry,
        duplicates: DuplicateDetection,
        settings: AddressSettingsRepository,
        trace: Trace,
    ) -> None:
        self.router = router
        self.addresses = addresses
        self.queues = queues
        self.duplicates = duplicates
        self.settings = settings
        self.trace = trace

    def route(
        self, now: int, plan: RoutingPlan, address: Address, only_queue: str, may_refuse: bool
    ) -> None:
        """Sets the routes of the plan's message at `address`, and of the copies that diverts make.

        `may_refuse`: a sender waits for the answer. BrokerError is raised if the settings forbid to create the address
        that a divert leads to, and Undecided as in `MessageRouter.routes`.
        """
        if address.rules is None:
            plan.routes = self.router.routes(now, plan, address, only_queue, may_refuse)
        else:
            DivertCopies(self, now, plan, may_refuse).route(plan, address, only_queue, [])

    def route_unrouted(self, now: int, plan: RoutingPlan, name: str) -> None:
        """Routes a message that no queue of address `name` takes to the dead-letter address, if the settings say so."""
        DivertCopies(self, now, plan, False).route_unrouted(plan, name, [])

    def report_lost(self, message_id: int, queue: str, target: str, why: str) -> None:
        """Reports that no queue of `target` takes the message that leaves `queue`."""
        self.trace.count("messages_moved_nowhere")
        self.trace.event(
            "moved_message_lost",
            {
                "message": message_id,
                "queue": queue,
                "why": f"{why}, and no queue of {target} takes it",
            },
        )

    def divert_exclusively(self, now: int, plan: RoutingPlan, address: Address) -> bool:
        """Applies exclusive diverts to a peer's message, which names its queues; returns true if one took the message.
        """
        rules = address.rules
        if rules is None or not rules.exclusive:
            return False
        return DivertCopies(self, now, plan, False).divert_exclusively(plan, rules, [])

    def target(self, now: int, name: str, routing_type: int) -> Address | None:
        """Returns the address of a copy, created as for a sender (PostOfficeImpl.checkAddress)."""
        address = self.addresses.by_name.get(name)
        settings = self.settings.match(name)
        if address is None or not address.supports(routing_type):
            if not settings.auto_create_addresses:
                raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {name} of a divert is missing")
            address = self.addresses.ensure(now, name, routing_type, True, True)
        if routing_type != ANYCAST or address.anycast_count > 0 or name in self.queues.by_name:
            return address
        group = address.groups.get(name)
        if group is not None and group.remotes:
            return address
        if not settings.auto_create_queues:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"queue {name} of a divert is missing")
        spec = QueueSpec(name, name, ANYCAST)
        spec.auto_created = True
        spec.take_defaults(settings)
        self.queues.create(now, spec)
        return address


class DivertCopies:
    """The copies that diverts make of one message, also of its copies; they are collected in `root.diverted`."""

    def __init__(self, routing: DivertRouting, now: int, root: RoutingPlan, may_refuse: bool) -> None:
        self.routing = routing
        self.now = now
        self.root = root
        self.may_refuse = may_refuse

    def route(self, plan: RoutingPlan, address: Address, only_queue: str, passed: list[str]) -> None:
        """Routes the plan's message at the address. `passed`: the diverts that this copy has passed already."""
        rules = address.rules
        if rules is not None:
            if rules.expiry is not None:
                rules.expiry.apply(plan.message, self.now)
            if rules.exclusive and self.divert_exclusively(plan, rules, passed):
                return
        plan.routes = self.routing.router.routes(
            self.now, plan, address, only_queue, self.may_refuse
        )
        if rules is not None:
            for group in rules.copying:
                divert = group.choose(plan.message, passed)
                if divert is not None:
                    self._send_on(plan, divert, [*passed, divert.name])
                    if divert.marked_by:
                        plan.message.remove_property(divert.marked_by)  # the mark is for the copy that is kept

    def route_unrouted(self, plan: RoutingPlan, name: str, passed: list[str]) -> None:
        """Routes to the dead-letter address of address `name`, which took no copy of the message.

        Follows send-to-dla-on-no-route (PostOfficeImpl.maybeSendToDLA). As in Artemis, the dead-letter address and its
        queue are not created for the message.
        """
        routing = self.routing
        settings = routing.settings.match(name)
        if not settings.send_to_dla_on_no_route:
            return
        target = settings.dead_letter_address
        if target is None:
            routing.trace.event("dead_letter_address_missing", {"address": name})
            return
        message = plan.message
        dead, only_queue = split_fqqn(target)
        address = routing.addresses.routable(dead)
        plan.origin = plan
        before = self._copies()
        if address is not None:
            remember_origin(message, message, None)
            message.properties.remove("_AMQ_ROUTING_TYPE")
            message.expiration = 0
            message.address = target
            self.route(plan, address, only_queue, passed)
        if not self._took(plan, before):
            routing.report_lost(message.id, name, target, "no queue took it")

    def divert_exclusively(self, plan: RoutingPlan, rules: AddressRules, passed: list[str]) -> bool:
        taken = False
        for divert in rules.exclusive:
            if divert.name not in passed and divert.takes(plan.message):
                self._send_on(plan, divert, [*passed, divert.name])
                taken = True
        return taken

    def _send_on(self, plan: RoutingPlan, divert: Divert, passed: list[str]) -> None:
        routing = self.routing
        if self.root.diverted is None:
            self.root.diverted = []
        for target in divert.targets:
            if len(self.root.diverted) >= COPIES_MAX:
                routing.trace.event(
                    "divert_copies_cut", {"divert": divert.name, "limit": COPIES_MAX}
                )
                return
            copy = diverted_copy(plan.message, divert, target)
            name, only_queue = split_fqqn(target)
            address = self._target(name, copy.routing_type)
            twin = RoutingPlan(copy)
            twin.origin = plan
            if not divert.automatic:  # else the copy is kept each time its own address took the message
                duplicate_id = copy.duplicate_id
                if duplicate_id is not None:
                    known = application_id(name, duplicate_id)
                    if routing.duplicates.find_id(twin, name, known) >= 0:
                        continue
            self.root.diverted.append(twin)
            before = self._copies()
            if address is None:
                routing.trace.count("diverted_nowhere")
                routing.trace.event(
                    "divert_address_missing", {"divert": divert.name, "address": name}
                )
            else:
                self.route(twin, address, only_queue, passed)
                taken = self._took(twin, before)
                address.count_routed(taken)
                if taken:
                    continue
            if not divert.automatic:
                self.route_unrouted(twin, name, passed)

    def _copies(self) -> int:
        """Returns the number of copies made so far."""
        return 0 if self.root.diverted is None else len(self.root.diverted)

    def _took(self, plan: RoutingPlan, before: int) -> bool:
        """Returns True if a queue takes the plan's message, or a copy made when there were `before` copies."""
        if plan.routes:
            return True
        copies = self.root.diverted
        return copies is not None and any(copy.routes for copy in copies[before:])

    def _target(self, name: str, routing_type: int) -> Address | None:
        """Returns the copy's address. It is created if the routing type is known and that is allowed."""
        routing = self.routing
        if routing_type >= 0:
            try:
                return routing.target(self.now, name, routing_type)
            except BrokerError:
                if self.may_refuse:
                    raise
        return routing.addresses.routable(name)


def diverted_copy(message: Message, divert: Divert, target: str) -> Message:
    """Returns the copy of DivertImpl.route: `_AMQ_ORIG_*` name the message and the divert; the expiration stays."""
    copy = message.copy(0)
    remember_origin(copy, message, divert.name)
    copy.address = target
    properties = copy.properties
    if divert.routing_type == STRIP:
        properties.remove("_AMQ_ROUTING_TYPE")
    elif divert.routing_type != PASS:
        properties.put("_AMQ_ROUTING_TYPE", Byte(divert.routing_type))
    for name, value in divert.config.headers.items():
        properties.put(name, value)
    copy.properties_changed()
    return copy
