"""Packets of producers but for messages (fact sheet A1.a); messages: packets_message.py."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import (
    CREATE_PRODUCER,
    REMOVE_PRODUCER,
    SESS_PRODUCER_CREDITS,
    SESS_PRODUCER_FAIL_CREDITS,
    SESS_PRODUCER_REQUEST_CREDITS,
)


class CreateProducer(Packet):
    """CREATE_PRODUCER. From version 134, for metrics only. No answer."""

    type: ClassVar[int] = CREATE_PRODUCER
    layout: ClassVar[str] = "producer_id i32, address ss?"

    def __init__(
        self,
        producer_id: int,
        address: str | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        self.address: str | None = address


class RemoveProducer(Packet):
    """REMOVE_PRODUCER."""

    type: ClassVar[int] = REMOVE_PRODUCER
    layout: ClassVar[str] = "producer_id i32"

    def __init__(
        self,
        producer_id: int,
    ) -> None:
        self.producer_id: int = producer_id


class RequestProducerCredits(Packet):
    """SESS_PRODUCER_REQUEST_CREDITS. Answered when memory allows."""

    type: ClassVar[int] = SESS_PRODUCER_REQUEST_CREDITS
    layout: ClassVar[str] = "credits i32, address ss"

    def __init__(
        self,
        credits: int,
        address: str,
    ) -> None:
        self.credits: int = credits
        self.address: str = address


class ProducerCredits(Packet):
    """SESS_PRODUCER_CREDITS."""

    type: ClassVar[int] = SESS_PRODUCER_CREDITS
    layout: ClassVar[str] = "credits i32, address ss"

    def __init__(
        self,
        credits: int,
        address: str,
    ) -> None:
        self.credits: int = credits
        self.address: str = address


class ProducerFailCredits(Packet):
    """SESS_PRODUCER_FAIL_CREDITS. The address is full and fails its senders."""

    type: ClassVar[int] = SESS_PRODUCER_FAIL_CREDITS
    layout: ClassVar[str] = "credits i32, address ss"

    def __init__(
        self,
        credits: int,
        address: str,
    ) -> None:
        self.credits: int = credits
        self.address: str = address


PACKETS: Final[list[type[Packet]]] = [
    CreateProducer,
    RemoveProducer,
    RequestProducerCredits,
    ProducerCredits,
    ProducerFailCredits,
]
