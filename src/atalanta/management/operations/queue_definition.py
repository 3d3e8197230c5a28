"""A queue's definition in management: JSON with the keys of QueueConfiguration, and text for the CLI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.settings.repository import AddressSettingsRepository

Definition = dict[str, object]

# The parameters of the longest createQueue, in their order.
LONG_FORM: Final = (
    "address", "routing-type", "name", "filter-string", "durable", "max-consumers",
    "purge-on-no-consumers", "exclusive", "group-rebalance", "group-buckets", "group-first-key",
    "last-value", "last-value-key", "non-destructive", "consumers-before-dispatch",
    "delay-before-dispatch", "auto-delete", "auto-delete-delay", "auto-delete-message-count",
    "auto-create-address", "ring-size",
)  # fmt: skip
OTHER_KEYS: Final = (
    "temporary", "internal", "transient", "enabled", "group-rebalance-pause-dispatch", "user", "id",
    "fqqn", "configuration-managed", "auto-created", "consumer-priority",
)  # fmt: skip


def read_definition(text: str) -> Definition:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokerError(ILLEGAL_STATE, f"not JSON: {error}") from error
    if not isinstance(found, dict) or "name" not in found:
        raise BrokerError(ILLEGAL_STATE, f"AMQ229229: Failed to parse JSON: {text}")
    for key in found:
        if key not in LONG_FORM and key not in OTHER_KEYS:
            raise BrokerError(ILLEGAL_STATE, f"a queue has no option {key}")
    return found


def routing_type_of(name: object) -> int:
    if isinstance(name, str):
        if name.upper() == "ANYCAST":
            return ANYCAST
        if name.upper() == "MULTICAST":
            return MULTICAST
    raise BrokerError(
        ILLEGAL_STATE,
        f"No enum constant org.apache.activemq.artemis.api.core.RoutingType.{name}",
    )


def routing_name(routing_type: int) -> str:
    return "ANYCAST" if routing_type == ANYCAST else "MULTICAST"


def integer(definition: Definition, key: str) -> int | None:
    value = definition.get(key)
    if value is None:
        return None
    try:
        return int(str(value))
    except ValueError:
        raise BrokerError(ILLEGAL_STATE, f"{key} is not a number: {value}") from None


def boolean(definition: Definition, key: str) -> bool | None:
    value = definition.get(key)
    return None if value is None else str(value).lower() == "true"


def string(definition: Definition, key: str) -> str | None:
    value = definition.get(key)
    return None if value is None or not str(value).strip() else str(value)


def changes_of(definition: Definition) -> QueueChanges:
    """Returns the changes in the definition. A null or missing key changes nothing."""
    changes = QueueChanges()
    routing = definition.get("routing-type")
    if routing is not None:
        changes.routing_type = routing_type_of(routing)
    if definition.get("filter-string") is not None:
        changes.filter_text = str(definition["filter-string"]).strip()
    changes.max_consumers = integer(definition, "max-consumers")
    changes.purge_on_no_consumers = boolean(definition, "purge-on-no-consumers")
    changes.exclusive = boolean(definition, "exclusive")
    changes.last_value = boolean(definition, "last-value")
    changes.last_value_key = string(definition, "last-value-key")
    changes.non_destructive = boolean(definition, "non-destructive")
    changes.consumers_before_dispatch = integer(definition, "consumers-before-dispatch")
    changes.delay_before_dispatch_ms = integer(definition, "delay-before-dispatch")
    changes.group_rebalance = boolean(definition, "group-rebalance")
    changes.group_rebalance_pause_dispatch = boolean(definition, "group-rebalance-pause-dispatch")
    changes.group_buckets = integer(definition, "group-buckets")
    changes.group_first_key = string(definition, "group-first-key")
    changes.ring_size = integer(definition, "ring-size")
    changes.enabled = boolean(definition, "enabled")
    changes.auto_delete = boolean(definition, "auto-delete")
    changes.auto_delete_delay_ms = integer(definition, "auto-delete-delay")
    changes.auto_delete_message_count = integer(definition, "auto-delete-message-count")
    changes.user = string(definition, "user")
    if changes.max_consumers is not None and changes.max_consumers < -1:
        name = definition.get("name")
        text = f"AMQ229206: Queue {name} has invalid max consumer setting: {changes.max_consumers}"
        raise BrokerError(ILLEGAL_STATE, text)
    problem = changes.problem()
    if problem:
        raise BrokerError(ILLEGAL_STATE, f"queue {definition.get('name', 'without a name')}: {problem}")
    return changes


def spec_of(all_settings: AddressSettingsRepository, definition: Definition) -> QueueSpec:
    """Returns the definition's queue; the address settings provide the missing values."""
    name = string(definition, "name")
    if name is None:
        raise BrokerError(ILLEGAL_STATE, "a queue needs a name")
    address = string(definition, "address") or name
    at = name.find("::")
    if at >= 0:
        address, name = name[:at], name[at + 2 :]
    settings = all_settings.match(address)
    changes = changes_of(definition)
    spec = QueueSpec(name, address, settings.default_queue_routing_type)
    spec.set_origin(
        boolean(definition, "auto-created") is True,
        boolean(definition, "configuration-managed") is True,
    )
    spec.take_defaults(settings)
    spec.durable = boolean(definition, "durable") is not False
    spec.temporary = boolean(definition, "temporary") is True
    changes.create(spec)
    return spec


