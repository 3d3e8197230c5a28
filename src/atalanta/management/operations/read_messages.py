"""Counts and lists of a queue's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.priorities import LEVELS, level_of
from atalanta.kernel.queue.reference import DELIVERING, READY, Reference
from atalanta.kernel.registry import queues
from atalanta.kernel.transactions import xa
from atalanta.management.request.call import Call, Operations, Parameters, number_of, optional_text
from atalanta.management.request.jobs import MESSAGES_READ_MAX, MessageJob
from atalanta.management.request.json_text import browsed_map, encode_json, message_map

if TYPE_CHECKING:
    from atalanta.message.selector.selector import Filter

PAGE_MAX: Final = 10_000
GROUPS_MAX: Final = 10_000


class Count(MessageJob):
    """The number or the bytes of the messages in `states`, optionally of durable ones alone.

    With a filter Artemis counts at most management-browse-page-size messages. Here all messages are counted.
    """

    acts_max = MESSAGES_READ_MAX
    any_state = True

    def __init__(
        self, call: Call, selector: Filter | None, states: tuple[int, ...] = (READY,)
    ) -> None:
        super().__init__(call, call.queue, selector)
        self.changes = False
        self.states = states
        self.durable_only: bool = False
        self.in_bytes: bool = False
        self.total: int = 0

    def act(self, now: int, chosen: list[Reference]) -> None:
        for reference in chosen:
            if reference.state in self.states and (reference.durable or not self.durable_only):
                self.total += reference.message.size if self.in_bytes else 1

    def result(self) -> object:
        return self.total


class CountGroups(Count):
    """The number of messages for each value of a property, as a JSON object."""

    def __init__(
        self, call: Call, selector: Filter | None, states: tuple[int, ...], by: str
    ) -> None:
        super().__init__(call, selector, states)
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


class Show(MessageJob):
    """A page of the matching messages as maps: those from `start` to `start + left`, in delivery order.

    If the queue has several priorities it is read once for each, the highest first.
    """

    acts_max = 200

    def __init__(self, call: Call, selector: Filter | None, start: int, count: int) -> None:
        super().__init__(call, call.queue, selector)
        self.changes = False
        self.skip = start
        self.left = start + count
        self.with_body: bool = False
        self.as_text: bool = False
        self.limit = call.broker.settings.match(
            call.queue.spec.address
        ).management_message_attribute_size_limit
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
                self.maps.append(browsed_map(reference, self.limit))
            else:
                self.maps.append(message_map(reference.message, self.limit))

    def result(self) -> object:
        return encode_json(self.maps) if self.as_text else self.maps


class First(Show):
    """The first message as JSON, its timestamp, or its age in milliseconds."""

    def __init__(self, call: Call, what: str) -> None:
        super().__init__(call, None, 0, 1)
        self.what = what
        self.timestamp: int = 0
        if what == "peek":
            self.limit = -1

    def act(self, now: int, chosen: list[Reference]) -> None:
        super().act(now, chosen)
        self.timestamp = chosen[0].message.timestamp

    def result(self) -> object:
        if self.what == "timestamp":
            return self.timestamp if self.maps else None
        if self.what == "age":
            return self.call.broker.now // 1_000_000 - self.timestamp if self.maps else None
        if self.what == "peek":
            return encode_json(self.maps[0]) if self.maps else None
        return encode_json(self.maps if self.maps else [{}])


def _count(call: Call, given: Parameters, states: tuple[int, ...]) -> object:
    selector = queues.parse_filter(optional_text(given, 0)) if given else None
    if len(given) == 2:
        by = optional_text(given, 1)
        if by is not None:
            return call.management.jobs.run(CountGroups(call, selector, states, by))
    if selector is None:
        queue = call.queue
        total = queue.message_count if READY in states else queue.delivering_count
        return encode_json({"null": total}) if len(given) == 2 else total
    return call.management.jobs.run(Count(call, selector, states))


def count_messages(call: Call, given: Parameters) -> object:
    return _count(call, given, (READY,))


def count_delivering(call: Call, given: Parameters) -> object:
    return _count(call, given, (DELIVERING,))


def list_messages(call: Call, given: Parameters) -> object:
    return _list(call, given, False)


def list_messages_as_json(call: Call, given: Parameters) -> object:
    return _list(call, given, True)


def _list(call: Call, given: Parameters, as_text: bool) -> object:
    """Lists at most management-browse-page-size messages."""
    selector = queues.parse_filter(optional_text(given, 0))
    most = call.broker.settings.match(call.queue.spec.address).management_browse_page_size
    job = Show(call, selector, 0, most)
    job.as_text = as_text
    return call.management.jobs.run(job)


def browse(call: Call, given: Parameters) -> object:
    """browse(), (filter), (page, pageSize) and (page, pageSize, filter): returns maps, see `browsed_map`."""
    start = 0
    count = call.broker.settings.match(call.queue.spec.address).management_browse_page_size
    text: str | None = None
    if len(given) == 1:
        text = optional_text(given, 0)
    elif len(given) >= 2:
        count = max(0, min(number_of(given, 1), PAGE_MAX))
        start = max(0, number_of(given, 0) - 1) * count
        text = optional_text(given, 2) if len(given) == 3 else None
    job = Show(call, queues.parse_filter(text), start, count)
    job.with_body = True
    return call.management.jobs.run(job)


def first_message_as_json(call: Call, given: Parameters) -> object:
    return call.management.jobs.run(First(call, "json"))


def peek_first_message_as_json(call: Call, given: Parameters) -> object:
    return call.management.jobs.run(First(call, "peek"))


def first_message_timestamp(call: Call) -> object:
    return call.management.jobs.run(First(call, "timestamp"))


def first_message_age(call: Call) -> object:
    return call.management.jobs.run(First(call, "age"))


def delivering_size(call: Call) -> object:
    job = Count(call, None, (DELIVERING,))
    job.in_bytes = True
    return call.management.jobs.run(job)


def durable_total(call: Call) -> object:
    """Returns the durable messages, scheduled ones included (QueueImpl.getDurableMessageCount)."""
    job = Count(call, None, (READY, DELIVERING))
    job.durable_only = True
    job.total = call.queue.scheduled_durable_count
    return call.management.jobs.run(job)


def durable_size(call: Call) -> object:
    job = Count(call, None, (READY, DELIVERING))
    job.durable_only = True
    job.in_bytes = True
    job.total = call.queue.scheduled_durable_bytes
    return call.management.jobs.run(job)


def durable_delivering(call: Call) -> object:
    job = Count(call, None, (DELIVERING,))
    job.durable_only = True
    return call.management.jobs.run(job)


def durable_delivering_size(call: Call) -> object:
    job = Count(call, None, (DELIVERING,))
    job.durable_only = True
    job.in_bytes = True
    return call.management.jobs.run(job)


def _delivering(call: Call) -> list[tuple[str, list[dict[str, object]]]]:
    """Returns the messages in delivery per consumer, together at most management-browse-page-size."""
    settings = call.broker.settings.match(call.queue.spec.address)
    left = settings.management_browse_page_size
    found: list[tuple[str, list[dict[str, object]]]] = []
    for consumer in call.queue.consumers:
        maps: list[dict[str, object]] = []
        for reference in consumer.unacknowledged.values():
            if left <= 0:
                break
            left -= 1
            limit = settings.management_message_attribute_size_limit
            maps.append(message_map(reference.message, limit))
        found.append((str(consumer.id), maps))
    return found


def list_delivering_as_json(call: Call, given: Parameters) -> object:
    found = [{"consumerName": name, "elements": maps} for name, maps in _delivering(call)]
    return encode_json(found)


def list_delivering(call: Call, given: Parameters) -> object:
    """Returns an object: consumer -> its messages."""
    return dict(_delivering(call))


def prepared_count(call: Call) -> object:
    """Returns the number of the queue's messages acknowledged by prepared transactions."""
    count = 0
    for branch in xa.list_prepared(call.broker):
        for reference in branch.transaction.acknowledged:
            if reference.queue is call.queue:
                count += 1
    return count


READING_OPERATIONS: Final[Operations] = {
    "countMessages": [("", count_messages), ("S", count_messages), ("SS", count_messages)],
    "countDeliveringMessages": [("S", count_delivering), ("SS", count_delivering)],
    "listMessages": [("S", list_messages)],
    "listMessagesAsJSON": [("S", list_messages_as_json)],
    "listDeliveringMessages": [("", list_delivering)],
    "listDeliveringMessagesAsJSON": [("", list_delivering_as_json)],
    "browse": [("", browse), ("S", browse), ("ii", browse), ("iiS", browse)],
    "getFirstMessageAsJSON": [("", first_message_as_json)],
    "peekFirstMessageAsJSON": [("", peek_first_message_as_json)],
}
