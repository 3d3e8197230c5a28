"""Packets of consumers other than deliveries; messages are in wire/core/packets/message.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT32,
    INT64,
    NULLABLE_SIMPLE_STRING,
    SIMPLE_STRING,
    Packet,
    numbered,
    wire,
)


@mutable_dataclass(eq=False, repr=False)
class CreateConsumer(Packet):
    """SESS_CREATECONSUMER: answered by QueueQueryResponseV3 if a response is required."""

    consumer_id: int = field(metadata=wire(INT64))
    queue: str = field(metadata=wire(SIMPLE_STRING))
    filter: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    browse_only: bool = field(default=False, metadata=wire(BOOL))
    requires_response: bool = field(default=True, metadata=wire(BOOL))
    priority: int = field(default=0, metadata=wire(INT32, since=packet_types.ASYNC_RESPONSE_VERSION))


@dataclass(eq=False, repr=False, init=False)
class FlowToken(Packet):
    """SESS_FLOWTOKEN: bytes of credit; -1 is no flow control, 0 resets the credit."""

    consumer_id: int = field(metadata=wire(INT64))
    credits: int = field(metadata=wire(INT32))

    def __init__(self, consumer_id: int, credits: int) -> None:
        self.consumer_id = consumer_id
        self.credits = credits


@mutable_dataclass(eq=False, repr=False)
class ForceConsumerDelivery(Packet):
    """SESS_FORCE_CONSUMER_DELIVERY: asks for a marker behind the messages that can be delivered now."""

    consumer_id: int = field(metadata=wire(INT64))
    sequence: int = field(metadata=wire(INT64))


@dataclass(eq=False, repr=False, init=False)
class Acknowledge(Packet):
    """SESS_ACKNOWLEDGE: acknowledges all messages delivered to the consumer up to this one."""

    consumer_id: int = field(metadata=wire(INT64))
    message_id: int = field(metadata=wire(INT64))
    requires_response: bool = field(metadata=wire(BOOL))

    def __init__(self, consumer_id: int, message_id: int, requires_response: bool = False) -> None:
        self.consumer_id = consumer_id
        self.message_id = message_id
        self.requires_response = requires_response


@dataclass(eq=False, repr=False, init=False)
class IndividualAcknowledge(Packet):
    """SESS_INDIVIDUAL_ACKNOWLEDGE: acknowledges this message alone."""

    consumer_id: int = field(metadata=wire(INT64))
    message_id: int = field(metadata=wire(INT64))
    requires_response: bool = field(metadata=wire(BOOL))

    def __init__(self, consumer_id: int, message_id: int, requires_response: bool = False) -> None:
        self.consumer_id = consumer_id
        self.message_id = message_id
        self.requires_response = requires_response


@mutable_dataclass(eq=False, repr=False)
class Expired(Packet):
    """SESS_EXPIRED: the client found the message expired. No answer."""

    consumer_id: int = field(metadata=wire(INT64))
    message_id: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class Settle(Packet):
    """SESS_SETTLE, a packet of Atalanta: gives one delivery back, outside of the session's transaction.

    With `reject` the message goes to the dead-letter address. Else it is delivered again, after `delay_ms`; -1 is the
    redelivery-delay of the address. Answered by NullResponse.
    """

    correlation: int = field(metadata=wire(INT64))
    consumer_id: int = field(metadata=wire(INT64))
    message_id: int = field(metadata=wire(INT64))
    reject: bool = field(metadata=wire(BOOL))
    delay_ms: int = field(default=-1, metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class ConsumerClose(Packet):
    """SESS_CONSUMER_CLOSE."""

    consumer_id: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class DisconnectConsumer(Packet):
    """DISCONNECT_CONSUMER: the server deleted the consumer's queue."""

    consumer_id: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class DisconnectConsumerKill(Packet):
    """DISCONNECT_CONSUMER_KILL."""

    node_id: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


PACKETS: Final = numbered(
    {
        packet_types.SESS_CREATECONSUMER: CreateConsumer,
        packet_types.SESS_FLOWTOKEN: FlowToken,
        packet_types.SESS_FORCE_CONSUMER_DELIVERY: ForceConsumerDelivery,
        packet_types.SESS_ACKNOWLEDGE: Acknowledge,
        packet_types.SESS_INDIVIDUAL_ACKNOWLEDGE: IndividualAcknowledge,
        packet_types.SESS_EXPIRED: Expired,
        packet_types.SESS_SETTLE: Settle,
        packet_types.SESS_CONSUMER_CLOSE: ConsumerClose,
        packet_types.DISCONNECT_CONSUMER: DisconnectConsumer,
        packet_types.DISCONNECT_CONSUMER_KILL: DisconnectConsumerKill,
    }
)
