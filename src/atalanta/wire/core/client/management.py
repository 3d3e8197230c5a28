"""Management requests to a broker over one session: each request is a message, and so is its answer.

The properties are those of Artemis' ManagementHelper. Links between nodes use this module, and the Python client for
names and answers. Answers arrive in the order of the requests, at a temporary queue.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Final

from atalanta.message.codec import text_body
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import Message
from atalanta.wire.core.packet_types import ASYNC_RESPONSE_VERSION, NEWEST_VERSION
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import SessionStart
from atalanta.wire.protocol_error import ProtocolError

# Properties of requests and of answers.
RESOURCE: Final = "_AMQ_ResourceName"
ATTRIBUTE: Final = "_AMQ_Attribute"
OPERATION: Final = "_AMQ_OperationName"
SUCCEEDED: Final = "_AMQ_OperationSucceeded"

# Arguments: the time in ns, whether the request succeeded, and the value or the broker's reason.
AnswerHandler = Callable[[int, bool, object], None]


class ManagementRequests:
    """The requests of one session. `unanswered` holds the handlers of the answers, oldest first.

    `channel` is the session's, `address` the management address, `sender_id` the id of the session's producer.
    NULL_RESPONSE to a request has its `correlation`. `version` is the one that the connection has agreed on.
    """

    def __init__(
        self, channel: int, address: str, reply_queue: str, correlation: int, sender_id: int
    ) -> None:
        self.channel = channel
        self.address = address
        self.reply_queue = reply_queue
        self.correlation = correlation
        self.sender_id = sender_id
        self.version: int = NEWEST_VERSION
        self.unanswered: deque[AnswerHandler] = deque()

    def subscription(self, routing_type: int, credit_bytes: int) -> list[Packet]:
        """Returns the packets that create the reply queue and its consumer; `credit_bytes` -1: unlimited."""
        queue = CreateQueueV2(
            address=self.reply_queue,
            queue=self.reply_queue,
            durable=False,
            temporary=True,
            requires_response=False,
            routing_type=routing_type,
        )
        return [queue, *consumption(self.reply_queue, credit_bytes, requires_response=False)]

    def attribute(self, now: int, resource: str, name: str, handler: AnswerHandler) -> bytes:
        """Returns the frame that requests an attribute of a resource."""
        return self._request(now, resource, ATTRIBUTE, name, b"", handler)

    def operation(
        self, now: int, resource: str, name: str, parameters: list[object], handler: AnswerHandler
    ) -> bytes:
        """Returns the frame that requests an operation of a resource."""
        body = text_body(json.dumps(parameters))
        return self._request(now, resource, OPERATION, name, body, handler)

    def _request(
        self, now: int, resource: str, kind: str, name: str, body: bytes, handler: AnswerHandler
    ) -> bytes:
        message = request_message(now, self.address, resource, kind, name, body)
        message.properties.put("JMSReplyTo", self.reply_queue)
        self.unanswered.append(handler)
        # Without its id a NULL_RESPONSE would look like the answer to another request of the session.
        answered = self.version >= ASYNC_RESPONSE_VERSION
        packet = SendMessage(message, answered, self.correlation, self.sender_id)
        return codec.encode(packet, self.channel, self.version)

    def on_message(self, now: int, message: Message) -> None:
        """Gives an answer to the oldest request. ProtocolError: the answer is not JSON."""
        if self.unanswered:
            succeeded, value = answer_of(message)
            self.unanswered.popleft()(now, succeeded, value)


def request_message(
    now: int, address: str, resource: str, kind: str, name: str, body: bytes
) -> Message:
    """Returns a management request without a reply queue; `kind` is _AMQ_Attribute or _AMQ_OperationName."""
    message = Message.create(address, body, 0, False, now // 1_000_000, 4)
    message.properties.put(RESOURCE, resource)
    message.properties.put(kind, name)
    return message


def consumption(queue: str, credit_bytes: int, requires_response: bool) -> list[Packet]:
    """Returns the packets that consume from a queue as the session's consumer 0."""
    consumer = CreateConsumer(consumer_id=0, queue=queue, requires_response=requires_response)
    return [consumer, FlowToken(0, credit_bytes), SessionStart()]


def answer_of(message: Message) -> tuple[bool, object]:
    """Returns whether the request succeeded, and its value, or None. ProtocolError: the answer is not JSON."""
    try:
        text = message.text()
    except DecodeError as error:
        raise ProtocolError(f"the answer is not JSON: {error}") from error
    return message.properties.get(SUCCEEDED) is True, value_of(text)


def value_of(text: str | None) -> object:
    """Returns the value in an answer's text, a JSON array of one value; None without it.

    ProtocolError: the answer is not JSON.
    """
    try:
        values: object = json.loads(text) if text else []
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the answer is not JSON: {error}") from error
    return values[0] if isinstance(values, list) and values else None
