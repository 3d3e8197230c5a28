"""Creation, update and deletion of queues and addresses by an operator (ActiveMQServerControlImpl).

The permission `manage` is sufficient, like in Artemis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.registry.addresses import unsupported
from atalanta.kernel.security.resource_limits import check_name
from atalanta.management.operations.message_changes import Removal
from atalanta.management.operations.queue_definition import (
    LONG_FORM,
    Definition,
    boolean,
    changes_of,
    definition_of,
    queue_text,
    read_definition,
    routing_name,
    routing_type_of,
    spec_of,
)
from atalanta.management.request.call import (
    Call,
    Operations,
    Parameters,
    flag_of,
    optional_text,
    text_of,
)
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.management.request.jobs import Jobs

# Overloads by their number of parameters, with the keys they do not have.
SHORTER: Final[dict[int, tuple[str, ...]]] = {
    21: (),
    20: ("ring-size",),
    19: ("group-first-key", "ring-size"),
    16: (
        "group-first-key", "auto-delete", "auto-delete-delay", "auto-delete-message-count",
        "ring-size",
    ),
}  # fmt: skip

UPDATE_KEYS: Final = (
    "name", "routing-type", "filter-string", "max-consumers", "purge-on-no-consumers", "exclusive",
    "group-rebalance", "group-buckets", "group-first-key", "non-destructive",
    "consumers-before-dispatch", "delay-before-dispatch", "user", "ring-size",
)  # fmt: skip


# -- texts of Artemis' answers ----------------------------------------------------------------------
def address_text(address: Address) -> str:
    """Returns the text of AddressInfoTextFormatter.Long."""
    types = ",".join(routing_types(address))
    created = "true" if address.auto_created else "false"
    return f"Address [name={address.name}, routingTypes={{{types}}}, autoCreated={created}]"


def binding_text(queue: Queue) -> str:
    """Returns the text of LocalQueueBinding.toManagementString, without the parts that name Java objects."""
    temporary = "true" if queue.spec.is_temporary() else "false"
    return (
        f"LocalQueueBinding [address={queue.spec.address}, "
        f"queue=QueueImpl[name={queue.name}, temp={temporary}]]"
    )


def routing_types(address: Address) -> list[str]:
    found: list[str] = []
    if address.multicast:
        found.append("MULTICAST")
    if address.anycast:
        found.append("ANYCAST")
    return found


class QueueDeletion(Removal):
    """The deletion of a queue: first its messages, in steps, then the queue."""

    why = "queue deleted by an operator"

    def __init__(
        self,
        plans: PlanWriter,
        call: Call,
        queue: Queue,
        queues: QueueRegistry,
        addresses: AddressRegistry,
        with_address: bool,
    ) -> None:
        super().__init__(plans, call, queue, None)
        self.queues = queues
        self.addresses = addresses
        self.with_address = with_address

    def result(self) -> object:
        name = self.queue.spec.address
        self.queues.delete(self.now, self.queue.name, "deleted by an operator")
        address = self.addresses.by_name.get(name)
        if self.with_address and address is not None and not address.queues():
            self.addresses.delete(self.now, name)
        if self.with_address:
            self.plans.duplicates.forget_sent(name)
        return None


def read_routing_types(text: str | None) -> tuple[bool, bool]:
    """Returns (anycast, multicast) of a comma separated list."""
    kinds = [routing_type_of(part.strip()) for part in (text or "").split(",") if part.strip()]
    return ANYCAST in kinds, MULTICAST in kinds


class DestinationOperations:
    """The operations of the resource `broker` that create, change and delete queues and addresses."""

    def __init__(
        self,
        queues: QueueRegistry,
        addresses: AddressRegistry,
        settings: AddressSettingsRepository,
        plans: PlanWriter,
        jobs: Jobs,
    ) -> None:
        self.queues = queues
        self.addresses = addresses
        self.settings = settings
        self.plans = plans
        self.jobs = jobs
        self.operations: Operations = {
            "createQueue": [
                ("s", self.create_queue_json),
                ("sb", self.create_queue_json),
                ("ss", self.create_queue_short),
                ("ssb", self.create_queue_short),
                ("sss", self.create_queue_short),
                ("ssbs", self.create_queue_short),
                ("ssSb", self.create_queue_short),
                ("ssSbs", self.create_queue_short),
                ("SSsSbibb", self.create_queue_8),
                ("SSsSbibbbibSbilb", self.create_queue_long),
                ("SSsSbibbbibSbilbllb", self.create_queue_long),
                ("SSsSbibbbiSbSbilbllb", self.create_queue_long),
                ("SSsSbibbbiSbSbilbllbl", self.create_queue_long),
            ],
            "deployQueue": [("ssS", self.create_queue_short), ("ssSb", self.create_queue_short)],
            "updateQueue": [
                ("s", self.update_queue_json),
                ("sSIB", self.update_queue),
                ("sSIBB", self.update_queue),
                ("sSIBBS", self.update_queue),
                ("sSSIBBBIBILS", self.update_queue_long),
                ("sSSIBBBISBILS", self.update_queue_long),
                ("sSSIBBBISBILSL", self.update_queue_long),
            ],
            "destroyQueue": [
                ("s", self.destroy_queue),
                ("sb", self.destroy_queue),
                ("sbb", self.destroy_queue),
            ],
            "createAddress": [("sS", self.create_address)],
            "updateAddress": [("sS", self.update_address)],
            "deleteAddress": [("s", self.delete_address), ("sb", self.delete_address)],
        }

    def make_queue(self, call: Call, definition: Definition) -> Queue:
        """Creates a queue with the checks of ActiveMQServerImpl.createQueue: address, routing type, unused name."""
        spec = spec_of(self.settings, definition)
        check_name(spec.name)
        check_name(spec.address)
        self.queues.check_client_queue(spec.name)
        self.queues.delete_ownerless(call.now, spec.name)
        address = self.addresses.by_name.get(spec.address)
        settings = self.settings.match(spec.address)
        may_create = boolean(definition, "auto-create-address")
        if may_create is None:
            may_create = settings.auto_create_addresses
        if address is None and not may_create:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229203: Address Does Not Exist: {spec.address}")
        if address is not None and not address.supports(spec.routing_type) and not may_create:
            raise BrokerError(ILLEGAL_STATE, unsupported(address, spec.routing_type))
        known = self.queues.by_name.get(spec.name)
        if known is not None:
            text = f"AMQ229019: Queue {spec.name} already exists on address {known.spec.address}"
            raise BrokerError(ILLEGAL_STATE, text)
        return self.queues.create(call.now, spec)

    # -- createQueue -----------------------------------------------------------------------------
    def create_queue_long(self, call: Call, given: Parameters) -> object:
        """Creates a queue by an overload with 16, 19, 20 or 21 parameters."""
        missing = SHORTER[len(given)]
        keys = [key for key in LONG_FORM if key not in missing]
        return queue_text(self.make_queue(call, dict(zip(keys, given, strict=True))))

    def create_queue_8(self, call: Call, given: Parameters) -> object:
        """(address, routingType, name, filter, durable, maxConsumers, purgeOnNoConsumers, autoCreateAddress)."""
        keys = [*LONG_FORM[:7], "auto-create-address"]
        return queue_text(self.make_queue(call, dict(zip(keys, given, strict=True))))

    def create_queue_short(self, call: Call, given: Parameters) -> object:
        """(address, name [, filter] [, durable] [, routingType]): the old overloads, which return nothing."""
        definition: Definition = {"address": given[0], "name": given[1]}
        rest = given[2:]
        if len(rest) >= 2 and isinstance(rest[1], bool):
            definition["filter-string"] = rest.pop(0)
        for value in rest:
            definition["durable" if isinstance(value, bool) else "routing-type"] = value
        self.make_queue(call, definition)
        return None

    def create_queue_json(self, call: Call, given: Parameters) -> object:
        """(QueueConfiguration as JSON [, ignoreIfExists])."""
        definition = read_definition(text_of(given, 0))
        name = str(definition["name"])
        self.queues.delete_ownerless(call.now, name)
        known = self.queues.by_name.get(name)
        if known is not None and len(given) > 1 and flag_of(given, 1):
            return encode_json(definition_of(known))
        return encode_json(definition_of(self.make_queue(call, definition)))

    # -- updateQueue -----------------------------------------------------------------------------
    def change_queue(self, call: Call, definition: Definition) -> Queue:
        """Changes only what the definition names (ActiveMQServerImpl.updateQueue)."""
        name = str(definition["name"])
        queue = self.queues.by_name.get(name)
        if queue is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229017: Queue {name} does not exist")
        changes = changes_of(definition)
        most = changes.max_consumers
        if most is not None and 0 <= most < queue.consumer_count():
            text = (
                f"AMQ229210: Can't update queue {name} with maxConsumers: {most}. "
                f"Current consumers are {queue.consumer_count()}."
            )
            raise BrokerError(ILLEGAL_STATE, text)
        kind, address = changes.routing_type, self.addresses.by_name[queue.spec.address]
        if kind is not None and not address.supports(kind):
            text = (
                f"AMQ229211: Can't update queue {name} with routing type: {routing_name(kind)}, "
                f"Supported routing types for address: {address.name} are [{', '.join(routing_types(address))}]"
            )
            raise BrokerError(ILLEGAL_STATE, text)
        return self.queues.update(call.now, name, changes)

    def update_queue(self, call: Call, given: Parameters) -> object:
        """(name, routingType, maxConsumers, purgeOnNoConsumers [, exclusive [, user]]); a null changes nothing."""
        keys = ("name", "routing-type", "max-consumers", "purge-on-no-consumers", "exclusive", "user")
        pairs = zip(keys, given, strict=False)
        return queue_text(self.change_queue(call, {key: value for key, value in pairs if value is not None}))

    def update_queue_long(self, call: Call, given: Parameters) -> object:
        keys = list(UPDATE_KEYS[: max(13, len(given))])
        if len(given) == 12:
            keys.remove("group-first-key")
        pairs = zip(keys, given, strict=True)
        return queue_text(self.change_queue(call, {key: value for key, value in pairs if value is not None}))

    def update_queue_json(self, call: Call, given: Parameters) -> object:
        definition = read_definition(text_of(given, 0))
        return encode_json(definition_of(self.change_queue(call, definition)))

    # -- destroyQueue ----------------------------------------------------------------------------
    def destroy_queue(self, call: Call, given: Parameters) -> object:
        """(name [, removeConsumers [, autoDeleteAddress]])."""
        name = text_of(given, 0)
        at = name.find("::")
        queue = self.queues.by_name.get(name if at < 0 else name[at + 2 :])
        if queue is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229017: Queue {name} does not exist")
        count = queue.consumer_count()
        if count > 0 and not (len(given) > 1 and flag_of(given, 1)):
            text = (
                f"AMQ229025: Cannot delete queue {queue.name} on binding {queue.name} - "
                f"it has consumers = {count}"
            )
            raise BrokerError(ILLEGAL_STATE, text)
        return self.jobs.run(
            QueueDeletion(
                self.plans,
                call,
                queue,
                self.queues,
                self.addresses,
                len(given) > 2 and flag_of(given, 2),
            )
        )

    # -- addresses -------------------------------------------------------------------------------
    def create_address(self, call: Call, given: Parameters) -> object:
        name = text_of(given, 0)
        check_name(name)
        anycast, multicast = read_routing_types(optional_text(given, 1))
        if name in self.addresses.by_name:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229204: Address already exists: {name}")
        address = self.addresses.create(call.now, name, anycast, multicast, False)
        return address_text(address)

    def find_address(self, name: str) -> Address:
        address = self.addresses.by_name.get(name)
        if address is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229203: Address Does Not Exist: {name}")
        return address

    def update_address(self, call: Call, given: Parameters) -> object:
        """Changes the routing types; null leaves them. A type that a queue needs cannot be removed."""
        address = self.find_address(text_of(given, 0))
        wanted = optional_text(given, 1)
        if wanted is not None:
            anycast, multicast = read_routing_types(wanted)
            for queue in address.queues():
                kind = queue.spec.routing_type
                if (kind == ANYCAST and not anycast) or (kind == MULTICAST and not multicast):
                    text = (
                        f"AMQ229209: Can't remove routing type {routing_name(kind)}, queues exists for "
                        f"address: {address.name}. Please delete queues before removing this routing type."
                    )
                    raise BrokerError(ILLEGAL_STATE, text)
            address.set_routing_types(anycast, multicast)
            if address.lsn > 0:
                self.addresses.store(address)
        return address_text(address)

    def delete_address(self, call: Call, given: Parameters) -> object:
        """(name [, force]): deletes an address; `force` deletes its queues and their messages first."""
        address = self.find_address(text_of(given, 0))
        if address.internal:
            raise BrokerError(ILLEGAL_STATE, f"address {address.name} is the broker's own")
        queues = address.queues()
        if queues and not (len(given) > 1 and flag_of(given, 1)):
            raise BrokerError(ILLEGAL_STATE, f"AMQ229205: Address {address.name} has bindings")
        for queue in queues:
            self.queues.delete(call.now, queue.name, "deleted by an operator")
        if address.name in self.addresses.by_name:
            self.addresses.delete(call.now, address.name)
        self.plans.duplicates.forget_sent(address.name)
        return None
