"""Packets of the connection itself and the common answers (fact sheet A1.a, A1.c)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.core.types import (
    CHECK_FOR_FAILOVER,
    CHECK_FOR_FAILOVER_REPLY,
    DISCONNECT,
    DISCONNECT_V2,
    DISCONNECT_V3,
    EXCEPTION,
    NULL_RESPONSE,
    PACKETS_CONFIRMED,
    PING,
)

# Why a server goes (DISCONNECT_V3).
REASON_REDIRECT: Final = 0
REASON_REDIRECT_CRITICAL: Final = 1
REASON_SCALE_DOWN: Final = 2
REASON_SCALE_DOWN_CRITICAL: Final = 3
REASON_SHUTDOWN: Final = 4
REASON_SHUTDOWN_CRITICAL: Final = 5


class Ping(Packet):
    """PING.

    Channel 0, both ways; the server answers with the same, and drops who is silent for longer.
    """

    type: ClassVar[int] = PING
    layout: ClassVar[str] = "connection_ttl_ms i64"

    def __init__(
        self,
        connection_ttl_ms: int,
    ) -> None:
        self.connection_ttl_ms: int = connection_ttl_ms


class Disconnect(Packet):
    """DISCONNECT. The server goes away; peers older than version 125."""

    type: ClassVar[int] = DISCONNECT
    layout: ClassVar[str] = "node_id ss?"

    def __init__(
        self,
        node_id: str | None = None,
    ) -> None:
        self.node_id: str | None = node_id


class DisconnectV2(Packet):
    """DISCONNECT_V2. Versions 125 to 130."""

    type: ClassVar[int] = DISCONNECT_V2
    layout: ClassVar[str] = "node_id ss?, scale_down_node_id ss?"

    def __init__(
        self,
        node_id: str | None = None,
        scale_down_node_id: str | None = None,
    ) -> None:
        self.node_id: str | None = node_id
        self.scale_down_node_id: str | None = scale_down_node_id


class DisconnectV3(Packet):
    """DISCONNECT_V3. From version 131; `reason` is one of REASON_*, -1 for none."""

    type: ClassVar[int] = DISCONNECT_V3
    layout: ClassVar[str] = "node_id ss?, reason i8, target_node_id ss?, target tc?"

    def __init__(
        self,
        node_id: str | None = None,
        reason: int = REASON_SHUTDOWN,
        target_node_id: str | None = None,
        target: TransportConfiguration | None = None,
    ) -> None:
        self.node_id: str | None = node_id
        self.reason: int = reason
        self.target_node_id: str | None = target_node_id
        self.target: TransportConfiguration | None = target


class ExceptionResponse(Packet):
    """EXCEPTION.

    A request failed: `code` as in kernel.errors. On channel 1 it goes without the correlation.
    """

    type: ClassVar[int] = EXCEPTION
    layout: ClassVar[str] = "code i32, message str?, correlation i64@130=-1"

    def __init__(
        self,
        code: int,
        message: str | None = None,
        correlation: int = -1,
    ) -> None:
        self.code: int = code
        self.message: str | None = message
        self.correlation: int = correlation


class NullResponse(Packet):
    """NULL_RESPONSE. Done; correlation -1 where the request had none."""

    type: ClassVar[int] = NULL_RESPONSE
    layout: ClassVar[str] = "correlation i64@130=-1"

    def __init__(
        self,
        correlation: int = -1,
    ) -> None:
        self.correlation: int = correlation


class PacketsConfirmed(Packet):
    """PACKETS_CONFIRMED. Everything up to this number was processed (A1.c)."""

    type: ClassVar[int] = PACKETS_CONFIRMED
    layout: ClassVar[str] = "command_id i32"

    def __init__(
        self,
        command_id: int,
    ) -> None:
        self.command_id: int = command_id


class CheckForFailover(Packet):
    """CHECK_FOR_FAILOVER. May a client of that node fail over to you?"""

    type: ClassVar[int] = CHECK_FOR_FAILOVER
    layout: ClassVar[str] = "node_id str?"

    def __init__(
        self,
        node_id: str | None = None,
    ) -> None:
        self.node_id: str | None = node_id


class CheckForFailoverReply(Packet):
    """CHECK_FOR_FAILOVER_REPLY."""

    type: ClassVar[int] = CHECK_FOR_FAILOVER_REPLY
    layout: ClassVar[str] = "ok bool"

    def __init__(
        self,
        ok: bool,
    ) -> None:
        self.ok: bool = ok


PACKETS: Final[list[type[Packet]]] = [
    Ping,
    Disconnect,
    DisconnectV2,
    DisconnectV3,
    ExceptionResponse,
    NullResponse,
    PacketsConfirmed,
    CheckForFailover,
    CheckForFailoverReply,
]
