"""Packets that carry messages (fact sheet A1.a); their codec is packets_message_codec.py."""

from __future__ import annotations

from typing import ClassVar

from atalanta.kernel.message import Message
from atalanta.kernel.message_codec import encode_message
from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import (
    SESS_RECEIVE_CONTINUATION,
    SESS_RECEIVE_LARGE_MSG,
    SESS_RECEIVE_MSG,
    SESS_SEND,
    SESS_SEND_CONTINUATION,
    SESS_SEND_LARGE,
)


class SendMessage(Packet):
    """SESS_SEND. Answered by NullResponse with the correlation if a response is required."""

    type: ClassVar[int] = SESS_SEND
    layout: ClassVar[str] = "message, requires_response, correlation, sender_id"

    def __init__(
        self,
        message: Message,
        requires_response: bool = False,
        correlation: int = -1,
        sender_id: int = -1,
    ) -> None:
        self.message: Message = message
        self.requires_response: bool = requires_response
        self.correlation: int = correlation
        self.sender_id: int = sender_id

    def values(self) -> list[object]:
        message = encode_message(self.message, self.message.id)
        return [message, self.requires_response, self.correlation, self.sender_id]


class SendLargeMessage(Packet):
    """SESS_SEND_LARGE: a message without its body, which follows in SendContinuations."""

    type: ClassVar[int] = SESS_SEND_LARGE
    layout: ClassVar[str] = "message"

    def __init__(self, message: Message) -> None:
        self.message: Message = message

    def values(self) -> list[object]:
        return [encode_message(self.message, self.message.id)]


class SendContinuation(Packet):
    """SESS_SEND_CONTINUATION. `body_size` is in the last one only; bridges leave it -1."""

    type: ClassVar[int] = SESS_SEND_CONTINUATION
    layout: ClassVar[str] = "body, continues, body_size, requires_response, correlation, sender_id"

    def __init__(
        self,
        body: bytes,
        continues: bool,
        body_size: int = -1,
        requires_response: bool = False,
        correlation: int = -1,
        sender_id: int = -1,
    ) -> None:
        self.body: bytes = body
        self.continues: bool = continues
        self.body_size: int = body_size
        self.requires_response: bool = requires_response
        self.correlation: int = correlation
        self.sender_id: int = sender_id


class ReceiveMessage(Packet):
    """SESS_RECEIVE_MSG: a delivery."""

    type: ClassVar[int] = SESS_RECEIVE_MSG
    layout: ClassVar[str] = "message, consumer_id, delivery_count"

    def __init__(self, message: Message, consumer_id: int, delivery_count: int) -> None:
        self.message: Message = message
        self.consumer_id: int = consumer_id
        self.delivery_count: int = delivery_count

    def values(self) -> list[object]:
        message = encode_message(self.message, self.message.id)
        return [message, self.consumer_id, self.delivery_count]


class ReceiveLargeMessage(Packet):
    """SESS_RECEIVE_LARGE_MSG: a delivery whose body follows in ReceiveContinuations."""

    type: ClassVar[int] = SESS_RECEIVE_LARGE_MSG
    layout: ClassVar[str] = "message, consumer_id, delivery_count, body_size"

    def __init__(
        self, message: Message, consumer_id: int, delivery_count: int, body_size: int
    ) -> None:
        self.message: Message = message
        self.consumer_id: int = consumer_id
        self.delivery_count: int = delivery_count
        self.body_size: int = body_size

    def values(self) -> list[object]:
        message = encode_message(self.message, self.message.id)
        return [message, self.consumer_id, self.delivery_count, self.body_size]


class ReceiveContinuation(Packet):
    """SESS_RECEIVE_CONTINUATION: the next piece of a large message's body."""

    type: ClassVar[int] = SESS_RECEIVE_CONTINUATION
    layout: ClassVar[str] = "body, continues, consumer_id"

    def __init__(self, body: bytes, continues: bool, consumer_id: int) -> None:
        self.body: bytes = body
        self.continues: bool = continues
        self.consumer_id: int = consumer_id
