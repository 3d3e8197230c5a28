"""Creation, update and deletion of queues and addresses by an operator (ActiveMQServerControlImpl).

The permission `manage` is sufficient, like in Artemis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.management.operations.move_messages import Remove
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
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address

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


# -- texts of Artemis' answers ----------------------------------------------------------------------
def address_text(address: Address) -> str:
    """Returns the text of AddressInfoTextFormatter.Long."""
    types = ",".join(routing_types(address))
    created = "true" if address.auto_created else "false"
    return f"Address [name={address.name}, routingTypes={{{types}}}, autoCreated={created}]"


def routing_types(address: Address) -> list[str]:
    found: list[str] = []
    if address.multicast:
        found.append("MULTICAST")
    if address.anycast:
        found.append("ANYCAST")
    return found


def make_queue(call: Call, definition: Definition) -> Queue:
    """Creates a queue with the checks of ActiveMQServerImpl.createQueue: address, routing type, unused name."""
    broker = call.broker
    spec = spec_of(call, definition)
    address = broker.addresses.get(spec.address)
    settings = broker.settings.match(spec.address)
    may_create = boolean(definition, "auto-create-address")
    if may_create is None:
        may_create = settings.auto_create_addresses
    if address is None and not may_create:
        raise BrokerError(ILLEGAL_STATE, f"AMQ229203: Address Does Not Exist: {spec.address}")
    if address is not None and not address.supports(spec.routing_type) and not may_create:
        text = (
            f"AMQ229207: Can not create queue with routing type: {routing_name(spec.routing_type)}, "
            f"Supported routing types for address: {address.name} are [{', '.join(routing_types(address))}]"
        )
        raise BrokerError(ILLEGAL_STATE, text)
    known = broker.queues.get(spec.name)
    if known is not None:
        text = f"AMQ229019: Queue {spec.name} already exists on address {known.spec.address}"
        raise BrokerError(ILLEGAL_STATE, text)
    return broker.queue_registry.create(call.now, spec)


# -- createQueue ----------------------------------------------------------------------------------
def create_queue_long(call: Call, given: Parameters) -> object:
    """Creates a queue by an overload with 16, 19, 20 or 21 parameters."""
    missing = SHORTER[len(given)]
    keys = [key for key in LONG_FORM if key not in missing]
    return queue_text(make_queue(call, dict(zip(keys, given, strict=True))))


def create_queue_8(call: Call, given: Parameters) -> object:
    """(address, routingType, name, filter, durable, maxConsumers, purgeOnNoConsumers, autoCreateAddress)."""
    keys = [*LONG_FORM[:7], "auto-create-address"]
    return queue_text(make_queue(call, dict(zip(keys, given, strict=True))))


def create_queue_short(call: Call, given: Parameters) -> object:
    """(address, name [, filter] [, durable] [, routingType]): the old overloads, which return nothing."""
    definition: Definition = {"address": given[0], "name": given[1]}
    rest = given[2:]
    if len(rest) >= 2 and isinstance(rest[1], bool):
        definition["filter-string"] = rest.pop(0)
    for value in rest:
        definition["durable" if isinstance(value, bool) else "routing-type"] = value
    make_queue(call, definition)
    return None


def create_queue_json(call: Call, given: Parameters) -> object:
    """(QueueConfiguration as JSON [, ignoreIfExists])."""
    definition = read_definition(text_of(given, 0))
    known = call.broker.queues.get(str(definition["name"]))
    if known is not None and len(given) > 1 and flag_of(given, 1):
        return encode_json(definition_of(known))
    return encode_json(definition_of(make_queue(call, definition)))


# -- updateQueue ----------------------------------------------------------------------------------
def change_queue(call: Call, definition: Definition) -> Queue:
    """Changes only what the definition names (ActiveMQServerImpl.updateQueue)."""
    name = str(definition["name"])
    queue = call.broker.queues.get(name)
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
    return call.broker.queue_registry.update(call.now, name, changes)


UPDATE_KEYS: Final = (
    "name", "routing-type", "filter-string", "max-consumers", "purge-on-no-consumers", "exclusive",
    "group-rebalance", "group-buckets", "group-first-key", "non-destructive",
    "consumers-before-dispatch", "delay-before-dispatch", "user", "ring-size",
)  # fmt: skip


def update_queue(call: Call, given: Parameters) -> object:
    """(name, routingType, maxConsumers, purgeOnNoConsumers [, exclusive [, user]]); a null changes nothing."""
    keys = ("name", "routing-type", "max-consumers", "purge-on-no-consumers", "exclusive", "user")
    pairs = zip(keys, given, strict=False)
    return queue_text(change_queue(call, {key: value for key, value in pairs if value is not None}))


def update_queue_long(call: Call, given: Parameters) -> object:
    keys = list(UPDATE_KEYS[: max(13, len(given))])
    if len(given) == 12:
        keys.remove("group-first-key")
    pairs = zip(keys, given, strict=True)
    return queue_text(change_queue(call, {key: value for key, value in pairs if value is not None}))


def update_queue_json(call: Call, given: Parameters) -> object:
    definition = read_definition(text_of(given, 0))
    return encode_json(definition_of(change_queue(call, definition)))


# -- destroyQueue ---------------------------------------------------------------------------------
class Destroy(Remove):
    """The deletion of a queue: first its messages, in steps, then the queue."""

    why = "queue deleted by an operator"

    def __init__(self, call: Call, queue: Queue, with_address: bool) -> None:
        super().__init__(call, queue, None)
        self.with_address = with_address

    def result(self) -> object:
        broker = self.broker
        name = self.queue.spec.address
        broker.queue_registry.delete(broker.now, self.queue.name, "deleted by an operator")
        address = broker.addresses.get(name)
        if self.with_address and address is not None and not address.queues():
            broker.address_registry.delete(broker.now, name)
        if self.with_address:
            broker.caches.forget_sent(name)
        return None


def destroy_queue(call: Call, given: Parameters) -> object:
    """(name [, removeConsumers [, autoDeleteAddress]])."""
    name = text_of(given, 0)
    at = name.find("::")
    queue = call.broker.queues.get(name if at < 0 else name[at + 2 :])
    if queue is None:
        raise BrokerError(ILLEGAL_STATE, f"AMQ229017: Queue {name} does not exist")
    count = queue.consumer_count()
    if count > 0 and not (len(given) > 1 and flag_of(given, 1)):
        text = (
            f"AMQ229025: Cannot delete queue {queue.name} on binding {queue.name} - "
            f"it has consumers = {count}"
        )
        raise BrokerError(ILLEGAL_STATE, text)
    return call.management.jobs.run(Destroy(call, queue, len(given) > 2 and flag_of(given, 2)))


# -- addresses ------------------------------------------------------------------------------------
def read_routing_types(text: str | None) -> tuple[bool, bool]:
    """Returns (anycast, multicast) of a comma separated list."""
    kinds = [routing_type_of(part.strip()) for part in (text or "").split(",") if part.strip()]
    return ANYCAST in kinds, MULTICAST in kinds


def create_address(call: Call, given: Parameters) -> object:
    name = text_of(given, 0)
    anycast, multicast = read_routing_types(optional_text(given, 1))
    if name in call.broker.addresses:
        raise BrokerError(ILLEGAL_STATE, f"AMQ229204: Address already exists: {name}")
    address = call.broker.address_registry.create(call.now, name, anycast, multicast, False)
    return address_text(address)


def find_address(call: Call, name: str) -> Address:
    address = call.broker.addresses.get(name)
    if address is None:
        raise BrokerError(ILLEGAL_STATE, f"AMQ229203: Address Does Not Exist: {name}")
    return address


def update_address(call: Call, given: Parameters) -> object:
    """Changes the routing types; null leaves them. A type that a queue needs cannot be removed."""
    address = find_address(call, text_of(given, 0))
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
        address.anycast = anycast
        address.multicast = multicast
        if address.lsn > 0:
            call.broker.address_registry.store(address)
    return address_text(address)


def delete_address(call: Call, given: Parameters) -> object:
    """(name [, force]): deletes an address; `force` deletes its queues and their messages first."""
    address = find_address(call, text_of(given, 0))
    if address.internal:
        raise BrokerError(ILLEGAL_STATE, f"address {address.name} is the broker's own")
    queues = address.queues()
    if queues and not (len(given) > 1 and flag_of(given, 1)):
        raise BrokerError(ILLEGAL_STATE, f"AMQ229205: Address {address.name} has bindings")
    for queue in queues:
        call.broker.queue_registry.delete(call.now, queue.name, "deleted by an operator")
    if address.name in call.broker.addresses:
        call.broker.address_registry.delete(call.now, address.name)
    call.broker.caches.forget_sent(address.name)
    return None


CREATE_OPERATIONS: Final[Operations] = {
    "createQueue": [
        ("s", create_queue_json),
        ("sb", create_queue_json),
        ("ss", create_queue_short),
        ("ssb", create_queue_short),
        ("sss", create_queue_short),
        ("ssbs", create_queue_short),
        ("ssSb", create_queue_short),
        ("ssSbs", create_queue_short),
        ("SSsSbibb", create_queue_8),
        ("SSsSbibbbibSbilb", create_queue_long),
        ("SSsSbibbbibSbilbllb", create_queue_long),
        ("SSsSbibbbiSbSbilbllb", create_queue_long),
        ("SSsSbibbbiSbSbilbllbl", create_queue_long),
    ],
    "deployQueue": [("ssS", create_queue_short), ("ssSb", create_queue_short)],
    "updateQueue": [
        ("s", update_queue_json),
        ("sSIB", update_queue),
        ("sSIBB", update_queue),
        ("sSIBBS", update_queue),
        ("sSSIBBBIBILS", update_queue_long),
        ("sSSIBBBISBILS", update_queue_long),
        ("sSSIBBBISBILSL", update_queue_long),
    ],
    "destroyQueue": [("s", destroy_queue), ("sb", destroy_queue), ("sbb", destroy_queue)],
    "createAddress": [("sS", create_address)],
    "updateAddress": [("sS", update_address)],
    "deleteAddress": [("s", delete_address), ("sb", delete_address)],
}