def definition_of(queue: Queue) -> Definition:
    """Returns the fields of QueueConfiguration.toJSON."""
    spec = queue.spec
    found: Definition = {
        "id": queue.id,
        "name": spec.name,
        "address": spec.address,
        "routing-type": routing_name(spec.routing_type),
    }
    if spec.filter_text is not None:
        found["filter-string"] = spec.filter_text
    found["durable"] = spec.durable
    if spec.user is not None:
        found["user"] = spec.user
    found["max-consumers"] = spec.max_consumers
    found["exclusive"] = spec.exclusive
    found["group-rebalance"] = spec.group_rebalance
    found["group-rebalance-pause-dispatch"] = spec.group_rebalance_pause_dispatch
    found["group-buckets"] = spec.group_buckets
    if spec.group_first_key is not None:
        found["group-first-key"] = spec.group_first_key
    found["last-value"] = spec.last_value_key is not None
    if spec.last_value_key is not None:
        found["last-value-key"] = spec.last_value_key
    found["non-destructive"] = spec.non_destructive
    found["purge-on-no-consumers"] = spec.purge_on_no_consumers
    found["enabled"] = spec.enabled
    found["consumers-before-dispatch"] = spec.consumers_before_dispatch
    found["delay-before-dispatch"] = spec.delay_before_dispatch_ms
    found["auto-delete"] = spec.auto_delete
    found["auto-delete-delay"] = spec.auto_delete_delay_ms
    found["auto-delete-message-count"] = spec.auto_delete_message_count
    found["ring-size"] = spec.ring_size
    found["configuration-managed"] = spec.configuration_managed
    found["temporary"] = spec.is_temporary()
    found["internal"] = spec.internal
    found["transient"] = spec.transient
    found["auto-create-address"] = True
    found["auto-created"] = spec.auto_created
    found["fqqn"] = False
    return found


def flag(value: bool) -> str:
    return "true" if value else "false"


def queue_text(queue: Queue) -> str:
    """Returns the text of QueueTextFormatter.Long."""
    spec = queue.spec
    parts = [
        f"name={spec.name}",
        f"address={spec.address}",
        f"routingType={routing_name(spec.routing_type)}",
    ]
    if queue.filter is not None:
        parts.append(f"filter={queue.filter.text}")
    parts.append(f"durable={flag(spec.durable)}")
    if spec.max_consumers != -1:
        parts.append(f"maxConsumers={spec.max_consumers}")
    parts.append(f"purgeOnNoConsumers={flag(spec.purge_on_no_consumers)}")
    parts.append(f"autoCreateAddress={flag(spec.auto_created)}")
    parts.append(f"exclusive={flag(spec.exclusive)}")
    parts.append(f"lastValue={flag(spec.last_value_key is not None)}")
    parts.append(f"lastValueKey={spec.last_value_key or 'null'}")
    parts.append(f"nonDestructive={flag(spec.non_destructive)}")
    parts.append(f"consumersBeforeDispatch={spec.consumers_before_dispatch}")
    parts.append(f"delayBeforeDispatch={spec.delay_before_dispatch_ms}")
    parts.append(f"autoCreateAddress={flag(spec.auto_created)}")
    return f"Queue [{', '.join(parts)}]"
