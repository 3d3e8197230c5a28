"""Dead-letter and expiry queues, created for the first message that needs them (QueueImpl.createResources)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.settings.repository import AddressSettings
    from atalanta.message.message import Message


def for_dead_letter(broker: Broker, now: int, settings: AddressSettings, message: Message) -> None:
    """Creates the dead-letter address, and its queue for the message's address (auto-create-dead-letter-resources)."""
    if settings.auto_create_dead_letter_resources and settings.dead_letter_address is not None:
        _create(
            broker,
            now,
            settings.dead_letter_address,
            settings.dead_letter_queue_prefix,
            settings.dead_letter_queue_suffix,
            message,
        )


def for_expiry(broker: Broker, now: int, settings: AddressSettings, message: Message) -> None:
    """Creates the expiry address, and its queue for the message's address (auto-create-expiry-resources)."""
    if settings.auto_create_expiry_resources and settings.expiry_address is not None:
        _create(
            broker,
            now,
            settings.expiry_address,
            settings.expiry_queue_prefix,
            settings.expiry_queue_suffix,
            message,
        )


def _create(
    broker: Broker, now: int, target: str, prefix: str, suffix: str, message: Message
) -> None:
    """Creates the queue PREFIX+ADDRESS+SUFFIX, whose filter takes the messages of that address.

    The address is the message's own. For a queue of a wildcard address, Artemis uses the wildcard in the name and in
    the filter; no message matches that filter, and Artemis loses the message.
    """
    address = split_fqqn(message.address)[0]
    if address == target:
        return
    name = prefix + address + suffix
    if name in broker.queues:
        return
    settings = broker.settings.match(target)
    spec = QueueSpec(name, target, settings.default_queue_routing_type)
    quoted = address.replace("'", "''")
    spec.filter_text = f"_AMQ_ORIG_ADDRESS = '{quoted}'"
    spec.auto_created = True
    spec.take_defaults(settings)
    try:
        broker.queue_registry.create(now, spec)
    except BrokerError as error:
        broker.trace.event("resource_not_created", {"queue": name, "why": error.text})
