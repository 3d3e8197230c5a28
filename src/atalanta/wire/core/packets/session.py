"""Packets that create, reattach, start and close sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Packet,
    numbered,
    wire,
)

CLIENT_ID_KEY: Final = "jms-client-id"  # of session metadata
# Metadata by which Atalanta's clients ask their node to tell what became of each confirmed message: one byte after the
# correlation id of NULL_RESPONSE, if the message is in no queue by this send. Other brokers keep it as metadata.
NOTICES_KEY: Final = "atalanta-send-notices"
# Default addresses of a session by which Atalanta's clients tell where they want to be: at this node, or in one of the
# zones that follow the prefix, with commas. Other clients have no default address, and every message has its own.
STAY_ADDRESS: Final = "$.atalanta.stay"
ZONES_ADDRESS: Final = "$.atalanta.zones."


@mutable_dataclass(eq=False, repr=False)
class CreateSession(Packet):
    """CREATESESSION: on channel 1, while the client does not know the server's version."""

    name: str = field(metadata=wire(STRING))
    session_channel: int = field(metadata=wire(INT64))
    version: int = field(metadata=wire(INT32))
    user: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    password: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    min_large_message_size: int = field(default=102400, metadata=wire(INT32))
    xa: bool = field(default=False, metadata=wire(BOOL))
    auto_commit_sends: bool = field(default=True, metadata=wire(BOOL))
    auto_commit_acks: bool = field(default=True, metadata=wire(BOOL))
    confirmation_window: int = field(default=-1, metadata=wire(INT32))
    pre_acknowledge: bool = field(default=False, metadata=wire(BOOL))
    default_address: str | None = field(default=None, metadata=wire(NULLABLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class CreateSessionV2(CreateSession):
    """CREATESESSION_V2: on channel 1, once the version is known."""

    client_id: str | None = field(default=None, metadata=wire(NULLABLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class CreateSessionResponse(Packet):
    """CREATESESSION_RESP."""

    server_version: int = field(metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class ReattachSession(Packet):
    """REATTACH_SESSION: on channel 1 of a new connection, with the last number that the client confirmed."""

    name: str = field(metadata=wire(STRING))
    last_confirmed_command_id: int = field(metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class ReattachSessionResponse(Packet):
    """REATTACH_SESSION_RESP: if the session is not reattached, the client creates it again."""

    last_confirmed_command_id: int = field(metadata=wire(INT32))
    reattached: bool = field(metadata=wire(BOOL))


@dataclass(eq=False, repr=False, init=False)
class SessionStart(Packet):
    """SESS_START: starts the deliveries to the consumers of this session. No answer."""


@dataclass(eq=False, repr=False, init=False)
class SessionStop(Packet):
    """SESS_STOP: stops the deliveries; answered by NullResponse."""


@dataclass(eq=False, repr=False, init=False)
class SessionClose(Packet):
    """SESS_CLOSE."""


@mutable_dataclass(eq=False, repr=False)
class AddMetadata(Packet):
    """SESS_ADD_METADATA."""

    key: str = field(metadata=wire(STRING))
    value: str = field(metadata=wire(STRING))


@mutable_dataclass(eq=False, repr=False)
class AddMetadataV2(Packet):
    """SESS_ADD_METADATA2."""

    key: str = field(metadata=wire(STRING))
    value: str = field(metadata=wire(STRING))
    requires_confirmation: bool = field(default=True, metadata=wire(BOOL))

    def counts(self) -> bool:
        return self.requires_confirmation


@mutable_dataclass(eq=False, repr=False)
class UniqueAddMetadata(Packet):
    """SESS_UNIQUE_ADD_METADATA: refused with code 114 if another session has the same pair."""

    key: str = field(metadata=wire(STRING))
    value: str = field(metadata=wire(STRING))
    requires_confirmation: bool = field(default=True, metadata=wire(BOOL))

    def counts(self) -> bool:
        return self.requires_confirmation


PACKETS: Final = numbered(
    {
        packet_types.CREATESESSION: CreateSession,
        packet_types.CREATESESSION_V2: CreateSessionV2,
        packet_types.CREATESESSION_RESP: CreateSessionResponse,
        packet_types.REATTACH_SESSION: ReattachSession,
        packet_types.REATTACH_SESSION_RESP: ReattachSessionResponse,
        packet_types.SESS_START: SessionStart,
        packet_types.SESS_STOP: SessionStop,
        packet_types.SESS_CLOSE: SessionClose,
        packet_types.SESS_ADD_METADATA: AddMetadata,
        packet_types.SESS_ADD_METADATA2: AddMetadataV2,
        packet_types.SESS_UNIQUE_ADD_METADATA: UniqueAddMetadata,
    }
)
