"""Routing at an address that has rules (kernel/routing/address_rules.py): the message's expiration and the diverts.

Follows BindingsImpl.route (exclusive diverts first: if one takes the message, the address' queues do not), DivertImpl
and PostOfficeImpl.route, with two differences. A message passes each divert once, where Artemis would loop for ever. A
message that an exclusive divert took counts as routed, where Artemis may send it to the dead-letter address besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, BrokerError
from atalanta.kernel.queue.delivery.origin_headers import remember_origin
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
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
        self, now: int, plan: Plan, address: Address, only_queue: str, may_create: bool
    ) -> None:
        """Sets the routes of the plan's message at `address`, and of the copies that diverts make.

        `may_create`: addresses of diverts may be created; BrokerError is raised if the settings forbid that.
        """
        rules = address.rules
        if rules is None:
            plan.routes = self.router.routes(now, plan, address, only_queue, may_create)
        else:
            DivertCopies(self, now, plan, may_create).route(plan, address, rules, only_queue, [])

    def divert_exclusively(self, now: int, plan: Plan, address: Address) -> bool:
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
                raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {name} of a divert is missing")
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

    def __init__(self, routing: DivertRouting, now: int, root: Plan, may_create: bool) -> None:
        self.routing = routing
        self.now = now
        self.root = root
        self.may_create = may_create

    def route(
        self, plan: Plan, address: Address, rules: AddressRules, only_queue: str, passed: list[str]
    ) -> None:
        """Routes the plan's message at the address. `passed`: the diverts that this copy has passed already."""
        message = plan.message
        if rules.expiry is not None:
            rules.expiry.apply(message, self.now)
        if rules.exclusive and self.divert_exclusively(plan, rules, passed):
            return
        plan.routes = self.routing.router.routes(
            self.now, plan, address, only_queue, self.may_create
        )
        for group in rules.copying:
            divert = group.choose(message, passed)
            if divert is not None:
                self._send_on(plan, divert, [*passed, divert.name])

    def divert_exclusively(self, plan: Plan, rules: AddressRules, passed: list[str]) -> bool:
        taken = False
        for divert in rules.exclusive:
            if divert.name not in passed and divert.takes(plan.message):
                self._send_on(plan, divert, [*passed, divert.name])
                taken = True
        return taken

    def _send_on(self, plan: Plan, divert: Divert, passed: list[str]) -> None:
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
            if address is None:
                routing.trace.count("diverted_nowhere")
                routing.trace.event(
                    "divert_address_missing", {"divert": divert.name, "address": name}
                )
                continue
            twin = Plan(copy)
            twin.origin = plan
            if not divert.automatic:  # else the copy is kept each time its own address took the message
                duplicate_id = copy.duplicate_id
                if duplicate_id is not None and routing.duplicates.find_id(twin, name, duplicate_id) >= 0:
                    continue
            self.root.diverted.append(twin)
            if address.rules is None:
                twin.routes = routing.router.routes(
                    self.now, twin, address, only_queue, self.may_create
                )
            else:
                self.route(twin, address, address.rules, only_queue, passed)
            if twin.routes:
                address.routed += 1

    def _target(self, name: str, routing_type: int) -> Address | None:
        """Returns the copy's address. It is created if the routing type is known and that is allowed."""
        if not self.may_create or routing_type < 0:
            return self.routing.addresses.by_name.get(name)
        return self.routing.target(self.now, name, routing_type)


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
