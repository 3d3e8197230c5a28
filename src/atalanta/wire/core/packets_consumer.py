"""Packets of consumers but for deliveries (fact sheet A1.a); messages: packets_message.py."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import (
    DISCONNECT_CONSUMER,
    DISCONNECT_CONSUMER_KILL,
    SESS_ACKNOWLEDGE,
    SESS_CONSUMER_CLOSE,
    SESS_CREATECONSUMER,
    SESS_EXPIRED,
    SESS_FLOWTOKEN,
    SESS_FORCE_CONSUMER_DELIVERY,
    SESS_INDIVIDUAL_ACKNOWLEDGE,
)


class CreateConsumer(Packet):
    """SESS_CREATECONSUMER. Answered by QueueQueryResponseV3 if a response is required."""

    type: ClassVar[int] = SESS_CREATECONSUMER
    layout: ClassVar[str] = (
        "consumer_id i64, queue ss, filter ss?, browse_only bool, requires_response bool, "
        "priority i32@130=0"
    )

    def __init__(
        self,
        consumer_id: int,
        queue: str,
        filter: str | None = None,
        browse_only: bool = False,
        requires_response: bool = True,
        priority: int = 0,
    ) -> None:
        self.consumer_id: int = consumer_id
        self.queue: str = queue
        self.filter: str | None = filter
        self.browse_only: bool = browse_only
        self.requires_response: bool = requires_response
        self.priority: int = priority


class FlowToken(Packet):
    """SESS_FLOWTOKEN. Bytes of credit; -1 no flow control, 0 back to none."""

    type: ClassVar[int] = SESS_FLOWTOKEN
    layout: ClassVar[str] = "consumer_id i64, credits i32"

    def __init__(
        self,
        consumer_id: int,
        credits: int,
    ) -> None:
        self.consumer_id: int = consumer_id
        self.credits: int = credits


class ForceConsumerDelivery(Packet):
    """SESS_FORCE_CONSUMER_DELIVERY. Asks for a marker behind what can be delivered now."""

    type: ClassVar[int] = SESS_FORCE_CONSUMER_DELIVERY
    layout: ClassVar[str] = "consumer_id i64, sequence i64"

    def __init__(
        self,
        consumer_id: int,
        sequence: int,
    ) -> None:
        self.consumer_id: int = consumer_id
        self.sequence: int = sequence


class Acknowledge(Packet):
    """SESS_ACKNOWLEDGE. Everything delivered to the consumer up to this message."""

    type: ClassVar[int] = SESS_ACKNOWLEDGE
    layout: ClassVar[str] = "consumer_id i64, message_id i64, requires_response bool"

    def __init__(
        self,
        consumer_id: int,
        message_id: int,
        requires_response: bool = False,
    ) -> None:
        self.consumer_id: int = consumer_id
        self.message_id: int = message_id
        self.requires_response: bool = requires_response


class IndividualAcknowledge(Packet):
    """SESS_INDIVIDUAL_ACKNOWLEDGE. This message alone."""

    type: ClassVar[int] = SESS_INDIVIDUAL_ACKNOWLEDGE
    layout: ClassVar[str] = "consumer_id i64, message_id i64, requires_response bool"

    def __init__(
        self,
        consumer_id: int,
        message_id: int,
        requires_response: bool = False,
    ) -> None:
        self.consumer_id: int = consumer_id
        self.message_id: int = message_id
        self.requires_response: bool = requires_response


class Expired(Packet):
    """SESS_EXPIRED. The client found the message expired. No answer."""

    type: ClassVar[int] = SESS_EXPIRED
    layout: ClassVar[str] = "consumer_id i64, message_id i64"

    def __init__(
        self,
        consumer_id: int,
        message_id: int,
    ) -> None:
        self.consumer_id: int = consumer_id
        self.message_id: int = message_id


class ConsumerClose(Packet):
    """SESS_CONSUMER_CLOSE."""

    type: ClassVar[int] = SESS_CONSUMER_CLOSE
    layout: ClassVar[str] = "consumer_id i64"

    def __init__(
        self,
        consumer_id: int,
    ) -> None:
        self.consumer_id: int = consumer_id


class DisconnectConsumer(Packet):
    """DISCONNECT_CONSUMER. From the server: the consumer's queue is gone."""

    type: ClassVar[int] = DISCONNECT_CONSUMER
    layout: ClassVar[str] = "consumer_id i64"

    def __init__(
        self,
        consumer_id: int,
    ) -> None:
        self.consumer_id: int = consumer_id


class DisconnectConsumerKill(Packet):
    """DISCONNECT_CONSUMER_KILL."""

    type: ClassVar[int] = DISCONNECT_CONSUMER_KILL
    layout: ClassVar[str] = "node_id ss?"

    def __init__(
        self,
        node_id: str | None = None,
    ) -> None:
        self.node_id: str | None = node_id


PACKETS: Final[list[type[Packet]]] = [
    CreateConsumer,
    FlowToken,
    ForceConsumerDelivery,
    Acknowledge,
    IndividualAcknowledge,
    Expired,
    ConsumerClose,
    DisconnectConsumer,
    DisconnectConsumerKill,
]
