"""Counts and lists of a queue's messages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.priorities import LEVELS, level_of
from atalanta.kernel.queue.reference import DELIVERING, READY, Reference
from atalanta.kernel.registry import queues
from atalanta.kernel.transactions.xa import identifier
from atalanta.management.operations.connections import connection_id, consumer_text, uncommitted
from atalanta.management.request.call import (
    Attributes,
    Call,
    Operations,
    Parameters,
    number_of,
    optional_text,
)
from atalanta.management.request.jobs import MESSAGES_READ_MAX, MessageJob
from atalanta.management.request.json_text import (
    browsed_map,
    encode_json,
    message_map,
    persistent_size,
)

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.kernel.transactions.xa import Branches
    from atalanta.management.request.jobs import Jobs
    from atalanta.message.selector.selector import Filter

PAGE_MAX: Final = 10_000
GROUPS_MAX: Final = 10_000
DELIVERING_MAX: Final = 10_000


class MessageCount(MessageJob):
    """The number or the bytes of the messages in `states`, optionally of durable ones alone.

    With a filter Artemis counts at most management-browse-page-size messages. Here all messages are counted.
    """

    acts_max = MESSAGES_READ_MAX
    any_state = True

    def __init__(
        self,
        store: MessageStore,
        call: Call,
        selector: Filter | None,
        states: tuple[int, ...] = (READY,),
    ) -> None:
        super().__init__(store, call, call.queue, selector)
        self.changes = False
        self.states = states
        self.durable_only: bool = False
        self.in_bytes: bool = False
        self.total: int = 0

    def act(self, now: int, chosen: list[Reference]) -> None:
        for reference in chosen:
            if reference.state in self.states and (reference.durable or not self.durable_only):
                self.total += persistent_size(reference.message) if self.in_bytes else 1

    def result(self) -> object:
        return self.total


class GroupedMessageCount(MessageCount):
    """The number of messages for each value of a property, as a JSON object."""

    def __init__(
        self,
        store: MessageStore,
        call: Call,
        selector: Filter | None,
        states: tuple[int, ...],
        by: str,
    ) -> None:
        super().__init__(store, call, selector, states)
        self.by = by
        self.groups: dict[str, int] = {}

    def act(self, now: int, chosen: list[Reference]) -> None:
        for reference in chosen:
            if reference.state not in self.states:
                continue
            value = reference.message.property_value(self.by)
            name = "null" if value is None else str(value)
            if isinstance(value, bool):
                name = name.lower()
            if name in self.groups or len(self.groups) < GROUPS_MAX:
                self.groups[name] = self.groups.get(name, 0) + 1

    def result(self) -> object:
        return encode_json(self.groups)


class MessagePage(MessageJob):
    """A page of the matching messages as maps: those from `start` to `start + count`, in delivery order.

    Values longer than `value_size_max` are cut, see `message_map`. If the queue has several priorities it is read once
    for each, the highest first.
    """

    acts_max = 200

    def __init__(
        self,
        store: MessageStore,
        call: Call,
        selector: Filter | None,
        start: int,
        count: int,
        value_size_max: int,
    ) -> None:
        super().__init__(store, call, call.queue, selector)
        self.changes = False
        self.skip = start
        self.left = start + count
        self.with_body: bool = False
        self.as_text: bool = False
        self.value_size_max = value_size_max
        self.maps: list[dict[str, object]] = []
        self.level = -1
        self.levels: list[int] = []
        priorities = call.queue.priorities
        if priorities.mixed():
            self.levels = [level for level in range(LEVELS) if priorities.live[level] > 0]
            self.level = self.levels.pop()

    def step(self, now: int) -> bool:
        finished = super().step(now)
        if finished and self.levels and self.left != 0:
            self.level = self.levels.pop()
            self.cursor = 0
            return False
        return finished

    def wants_more(self, reference: Reference) -> bool:
        return self.level < 0 or level_of(reference.message.priority) == self.level

    def act(self, now: int, chosen: list[Reference]) -> None:
        for reference in chosen:
            if self.skip > 0:
                self.skip -= 1
            elif self.with_body:
                self.maps.append(browsed_map(reference, self.value_size_max))
            else:
                self.maps.append(message_map(reference.message, self.value_size_max))

    def result(self) -> object:
        return encode_json(self.maps) if self.as_text else self.maps


class FirstMessage(MessagePage):
    """The first message as JSON, its timestamp, or its age in milliseconds."""

    def __init__(self, store: MessageStore, call: Call, what: str, value_size_max: int) -> None:
        super().__init__(store, call, None, 0, 1, value_size_max)
        self.what = what
        self.timestamp: int = 0

    def act(self, now: int, chosen: list[Reference]) -> None:
        super().act(now, chosen)
        self.timestamp = chosen[0].message.timestamp

    def result(self) -> object:
        if self.what == "timestamp":
            return self.timestamp if self.maps else None
        if self.what == "age":
            return self.now // 1_000_000 - self.timestamp if self.maps else None
        if self.what == "peek":
            return encode_json(self.maps[0]) if self.maps else None
        return encode_json(self.maps if self.maps else [{}])


class MessageListOperations:
    """The attributes and operations of the resource `queue.NAME` that count and show messages."""

    def __init__(
        self,
        store: MessageStore,
        settings: AddressSettingsRepository,
        clients: Clients,
        branches: Branches,
        jobs: Jobs,
    ) -> None:
        self.store = store
        self.settings = settings
        self.clients = clients
        self.branches = branches
        self.jobs = jobs
        self.attributes: Attributes = {
            "DurableMessageCount": self.durable_total,
            "PersistentSize": self.persistent_size,
            "DurablePersistentSize": self.durable_size,
            "DeliveringSize": self.delivering_size,
            "DurableDeliveringCount": self.durable_delivering,
            "DurableDeliveringSize": self.durable_delivering_size,
            "FirstMessageTimestamp": self.first_message_timestamp,
            "FirstMessageAge": self.first_message_age,
        }
        self.operations: Operations = {
            "countMessages": [
                ("", self.count_messages),
                ("S", self.count_messages),
                ("SS", self.count_messages),
            ],
            "countDeliveringMessages": [
                ("S", self.count_delivering),
                ("SS", self.count_delivering),
            ],
            "listMessages": [("S", self.list_messages)],
            "listMessagesAsJSON": [("S", self.list_messages_as_json)],
            "listDeliveringMessages": [("", self.list_delivering)],
            "listDeliveringMessagesAsJSON": [("", self.list_delivering_as_json)],
            "browse": [
                ("", self.browse),
                ("S", self.browse),
                ("ii", self.browse),
                ("iiS", self.browse),
            ],
            "getFirstMessageAsJSON": [("", self.first_message_as_json)],
            "peekFirstMessageAsJSON": [("", self.peek_first_message_as_json)],
        }

    def _count(self, call: Call, given: Parameters, states: tuple[int, ...]) -> object:
        selector = queues.parse_filter(optional_text(given, 0)) if given else None
        if len(given) == 2:
            by = optional_text(given, 1)
            if by is not None:
                return self.jobs.run(GroupedMessageCount(self.store, call, selector, states, by))
        if selector is None:
            queue = call.queue
            total = queue.message_count if READY in states else queue.delivering_count
            return encode_json({"null": total}) if len(given) == 2 else total
        return self.jobs.run(MessageCount(self.store, call, selector, states))

    def count_messages(self, call: Call, given: Parameters) -> object:
        return self._count(call, given, (READY,))

    def count_delivering(self, call: Call, given: Parameters) -> object:
        return self._count(call, given, (DELIVERING,))

    def _page(self, call: Call, selector: Filter | None, start: int, count: int) -> MessagePage:
        settings = self.settings.match(call.queue.spec.address)
        limit = settings.management_message_attribute_size_limit
        return MessagePage(self.store, call, selector, start, count, limit)

    def list_messages(self, call: Call, given: Parameters) -> object:
        return self._list(call, given, False)

    def list_messages_as_json(self, call: Call, given: Parameters) -> object:
        return self._list(call, given, True)

    def _list(self, call: Call, given: Parameters, as_text: bool) -> object:
        """Lists at most management-browse-page-size messages."""
        selector = queues.parse_filter(optional_text(given, 0))
        settings = self.settings.match(call.queue.spec.address)
        job = self._page(call, selector, 0, settings.management_browse_page_size)
        job.as_text = as_text
        return self.jobs.run(job)

    def browse(self, call: Call, given: Parameters) -> object:
        """browse(), (filter), (page, pageSize) and (page, pageSize, filter): returns maps, see `browsed_map`."""
        start = 0
        count = self.settings.match(call.queue.spec.address).management_browse_page_size
        text: str | None = None
        if len(given) == 1:
            text = optional_text(given, 0)
        elif len(given) >= 2:
            count = max(0, min(number_of(given, 1), PAGE_MAX))
            start = max(0, number_of(given, 0) - 1) * count
            text = optional_text(given, 2) if len(given) == 3 else None
        job = self._page(call, queues.parse_filter(text), start, count)
        job.with_body = True
        return self.jobs.run(job)

    def _first(self, call: Call, what: str) -> object:
        limit = -1
        if what != "peek":
            settings = self.settings.match(call.queue.spec.address)
            limit = settings.management_message_attribute_size_limit
        return self.jobs.run(FirstMessage(self.store, call, what, limit))

    def first_message_as_json(self, call: Call, given: Parameters) -> object:
        return self._first(call, "json")

    def peek_first_message_as_json(self, call: Call, given: Parameters) -> object:
        return self._first(call, "peek")

    def first_message_timestamp(self, call: Call) -> object:
        return self._first(call, "timestamp")

    def first_message_age(self, call: Call) -> object:
        return self._first(call, "age")

    def delivering_size(self, call: Call) -> object:
        job = MessageCount(self.store, call, None, (DELIVERING,))
        job.in_bytes = True
        return self.jobs.run(job)

    def durable_total(self, call: Call) -> object:
        """Returns the durable messages, scheduled ones included (QueueImpl.getDurableMessageCount)."""
        job = MessageCount(self.store, call, None, (READY, DELIVERING))
        job.durable_only = True
        job.total = call.queue.scheduled_durable_count
        return self.jobs.run(job)

    def persistent_size(self, call: Call) -> object:
        """Returns the bytes of all messages; the queue's own counter leaves out large bodies, which are in files."""
        queue = call.queue
        if not self.store.large.bodies:
            return queue.bytes
        job = MessageCount(self.store, call, None, (READY, DELIVERING))
        job.in_bytes = True
        job.total = queue.scheduled_bytes
        return self.jobs.run(job)

    def durable_size(self, call: Call) -> object:
        job = MessageCount(self.store, call, None, (READY, DELIVERING))
        job.durable_only = True
        job.in_bytes = True
        job.total = call.queue.scheduled_durable_bytes
        return self.jobs.run(job)

    def durable_delivering(self, call: Call) -> object:
        job = MessageCount(self.store, call, None, (DELIVERING,))
        job.durable_only = True
        return self.jobs.run(job)

    def durable_delivering_size(self, call: Call) -> object:
        job = MessageCount(self.store, call, None, (DELIVERING,))
        job.durable_only = True
        job.in_bytes = True
        return self.jobs.run(job)

    def list_delivering_as_json(self, call: Call, given: Parameters) -> object:
        found = self.list_delivering(call, given)
        return encode_json([{"consumerName": name, "elements": maps} for name, maps in found.items()])

    def list_delivering(self, call: Call, given: Parameters) -> dict[str, list[dict[str, object]]]:
        """Returns the messages by consumer that are in delivery or acknowledged in an open transaction.

        Those of a closed consumer are listed by its session, or else by the distributed transaction. At most
        DELIVERING_MAX are listed in all; Artemis has no limit.
        """
        limit = self.settings.match(call.queue.spec.address).management_message_attribute_size_limit
        found: dict[str, list[dict[str, object]]] = {}
        for holder, reference in islice(self._delivering(call.queue), DELIVERING_MAX):
            found.setdefault(holder, []).append(message_map(reference.message, limit))
        return found

    def _delivering(self, queue: Queue) -> Iterator[tuple[str, Reference]]:
        """Yields the messages of `list_delivering` with the text of what holds each (toManagementString)."""
        names = {consumer: consumer_text(consumer) for consumer in queue.consumers}
        held: dict[SessionTransaction, str] = {}
        for session in self.clients.sessions():
            for transaction in uncommitted(session):
                held[transaction] = f"ServerSession [id={connection_id(session.client)}:{session.name}]"
        for branch in self.branches.by_xid.values():
            held.setdefault(branch.transaction, f"Transaction [xid={identifier(branch.xid)}]")
        for transaction, holder in held.items():
            for reference in transaction.acknowledged:
                if reference.queue is queue:
                    consumer = reference.consumer
                    yield holder if consumer is None else names.get(consumer, holder), reference
        for consumer, name in names.items():
            for reference in consumer.unacknowledged.values():
                yield name, reference
