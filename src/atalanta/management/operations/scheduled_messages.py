"""Scheduled messages of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.delivery import scheduled
from atalanta.kernel.registry import queues
from atalanta.management.request.call import Call, Operations, Parameters, number_of, optional_text
from atalanta.management.request.json_text import encode_json, message_map
from atalanta.message.repetition import job_of

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.settings.repository import AddressSettingsRepository

SHOWN_MAX: Final = 10_000


class ScheduledMessageOperations:
    """The operations of the resource `queue.NAME` on scheduled messages."""

    def __init__(self, store: MessageStore, settings: AddressSettingsRepository) -> None:
        self.store = store
        self.settings = settings
        self.operations: Operations = {
            "listScheduledMessages": [("", self.list_scheduled)],
            "listScheduledMessagesAsJSON": [("", self.list_scheduled_as_json)],
            "peekFirstScheduledMessageAsJSON": [("", self.peek_first_scheduled)],
            "deliverScheduledMessages": [("S", self.deliver_scheduled)],
            "deliverScheduledMessage": [("l", self.deliver_one_scheduled)],
        }

    def _waiting(self, call: Call) -> list[Reference]:
        return [reference for _, reference in self.store.scheduled.of_queue(call.queue)]

    def _maps(self, call: Call) -> list[dict[str, object]]:
        settings = self.settings.match(call.queue.spec.address)
        limit = settings.management_message_attribute_size_limit
        return [message_map(reference.message, limit) for reference in self._waiting(call)[:SHOWN_MAX]]

    def list_scheduled(self, call: Call, given: Parameters) -> object:
        return self._maps(call)

    def list_scheduled_as_json(self, call: Call, given: Parameters) -> object:
        return encode_json(self._maps(call))

    def peek_first_scheduled(self, call: Call, given: Parameters) -> object:
        first = self._waiting(call)[:1]
        return encode_json(message_map(first[0].message, -1)) if first else None

    def deliver_scheduled(self, call: Call, given: Parameters) -> object:
        """Delivers the scheduled messages that match the filter now."""
        selector = queues.parse_filter(optional_text(given, 0))
        chosen = [
            reference
            for reference in self._waiting(call)
            if selector is None or selector.matches(reference.message)
        ]
        scheduled.deliver_early(self.store, chosen)
        return None

    def deliver_one_scheduled(self, call: Call, given: Parameters) -> object:
        """Delivers the message of this id now, or the next one of the repetition that began with it."""
        wanted = number_of(given, 0)
        waiting = self._waiting(call)
        chosen = [one for one in waiting if wanted in (one.message.id, job_of(one.message))]
        scheduled.deliver_early(self.store, chosen)
        return None
