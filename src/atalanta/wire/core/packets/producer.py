"""Packets of producers other than messages; messages are in wire/core/packets/message.py."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    INT32,
    NULLABLE_SIMPLE_STRING,
    SIMPLE_STRING,
    Packet,
    numbered,
    wire,
)


@mutable_dataclass(eq=False, repr=False)
class CreateProducer(Packet):
    """CREATE_PRODUCER: from version 134 on, for metrics only. No answer."""

    producer_id: int = field(metadata=wire(INT32))
    address: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class RemoveProducer(Packet):
    """REMOVE_PRODUCER."""

    producer_id: int = field(metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class RequestProducerCredits(Packet):
    """SESS_PRODUCER_REQUEST_CREDITS: answered when there is memory."""

    credits: int = field(metadata=wire(INT32))
    address: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class ProducerCredits(Packet):
    """SESS_PRODUCER_CREDITS."""

    credits: int = field(metadata=wire(INT32))
    address: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class ProducerFailCredits(Packet):
    """SESS_PRODUCER_FAIL_CREDITS: the address is full, and its policy is FAIL."""

    credits: int = field(metadata=wire(INT32))
    address: str = field(metadata=wire(SIMPLE_STRING))


PACKETS: Final = numbered(
    {
        packet_types.CREATE_PRODUCER: CreateProducer,
        packet_types.REMOVE_PRODUCER: RemoveProducer,
        packet_types.SESS_PRODUCER_REQUEST_CREDITS: RequestProducerCredits,
        packet_types.SESS_PRODUCER_CREDITS: ProducerCredits,
        packet_types.SESS_PRODUCER_FAIL_CREDITS: ProducerFailCredits,
    }
)
