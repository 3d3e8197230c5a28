"""Packets of the connection itself and the common answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT8,
    INT32,
    INT64,
    NULLABLE_SIMPLE_STRING,
    NULLABLE_STRING,
    NULLABLE_TRANSPORT,
    Packet,
    numbered,
    wire,
)
from atalanta.wire.core.transport import TransportConfiguration

# Reasons of a server's DISCONNECT_V3.
REASON_REDIRECT: Final = 0
REASON_SCALE_DOWN: Final = 2
REASON_SCALE_DOWN_CRITICAL: Final = 3
REASON_SHUTDOWN: Final = 4


@mutable_dataclass(eq=False, repr=False)
class Ping(Packet):
    """PING: the keep-alive of channel 0, both ways.

    The server answers with a PING, and closes connections that are silent for longer than this time.
    """

    connection_ttl_ms: int = field(metadata=wire(INT64))


@mutable_dataclass(eq=False, repr=False)
class Disconnect(Packet):
    """DISCONNECT: the server ends the connection; for peers older than version 125."""

    node_id: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class DisconnectV2(Disconnect):
    """DISCONNECT_V2: the same in versions 125 to 130."""

    scale_down_node_id: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class DisconnectV3(Packet):
    """DISCONNECT_V3: the same from version 131 on; `reason` is one of REASON_*, -1 for none."""

    node_id: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    reason: int = field(default=REASON_SHUTDOWN, metadata=wire(INT8))
    target_node_id: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))
    target: TransportConfiguration | None = field(default=None, metadata=wire(NULLABLE_TRANSPORT))


def disconnect_of(
    version: int,
    node_id: str,
    reason: int = REASON_SHUTDOWN,
    target_node_id: str | None = None,
    target: TransportConfiguration | None = None,
) -> Packet:
    """Returns the DISCONNECT packet of a protocol version. Older ones have no reason, and the oldest no target.

    Version 0 is a peer that has named none: it gets the newest.
    """
    if version == 0 or version >= packet_types.CLIENT_ID_VERSION:
        return DisconnectV3(node_id, reason, target_node_id, target)
    return DisconnectV2(node_id, target_node_id)


@mutable_dataclass(eq=False, repr=False)
class ExceptionResponse(Packet):
    """EXCEPTION: a request failed.

    `code` is one of kernel.errors. On channel 1 the packet has no correlation.
    """

    code: int = field(metadata=wire(INT32))
    message: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    correlation: int = field(default=-1, metadata=wire(INT64, since=packet_types.ASYNC_RESPONSE_VERSION))


@dataclass(eq=False, repr=False, init=False)
class NullResponse(Packet):
    """NULL_RESPONSE: the request is done; correlation -1 if the request had none."""

    correlation: int = field(default=-1, metadata=wire(INT64, since=packet_types.ASYNC_RESPONSE_VERSION))

    def __init__(self, correlation: int = -1) -> None:
        self.correlation = correlation


@dataclass(eq=False, repr=False, init=False)
class PacketsConfirmed(Packet):
    """PACKETS_CONFIRMED: all packets up to this number were processed."""

    command_id: int = field(metadata=wire(INT32))

    def __init__(self, command_id: int) -> None:
        self.command_id = command_id


@mutable_dataclass(eq=False, repr=False)
class CheckForFailover(Packet):
    """CHECK_FOR_FAILOVER: asks if a client of that node may fail over to this one."""

    node_id: str | None = field(default=None, metadata=wire(NULLABLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class CheckForFailoverReply(Packet):
    """CHECK_FOR_FAILOVER_REPLY."""

    ok: bool = field(metadata=wire(BOOL))


PACKETS: Final = numbered(
    {
        packet_types.PING: Ping,
        packet_types.DISCONNECT: Disconnect,
        packet_types.DISCONNECT_V2: DisconnectV2,
        packet_types.DISCONNECT_V3: DisconnectV3,
        packet_types.EXCEPTION: ExceptionResponse,
        packet_types.NULL_RESPONSE: NullResponse,
        packet_types.PACKETS_CONFIRMED: PacketsConfirmed,
        packet_types.CHECK_FOR_FAILOVER: CheckForFailover,
        packet_types.CHECK_FOR_FAILOVER_REPLY: CheckForFailoverReply,
    }
)
