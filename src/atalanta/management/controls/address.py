"""Attributes and operations of an address: resource `address.NAME` (AddressControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.memory.address_memory import UNLIMITED
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.management.controls.control import Control, no_work
from atalanta.management.operations.destinations import routing_types
from atalanta.management.operations.message_changes import Removal
from atalanta.management.request.call import Attributes, Call, Operations, Parameters, flag_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.registry.diverts import DivertRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.management.operations.message_sender import MessageSender
    from atalanta.management.operations.roles import Roles
    from atalanta.management.pauses import Pauses
    from atalanta.management.request.jobs import Jobs


def address_id(name: str) -> int:
    """Returns a stable number for the name (FNV-1a, 48 bits), since an address has no id of its own."""
    value = 0xCBF29CE484222325
    for byte in name.encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value >> 16


def bound(address: Address) -> list[Address]:
    """Returns the address and the wildcard addresses whose queues get its messages too (WildcardAddressManager)."""
    return [address, *(address.wildcards or ())]


def local_names(address: Address) -> list[str]:
    return [queue.name for one in bound(address) for queue in one.queues()]


def remote_names(address: Address) -> list[str]:
    return [remote.cluster_name for one in bound(address) for remote in one.remotes()]


def message_count(address: Address) -> int:
    return sum(queue.message_count for one in bound(address) for queue in one.queues())


def limit_percent(address: Address) -> int:
    """Returns the used percentage of max-size-bytes."""
    account = address.account
    return (
        0
        if account.limit_bytes >= UNLIMITED
        else account.bytes * 100 // max(1, account.limit_bytes)
    )


def shown_limit(limit: int) -> int:
    return -1 if limit >= UNLIMITED else limit


def prefetch_bytes(address: Address) -> int:
    account = address.account
    return shown_limit(min(account.prefetch_bytes, account.max_read_bytes))


def prefetch_messages(address: Address) -> int:
    account = address.account
    return shown_limit(min(account.prefetch_messages, account.max_read_messages))


def is_paging(address: Address) -> bool:
    return any(queue.paged is not None for queue in address.queues())


def page_count(address: Address) -> int:
    paged = [paged_queue_of(queue) for queue in address.queues()]
    return sum(0 if each is None else len(each.pages) for each in paged)


ATTRIBUTES: Final[Attributes] = {
    "Id": lambda call: address_id(call.address.name),
    "Address": lambda call: call.address.name,
    "RoutingTypes": lambda call: routing_types(call.address),
    "RoutingTypesAsJSON": lambda call: encode_json(routing_types(call.address)),
    "QueueNames": lambda call: local_names(call.address),
    "RemoteQueueNames": lambda call: remote_names(call.address),
    "AllQueueNames": lambda call: local_names(call.address) + remote_names(call.address),
    "QueueCount": lambda call: len(local_names(call.address)),
    "MessageCount": lambda call: message_count(call.address),
    "NumberOfMessages": lambda call: message_count(call.address),
    "RoutedMessageCount": lambda call: call.address.routed,
    "UnRoutedMessageCount": lambda call: call.address.unrouted,
    "AddressSize": lambda call: call.address.account.bytes,
    "AddressLimitPercent": lambda call: limit_percent(call.address),
    "Paging": lambda call: is_paging(call.address),
    "NumberOfPages": lambda call: page_count(call.address),
    "NumberOfBytesPerPage": lambda call: call.address.account.page_size_bytes,
    "MaxPageReadBytes": lambda call: shown_limit(call.address.account.max_read_bytes),
    "MaxPageReadMessages": lambda call: shown_limit(call.address.account.max_read_messages),
    "PrefetchPageBytes": lambda call: prefetch_bytes(call.address),
    "PrefetchPageMessages": lambda call: prefetch_messages(call.address),
    "BlockedViaManagement": lambda call: call.address.account.blocked_by_operator,
    "AutoCreated": lambda call: call.address.auto_created,
    "Internal": lambda call: call.address.internal,
    "Temporary": lambda call: call.address.lsn == 0,
}


class Purge(Removal):
    """The purge of every queue of the address, one queue after the other."""

    def __init__(self, plans: PlanWriter, call: Call) -> None:
        self.queues = call.address.queues()
        super().__init__(plans, call, self.queues.pop(), None)

    def step(self, now: int) -> bool:
        if not self.queue.deleted and not super().step(now):
            return False
        if not self.queues:
            return True
        self.queue = self.queues.pop()
        self.cursor = 0
        self.scheduled = None
        self.end = self.queue.next_sequence
        return False


class AddressControl(Control):
    """The control of the addresses."""

    def __init__(
        self,
        config: BrokerConfig,
        addresses: dict[str, Address],
        memory: Memory,
        plans: PlanWriter,
        pauses: Pauses,
        jobs: Jobs,
        roles: Roles,
        sender: MessageSender,
        diverts: DivertRegistry,
    ) -> None:
        self.addresses = addresses
        self.memory = memory
        self.plans = plans
        self.pauses = pauses
        self.jobs = jobs
        self.sender = sender
        self.diverts = diverts
        attributes: Attributes = {
            **ATTRIBUTES,
            "Paused": lambda call: call.address.name in pauses.addresses,
            "RetroactiveResource": lambda call: is_resource(config, call.address.name),
            "BindingNames": self.binding_names,
            "CurrentDuplicateIdCacheSize": self.duplicate_ids,
            "Roles": lambda call: roles.as_arrays(call.address.name),
            "RolesAsJSON": lambda call: roles.as_json(call.address.name),
        }
        operations: Operations = {
            "block": [("", self.block)],
            "unblock": [("", self.unblock)],
            "schedulePageCleanup": [("", no_work)],
            "pause": [("", self.pause), ("b", self.pause)],
            "resume": [("", self.resume)],
            "purge": [("", self.purge)],
            "clearDuplicateIdCache": [("", self.clear_duplicate_ids)],
            "sendMessage": [("miSbSS", self.send_message), ("miSbSSb", self.send_message)],
        }
        super().__init__(attributes, operations)

    def select(self, call: Call) -> bool:
        call.given_address = self.addresses.get(call.name)
        return call.given_address is not None

    def binding_names(self, call: Call) -> object:
        """Returns the names of the queues here and at members, and of the diverts."""
        diverts = [divert.name for divert in self.diverts.of(call.address.name)]
        return local_names(call.address) + remote_names(call.address) + diverts

    def clear_duplicate_ids(self, call: Call, given: Parameters) -> object:
        call.command.begin_change()
        return self.plans.duplicates.clear(call.address.name)

    def duplicate_ids(self, call: Call) -> object:
        cache = self.plans.duplicates.by_name.get(call.address.name)
        return 0 if cache is None else len(cache.ids)

    def pause(self, call: Call, given: Parameters) -> object:
        self.pauses.pause_address(call.address, len(given) > 0 and flag_of(given, 0))
        return None

    def resume(self, call: Call, given: Parameters) -> object:
        self.pauses.resume_address(call.address)
        return None

    def purge(self, call: Call, given: Parameters) -> object:
        if call.address.local_count == 0:
            return 0
        return self.jobs.run(Purge(self.plans, call))

    def send_message(self, call: Call, given: Parameters) -> object:
        return self.sender.send(call, call.address.name, given)

    def block(self, call: Call, given: Parameters) -> object:
        """Stops new credits for senders until `unblock` or the next start. Credits already granted stay valid."""
        account = call.address.account
        if account.blocked_by_operator:
            return False
        call.command.begin_change()
        account.blocked_by_operator = True
        self.memory.refuse(account)
        return True

    def unblock(self, call: Call, given: Parameters) -> object:
        call.command.begin_change()
        call.address.account.blocked_by_operator = False
        self.memory.freed = True
        return None
