"""The consumers of a queue, and the message groups pinned to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.management.operations.connections import consumer_details
from atalanta.management.request.call import Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
    from atalanta.kernel.sessions.clients import Clients


class QueueConsumerOperations:
    """The operations of the resource `queue.NAME` on consumers and message groups."""

    def __init__(self, clients: Clients, dispatches: DispatchList) -> None:
        self.clients = clients
        self.dispatches = dispatches
        self.operations: Operations = {
            "listConsumersAsJSON": [("", self.list_consumers_as_json)],
            "resetAllGroups": [("", self.reset_all_groups)],
            "resetGroup": [("s", self.reset_group)],
            "listGroupsAsJSON": [("", self.list_groups_as_json)],
        }

    def list_consumers_as_json(self, call: Call, given: Parameters) -> object:
        found: list[dict[str, object]] = []
        for session in self.clients.sessions():
            for consumer in session.consumers.values():
                if consumer.queue is call.queue:
                    found.append(consumer_details(session, consumer))
        return encode_json(found)

    def reset_all_groups(self, call: Call, given: Parameters) -> object:
        """Releases every group; the next message of a group selects its consumer again."""
        groups = call.queue.groups
        if groups is not None:
            call.queue.rewind(groups.release_all())
            self.dispatches.mark_dirty(call.queue)
        return None

    def reset_group(self, call: Call, given: Parameters) -> object:
        groups = call.queue.groups
        if groups is not None:
            call.queue.rewind(groups.release_group(text_of(given, 0)))
            self.dispatches.mark_dirty(call.queue)
        return None

    def list_groups_as_json(self, call: Call, given: Parameters) -> object:
        """Returns each group (or bucket) and the consumer it is pinned to."""
        groups = call.queue.groups
        found: list[dict[str, object]] = []
        for session in self.clients.sessions() if groups is not None else []:
            for consumer in session.consumers.values():
                if consumer.queue is call.queue and groups is not None:
                    details = consumer_details(session, consumer)
                    for key, pinned in groups.pins.items():
                        if pinned is consumer:
                            found.append({"groupID": key, **details})
        return encode_json(found)
