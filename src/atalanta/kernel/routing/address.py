"""An address and its bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.memory.address_memory import Account
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.bindings import BindingGroup, RemoteBinding
from atalanta.message.encoding.shared_names import shared_name

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address_rules import AddressRules
    from atalanta.kernel.routing.retroactive_names import Retained
    from atalanta.message.message import Message


class Address:
    """An address of the node: `groups` by routing name, in order of creation."""

    def __init__(self, name: str, anycast: bool, multicast: bool, auto_created: bool) -> None:
        # The fields that every message reads are adjacent: with thousands of addresses they are not in the CPU cache.
        # `sole`: the only binding, if that is a local queue, see sole_queue; `sole_type`: its routing type.
        self.sole: Queue | None = None
        self.sole_type: int = ANYCAST
        self.routed: int = 0
        self.anycast_count: int = 0  # of the local queues
        self.anycast = anycast
        self.multicast = multicast
        self.auto_created = auto_created
        self.internal: bool = False
        self.gone: bool = False  # deleted; another address may have the name by now
        # The name shared with message_codec: a dict look-up finds the same object by identity, without a comparison.
        self.name = shared_name(name)
        self.lsn: int = 0
        self.groups: dict[str, BindingGroup] = {}
        self.local_count: int = 0
        self.created_at: int = 0
        self.queue_left_at: int = 0  # 0: no queue has been removed yet
        self.account: Account = Account()
        self.unrouted: int = 0
        self.swept: bool = False
        self.temporary: bool = False  # created with a temporary queue: it is deleted with its last queue
        self.rules: AddressRules | None = None  # None: no special rules, see kernel/routing/address_rules.py
        self.retained: Retained | None = None  # messages for later queues: kernel/registry/retroactive_addresses.py
        # Wildcard addresses that match this one: their queues receive its messages too.
        self.wildcards: list[Address] | None = None
        self.changes: int = 0  # of the bindings, rules and wildcards

    def supports(self, routing_type: int) -> bool:
        return self.anycast if routing_type == ANYCAST else self.multicast

    def count_routed(self, taken: bool) -> None:
        """Counts a message that was routed here, as taken by a queue or not."""
        if taken:
            self.routed += 1
        else:
            self.unrouted += 1

    def set_routing_types(self, anycast: bool, multicast: bool) -> None:
        """Sets the routing types that queues and messages may have here."""
        self.anycast = anycast
        self.multicast = multicast

    def restore(self, lsn: int, anycast: bool, multicast: bool, auto_created: bool) -> None:
        """Takes over the state in a record of the address, at recovery."""
        self.lsn = lsn
        self.auto_created = auto_created
        self.set_routing_types(anycast, multicast)

    def add_routing_type(self, routing_type: int) -> bool:
        """Adds the routing type; returns False if the address has it already."""
        if self.supports(routing_type):
            return False
        if routing_type == ANYCAST:
            self.anycast = True
        elif routing_type == MULTICAST:
            self.multicast = True
        return True

    def group(self, routing_name: str) -> BindingGroup:
        found = self.groups.get(routing_name)
        if found is None:
            found = BindingGroup(routing_name)
            self.groups[routing_name] = found
        return found

    def sole_queue(self, message: Message) -> Queue | None:
        """Returns the queue that takes the message without any choice; None if `router.route` must choose."""
        queue = self.sole
        if queue is None or queue.filter is not None or queue.closable or queue.special is not None:
            return None
        routing_type = message.routing_type
        if routing_type >= 0 and routing_type != self.sole_type:
            return None
        return queue

    def _note_sole(self) -> None:
        """Updates `sole`; every change of the bindings, rules or wildcards must call it."""
        self.sole = None
        self.changes += 1
        if len(self.groups) == 1 and self.rules is None and self.wildcards is None:
            for group in self.groups.values():
                if len(group.locals) == 1 and not group.remotes:
                    self.sole = group.locals[0]
                    self.sole_type = self.sole.spec.routing_type

    def routing_state(self) -> list[int]:
        """Returns a value that each change of what messages are routed by here makes another one."""
        state = [self.changes]
        for wild in self.wildcards or ():
            state.append(wild.changes)
        return state

    def set_rules(self, rules: AddressRules | None) -> None:
        self.rules = rules
        self._note_sole()

    def set_wildcards(self, wildcards: list[Address] | None) -> None:
        self.wildcards = wildcards
        self._note_sole()

    def add_queue(self, queue: Queue) -> None:
        self.group(queue.routing_name()).locals.append(queue)
        queue.account = self.account
        self.local_count += 1
        if queue.spec.routing_type == ANYCAST:
            self.anycast_count += 1
        self._note_sole()

    def remove_queue(self, queue: Queue) -> None:
        group = self.groups.get(queue.routing_name())
        if group is not None and queue in group.locals:
            group.locals.remove(queue)
            group.position = 0
            self.local_count -= 1
            if queue.spec.routing_type == ANYCAST:
                self.anycast_count -= 1
            if group.empty():
                del self.groups[group.routing_name]
            self._note_sole()

    def add_remote(self, remote: RemoteBinding) -> None:
        self.group(remote.routing_name).remotes.append(remote)
        self._note_sole()

    def remove_remote(self, remote: RemoteBinding) -> None:
        group = self.groups.get(remote.routing_name)
        if group is not None and remote in group.remotes:
            group.remotes.remove(remote)
            group.position = 0
            if group.empty():
                del self.groups[remote.routing_name]
            self._note_sole()

    def queues(self) -> list[Queue]:
        found: list[Queue] = []
        for group in self.groups.values():
            found.extend(group.locals)
        return found

    def remotes(self) -> list[RemoteBinding]:
        found: list[RemoteBinding] = []
        for group in self.groups.values():
            found.extend(group.remotes)
        return found
