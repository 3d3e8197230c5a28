"""The queues that sessions create and delete, with their permissions; temporary ones end with the connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    ADDRESS_DOES_NOT_EXIST,
    ILLEGAL_STATE,
    INTERNAL_ERROR,
    BrokerError,
)
from atalanta.kernel.registry.addresses import unsupported
from atalanta.kernel.registry.queues import CLOSED
from atalanta.kernel.routing.temporary_names import CONNECTION_ID
from atalanta.kernel.security.resource_limits import QUEUES_PER_USER_MAX, ResourceLimit, limit_of
from atalanta.kernel.security.security import CREATE_ADDRESS, MANAGE
from atalanta.kernel.tasks import Task
from atalanta.message.fqqn import join_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.settings.broker_config import BrokerConfig

# What the deletion of a queue costs, in steps of kernel/tasks.py; the memory of its messages is freed by other ones.
QUEUE_STEPS: Final = 50
REFERENCES_A_STEP: Final = 8


class QueueOwner:
    """A client connection as the owner of queues that are deleted with it.

    Temporary queues have one owner. A transient queue is a shared subscription, deleted after its last user. `bridge`:
    it is a network bridge of this node, whose consumers are no application's. `connection_id`: of an OpenWire client,
    which names its temporary destinations by it; "" for others.
    """

    def __init__(self) -> None:
        self.bridge: bool = False  # a network bridge of this node
        self.connection_id: str = ""
        self.temporary_queues: dict[str, Queue] = {}
        self.transient_queues: dict[str, Queue] = {}

    def names(self, temporary: str) -> bool:
        """Returns True if the client makes that name of a temporary destination: of its connection's id and a number.

        Follows ActiveMQTempDestination.setPhysicalName of Classic, which lets no other connection consume there.
        """
        own = self.connection_id
        return own != "" and temporary.rpartition(":")[0] == own

    def use_transient(self, queue: Queue) -> None:
        """Records that this client uses a shared subscription."""
        if queue.name not in self.transient_queues:
            self.transient_queues[queue.name] = queue
            queue.usage.add_client()

    def hand_over_queues(self, other: QueueOwner) -> None:
        """Moves the queues to another connection of the client."""
        other.temporary_queues.update(self.temporary_queues)
        self.temporary_queues.clear()
        for queue in self.transient_queues.values():
            queue.usage.remove_client()
            other.use_transient(queue)
        self.transient_queues.clear()

    def delete_queues(self, now: int, registry: QueueRegistry) -> None:
        """Deletes the queues: the connection is closed. Many, or behind many unacknowledged messages, in steps.

        Until a queue's turn comes it is `ownerless`: one that is created with its name replaces it.
        """
        queues = list(self.temporary_queues.values())
        for queue in queues:
            queue.ownerless = True
        owned = OwnedQueues(registry, queues)
        self.temporary_queues.clear()
        registry.messages.tasks.add(now, owned)
        for queue in list(self.transient_queues.values()):
            queue.usage.remove_client()
            # The queue may never have had a consumer, whose removal would delete it.
            if queue.usage.clients == 0 and not queue.deleted and queue.consumer_count() == 0:
                registry.delete(now, queue.name, CLOSED)
        self.transient_queues.clear()


class OwnedQueues(Task):
    """The temporary queues of a connection that is closed. Their messages may be on their way back to them before."""

    def __init__(self, registry: QueueRegistry, queues: list[Queue]) -> None:
        self.registry = registry
        self.queues = queues
        queues.reverse()

    def do(self, now: int, most: int) -> int:
        count = 0
        while self.queues and count < most:
            queue = self.queues.pop()
            if not queue.deleted:
                count += QUEUE_STEPS + len(queue.references) // REFERENCES_A_STEP
                self.registry.delete(now, queue.name, CLOSED)
        return count

    def ended(self) -> bool:
        return not self.queues


class SessionQueues:
    """Creates and deletes queues for the users of sessions."""

    def __init__(
        self, registry: QueueRegistry, permissions: Permissions, config: BrokerConfig
    ) -> None:
        self.registry = registry
        self.addresses = registry.addresses
        self.permissions = permissions
        self.config = config
        self.user_limit: int = QUEUES_PER_USER_MAX  # of a user without a setting

    def create(self, now: int, identity: Identity, owner: QueueOwner, spec: QueueSpec) -> Queue:
        """Creates a queue; needs createDurableQueue or createNonDurableQueue, and createAddress for a new address."""
        self.registry.delete_ownerless(now, spec.name)  # its address and its user's count are checked below
        permission = "createDurableQueue" if spec.durable else "createNonDurableQueue"
        temporary = self.addresses.temporaries.is_made_by(spec)
        self._check(now, identity, permission, spec, temporary)
        self.check_name(now, identity, owner, spec.address)
        self._check_address(now, identity, spec, temporary)
        self._check_limit(identity)
        if not identity.cluster:
            self.registry.check_client_queue(spec.name)
        spec.user = identity.user
        # A leaving node creates queues that continue its own, and a bridge is there for consumers that have had the
        # retained messages of their own broker: these queues get none.
        queue = self.registry.create(now, spec, not (identity.cluster or owner.bridge))
        if spec.temporary:
            owner.temporary_queues[queue.name] = queue
        if spec.transient:
            owner.use_transient(queue)
        return queue

    def check_name(self, now: int, identity: Identity, owner: QueueOwner, address: str) -> None:
        """Raises BrokerError SECURITY for a new address with the name of another connection's temporary destination.

        The names can be guessed, and all clients hear of them: nobody takes one before its owner does, or after it has
        failed over. Who manages the node may name any address.
        """
        if not address.startswith(CONNECTION_ID) or identity.cluster or owner.bridge or owner.names(address):
            return
        known = self.addresses.by_name.get(address)
        if known is not None and known.local_count > 0:
            return  # its permissions are those of its owner
        if not self.permissions.allows(identity, MANAGE, self.config.management_address):
            raise self.permissions.refusal(now, identity, CREATE_ADDRESS, address, not_named(address))

    def _check_limit(self, identity: Identity) -> None:
        """Checks that the user may create one more queue. Clients without a user's name have no limit."""
        user = identity.user
        if not user or identity.cluster:
            return
        limit = limit_of(self.config.resource_limits, user)
        if limit is None:
            limit = ResourceLimit(user, -1, self.user_limit)
        if 0 <= limit.max_queues <= len(self.registry.by_name):
            users = [queue.spec.user for queue in self.registry.by_name.values()]
            limit.check_queues(users.count(user))

    def _check(self, now: int, identity: Identity, permission: str, spec: QueueSpec, temporary: bool) -> None:
        """Checks a permission on the queue; `temporary`: it is to be a temporary destination."""
        name = join_fqqn(spec.address, spec.name)
        if temporary:
            self.permissions.check_temporary(now, identity, permission, name)
        else:
            self.permissions.check(now, identity, permission, name)

    def _check_address(self, now: int, identity: Identity, spec: QueueSpec, temporary: bool) -> None:
        """Checks that the user may create the address of the queue, or its routing type, if either is missing."""
        address = self.addresses.by_name.get(spec.address)
        if address is not None and address.supports(spec.routing_type):
            return
        settings = self.addresses.settings
        found = settings.of_temporary(spec.address) if temporary else settings.match(spec.address)
        automatic = found.auto_create_addresses
        if not automatic and not spec.temporary:
            if address is not None:
                # ActiveMQServerImpl.createQueue throws what is no exception of Artemis: the client gets code 0.
                raise BrokerError(INTERNAL_ERROR, unsupported(address, spec.routing_type))
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"AMQ229203: address {spec.address} does not exist")
        # A temporary queue gets an address of its own even if addresses are not created automatically.
        if automatic or address is not None:
            self._check(now, identity, "createAddress", spec, temporary)

    def take_over(self, now: int, identity: Identity, owner: QueueOwner, former: QueueOwner, name: str) -> None:
        """Gives a temporary destination with its messages to another connection, whose user may create it."""
        queue = self.registry.find(name)
        spec = queue.spec
        self._check(now, identity, "createNonDurableQueue", spec, True)
        self._check_limit(identity)
        self.registry.command.begin_change()
        former.temporary_queues.pop(name, None)
        owner.temporary_queues[name] = queue
        spec.user = identity.user
        self.addresses.temporaries.add(name, identity.user)

    def delete(self, now: int, identity: Identity, owner: QueueOwner, name: str) -> None:
        """Deletes a queue without consumers; needs deleteDurableQueue or deleteNonDurableQueue."""
        queue = self.registry.find(name)
        permission = "deleteDurableQueue" if queue.durable else "deleteNonDurableQueue"
        self.permissions.check(now, identity, permission, join_fqqn(queue.spec.address, queue.name))
        if queue.consumer_count() > 0:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229025: queue {queue.name} still has consumers")
        owner.temporary_queues.pop(queue.name, None)
        self.registry.delete(now, queue.name, "deleted")

    def end(self, now: int, owner: QueueOwner, name: str) -> None:
        """Deletes the queue of a subscription that ends, as the connection's end would: no permission is needed."""
        owner.temporary_queues.pop(name, None)
        self.registry.delete(now, name, "its subscription ended")


def not_named(address: str) -> str:
    """Returns the reason why another connection gets no temporary destination of that name."""
    return f"{address}: a temporary destination has the id of its connection in its name, and no other one creates it"
