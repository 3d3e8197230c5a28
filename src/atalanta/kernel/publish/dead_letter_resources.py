"""Dead-letter and expiry queues that come with the first message that needs them (QueueImpl.createResources)."""

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
    """`auto-create-dead-letter-resources`: the dead-letter address, and a queue of it for the message's address."""
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
    """`auto-create-expiry-resources`: the same for expired messages."""
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
    """The queue PREFIX+ADDRESS+SUFFIX, which takes what comes from that address.

    The address is the message's own: for a queue bound to a wildcard address Artemis names the queue and its filter
    by the wildcard, and then loses the message for want of a match.
    """
    address = split_fqqn(message.address)[0]
    if address == target:
        return
    name = prefix + address + suffix
    if name in broker.queues:
        return
    settings = broker.settings_of(target)
    spec = QueueSpec(name, target, settings.default_queue_routing_type)
    quoted = address.replace("'", "''")
    spec.filter_text = f"_AMQ_ORIG_ADDRESS = '{quoted}'"
    spec.auto_created = True
    spec.take_defaults(settings)
    try:
        broker.queue_registry.create(now, spec)
    except BrokerError as error:
        broker.trace.event("resource_not_created", {"queue": name, "why": error.text})
