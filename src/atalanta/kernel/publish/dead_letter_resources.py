"""Dead-letter and expiry queues, created for the first message that needs them (QueueImpl.createResources)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository
    from atalanta.message.message import Message


ORIGIN: Final = "_AMQ_ORIG_ADDRESS"  # of a dead letter
FAILURE_CAUSE: Final = "dlqDeliveryFailureCause"  # why it is one, for clients of ActiveMQ Classic
SURPLUS: Final = "TopicSubDiscard"  # the cause of a message beyond a limit, as Classic's begins


class DeadLetterResources:
    """Creates the queues that dead letters and expired messages go to."""

    def __init__(
        self, queues: QueueRegistry, settings: AddressSettingsRepository, trace: Trace
    ) -> None:
        self.queues = queues
        self.settings = settings
        self.trace = trace

    def for_dead_letter(self, now: int, settings: AddressSettings, message: Message) -> None:
        """Creates the dead-letter address, and its queue for the message's address.

        `settings`: those of the message's queue (auto-create-dead-letter-resources).
        """
        target = settings.dead_letter_address
        if settings.auto_create_dead_letter_resources and target is not None:
            prefix = settings.dead_letter_queue_prefix
            self._create(now, target, prefix, settings.dead_letter_queue_suffix, message)

    def for_expiry(self, now: int, settings: AddressSettings, message: Message) -> None:
        """Creates the expiry address, and its queue for the message's address.

        `settings`: those of the message's address (auto-create-expiry-resources).
        """
        target = settings.expiry_address
        if settings.auto_create_expiry_resources and target is not None:
            prefix = settings.expiry_queue_prefix
            self._create(now, target, prefix, settings.expiry_queue_suffix, message)

    def dead_letter_target(self, settings: AddressSettings, reference: Reference) -> str | None:
        """Returns the dead-letter address of a message; None if it is dropped. `settings`: those of its queue."""
        return _target(settings, settings.dead_letter_address, reference)

    def expiry_target(self, settings: AddressSettings, reference: Reference) -> str | None:
        """Returns the expiry address of a message; None if it is dropped, as a dead letter is that expires there.

        `settings`: those of its address.
        """
        target = settings.expiry_address
        if _was_sent_to(target, reference):
            return None
        return _target(settings, target, reference)

    def surplus_target(self, settings: AddressSettings, reference: Reference) -> str | None:
        """Returns the dead-letter address of a message beyond a limit; None if it is dropped, as a dead letter is.

        Subscribers by a wildcard get the dead letters of their own subscription, too: they would go round for ever.
        """
        target = settings.dead_letter_address
        cause = reference.message.property_value(FAILURE_CAUSE)
        if _was_sent_to(target, reference) or (isinstance(cause, str) and cause.startswith(SURPLUS)):
            return None
        return _target(settings, target, reference)

    def _create(self, now: int, target: str, prefix: str, suffix: str, message: Message) -> None:
        """Creates the queue PREFIX+ADDRESS+SUFFIX, whose filter takes the messages of that address.

        The address is the message's own. For a queue of a wildcard address, Artemis uses the wildcard in the name and
        in the filter; no message matches that filter, and Artemis loses the message.
        """
        address = split_fqqn(message.address)[0]
        if address == target:
            return
        name = prefix + address + suffix
        if name in self.queues.by_name:
            return
        settings = self.settings.match(target)
        spec = QueueSpec(name, target, settings.default_queue_routing_type)
        quoted = address.replace("'", "''")
        spec.filter_text = f"_AMQ_ORIG_ADDRESS = '{quoted}'"
        spec.auto_created = True
        spec.take_defaults(settings)
        try:
            self.queues.create(now, spec)
        except BrokerError as error:
            self.trace.event("resource_not_created", {"queue": name, "why": error.text})


def _was_sent_to(target: str | None, reference: Reference) -> bool:
    """Returns true if a message is there as a dead letter already: in the address, or in the queue of a wildcard that
    gets the address' messages."""
    message = reference.message
    if target is None or target not in (reference.queue.spec.address, message.address):
        return False
    return message.property_value(ORIGIN) is not None


def _target(settings: AddressSettings, target: str | None, reference: Reference) -> str | None:
    """Returns the target; None for a message that is not durable where only durable ones are kept
    (AbstractDeadLetterStrategy.isSendToDeadLetterQueue of ActiveMQ Classic)."""
    return target if settings.dead_letter_non_durable or reference.message.durable else None
