"""Management by messages, the client's side: operations and attributes of a broker, its addresses and queues.

Requests go to `activemq.management` in the form of Artemis' ManagementHelper and ClientRequestor, so that any CORE
broker answers them. Resources are `broker`, `address.NAME`, `queue.NAME`. The user needs the permission `manage` on
the address.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from typing import TYPE_CHECKING, Final

from atalanta.client.consumer import AUTO, Consumer
from atalanta.client.message import MULTICAST, Message, ReceivedMessage
from atalanta.client.producer import Producer
from atalanta.message.message import TEXT
from atalanta.wire.core.client.errors import CallTimedOut, ClientError, NotAuthorized
from atalanta.wire.core.client.management import (
    ATTRIBUTE,
    OPERATION,
    RESOURCE,
    SUCCEEDED,
    value_of,
)
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.client.connection import Connection

MANAGEMENT_ADDRESS: Final = "activemq.management"
BROKER: Final = "broker"
REPLY_QUEUE_PREFIX: Final = "atalanta.management."
NO_PARAMETERS: Final = b"\x00"
REPLIES_WINDOW_BYTES: Final = 1 << 20
PAGE_ROWS: Final = 500
PAGES_MAX: Final = 100_000


class ManagementFailed(ClientError):
    """The broker's error with its reason. `resource` and `what` are those of the request."""

    def __init__(self, resource: str, what: str, reason: str) -> None:
        super().__init__(f"{resource}: {what}: {reason}")
        self.resource = resource
        self.what = what
        self.reason = reason


class Management:
    """The access to management.

    Examples: `await management.call("queue.orders", "pause")`, `await management.get("broker", "Version")`.

    Answers are JSON values: text, numbers, booleans, lists, None. One request is possible at a time; concurrent tasks
    need a Management each. The temporary queue for the answers is created by the first request.
    """

    def __init__(self, connection: Connection, address: str = MANAGEMENT_ADDRESS) -> None:
        self.address = address
        # Of every request besides its own: an Atalanta node keeps some of them in its list of changing calls.
        self.properties: dict[str, str] = {}
        self._connection = connection
        # The answers arrive here.
        self.reply_queue = f"{REPLY_QUEUE_PREFIX}{uuid.uuid4()}"
        self._asked = 0
        self._late = 0  # requests whose answers did not come in time
        self._producer: Producer | None = None
        self._replies: Consumer | None = None

    async def call(self, resource: str, operation: str, *parameters: object) -> object:
        """Executes an operation. Raises ManagementFailed with the broker's reason, or CallTimedOut."""
        properties = {RESOURCE: resource, OPERATION: operation}
        return await self._ask(resource, operation, properties, json.dumps(list(parameters)))

    async def get(self, resource: str, attribute: str) -> object:
        """Returns the value of an attribute under its name in Artemis' controls (`MessageCount`)."""
        properties = {RESOURCE: resource, ATTRIBUTE: attribute}
        return await self._ask(resource, attribute, properties, None)

    async def rows(
        self, operation: str, field: str = "", comparison: str = "", value: str = "", fields: tuple[str, ...] = ()
    ) -> list[dict[str, object]]:
        """Returns all rows of a paged list of the broker (`listQueues`, `listAddresses`, `listConsumers` …).

        A filter is a field, an operation such as CONTAINS, EQUALS, GREATER_THAN …, and a value.
        Brokers return most values as text. With `fields` an Atalanta node tells these alone, in an order of its own:
        a long list costs it much less. An Artemis node tells all fields, sorted.
        """
        options: dict[str, object] = {"field": field, "operation": comparison, "value": value}
        if fields:
            options |= {"fields": fields, "sortOrder": "none"}
        asked = json.dumps(options)
        found: list[dict[str, object]] = []
        for page in range(1, PAGES_MAX):
            text = await self.call(BROKER, operation, asked, page, PAGE_ROWS)
            rows, count = page_of(text, operation)
            found += rows
            if len(rows) < PAGE_ROWS or len(found) >= count:
                break
        return found

    async def close(self) -> None:
        """Deletes the queue of the answers; the end of the connection deletes it too."""
        replies, self._replies, self._producer = self._replies, None, None
        if replies is not None:
            await replies.close()
            with contextlib.suppress(NotAuthorized):  # the permission to create a queue need not include this one
                await self._connection.delete_queue(self.reply_queue)

    async def _ask(
        self, resource: str, what: str, properties: dict[str, str], text: str | None
    ) -> object:
        producer, replies = await self._open()
        self._asked += 1
        correlation = f"{self.reply_queue}:{self._asked}"
        request = Message(
            text=text,
            properties={**self.properties, **properties},
            durable=False,
            correlation_id=correlation,
            reply_to=self.reply_queue,
            type=TEXT,
        )
        if text is None:
            request.body = NO_PARAMETERS
        await producer.send(request)
        timeout_s = self._connection.options.call_timeout_ms / 1_000
        while True:
            reply = await replies.receive(timeout_s)
            if reply is None:
                self._late += 1
                raise CallTimedOut(f"{resource}: {what}: no answer within {timeout_s:g} s", 3)
            if reply.correlation_id is None and self._late == 0:
                return result_of(reply, resource, what)  # old brokers (2.6) answer in order, without an id
            if reply.correlation_id == correlation:
                return result_of(reply, resource, what)
            self._late = max(0, self._late - 1)  # a late answer to an earlier request

    async def _open(self) -> tuple[Producer, Consumer]:
        connection = self._connection
        if self._producer is None:
            self._producer = await connection.producer(self.address)
        if self._replies is None:
            await connection.create_queue(
                self.reply_queue, routing=MULTICAST, durable=False, temporary=True
            )
            self._replies = await connection.consumer(
                self.reply_queue, ack=AUTO, window=REPLIES_WINDOW_BYTES
            )
        return self._producer, self._replies


def page_of(text: object, operation: str) -> tuple[list[dict[str, object]], int]:
    """Returns the rows of one page, and the number of rows on all pages. Raises ManagementFailed if malformed."""
    try:
        answer = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        answer = None
    data = answer.get("data") if isinstance(answer, dict) else None
    count = answer.get("count", 0) if isinstance(answer, dict) else None
    if (
        not isinstance(data, list)
        or not all(isinstance(row, dict) for row in data)
        or not isinstance(count, int)
    ):
        raise ManagementFailed(BROKER, operation, f"not a page of rows: {str(text)[:80]}")
    return data, count


def result_of(reply: ReceivedMessage, resource: str, what: str) -> object:
    """Returns the value in an answer: a JSON array of one value, or no body."""
    try:
        value = value_of(reply.text)
    except ProtocolError as error:
        raise ManagementFailed(resource, what, str(error)) from None
    if reply.header(SUCCEEDED) is not True:
        raise ManagementFailed(
            resource, what, str(value) if value is not None else "no reason given"
        )
    return value
