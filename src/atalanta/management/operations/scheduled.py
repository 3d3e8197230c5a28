"""Scheduled messages of a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.delivery import scheduled
from atalanta.kernel.registry import queues
from atalanta.management.request.call import Call, Operations, Parameters, number_of, optional_text
from atalanta.management.request.json_text import encode_json, message_map

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference

SHOWN_MAX: Final = 10_000


def waiting(call: Call) -> list[Reference]:
    return [reference for _, reference in call.broker.scheduled.of_queue(call.queue)]


def _maps(call: Call) -> list[dict[str, object]]:
    settings = call.broker.settings.match(call.queue.spec.address)
    limit = settings.management_message_attribute_size_limit
    return [message_map(reference.message, limit) for reference in waiting(call)[:SHOWN_MAX]]


def list_scheduled(call: Call, given: Parameters) -> object:
    return _maps(call)


def list_scheduled_as_json(call: Call, given: Parameters) -> object:
    return encode_json(_maps(call))


def peek_first_scheduled(call: Call, given: Parameters) -> object:
    first = waiting(call)[:1]
    return encode_json(message_map(first[0].message, -1)) if first else None


def deliver_scheduled(call: Call, given: Parameters) -> object:
    """Delivers the scheduled messages that match the filter now."""
    selector = queues.parse_filter(optional_text(given, 0))
    chosen = [
        reference
        for reference in waiting(call)
        if selector is None or selector.matches(reference.message)
    ]
    scheduled.deliver_early(call.broker.store, chosen)
    return None


def deliver_one_scheduled(call: Call, given: Parameters) -> object:
    wanted = number_of(given, 0)
    chosen = [reference for reference in waiting(call) if reference.message.id == wanted]
    scheduled.deliver_early(call.broker.store, chosen)
    return None


SCHEDULED_OPERATIONS: Final[Operations] = {
    "listScheduledMessages": [("", list_scheduled)],
    "listScheduledMessagesAsJSON": [("", list_scheduled_as_json)],
    "peekFirstScheduledMessageAsJSON": [("", peek_first_scheduled)],
    "deliverScheduledMessages": [("S", deliver_scheduled)],
    "deliverScheduledMessage": [("l", deliver_one_scheduled)],
}
