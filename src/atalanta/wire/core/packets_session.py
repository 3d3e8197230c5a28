"""Packets that make, reattach, start and close sessions (fact sheet A1.a)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.types import (
    CREATESESSION,
    CREATESESSION_RESP,
    CREATESESSION_V2,
    REATTACH_SESSION,
    REATTACH_SESSION_RESP,
    SESS_ADD_METADATA,
    SESS_ADD_METADATA2,
    SESS_CLOSE,
    SESS_START,
    SESS_STOP,
    SESS_UNIQUE_ADD_METADATA,
)


class CreateSession(Packet):
    """CREATESESSION. Channel 1, while the client does not know the server's version."""

    type: ClassVar[int] = CREATESESSION
    layout: ClassVar[str] = (
        "name str, session_channel i64, version i32, user str?, password str?, "
        "min_large_message_size i32, xa bool, auto_commit_sends bool, auto_commit_acks bool, "
        "confirmation_window i32, pre_acknowledge bool, default_address str?"
    )

    def __init__(
        self,
        name: str,
        session_channel: int,
        version: int,
        user: str | None = None,
        password: str | None = None,
        min_large_message_size: int = 102400,
        xa: bool = False,
        auto_commit_sends: bool = True,
        auto_commit_acks: bool = True,
        confirmation_window: int = -1,
        pre_acknowledge: bool = False,
        default_address: str | None = None,
    ) -> None:
        self.name: str = name
        self.session_channel: int = session_channel
        self.version: int = version
        self.user: str | None = user
        self.password: str | None = password
        self.min_large_message_size: int = min_large_message_size
        self.xa: bool = xa
        self.auto_commit_sends: bool = auto_commit_sends
        self.auto_commit_acks: bool = auto_commit_acks
        self.confirmation_window: int = confirmation_window
        self.pre_acknowledge: bool = pre_acknowledge
        self.default_address: str | None = default_address


class CreateSessionV2(CreateSession):
    """CREATESESSION_V2. Channel 1, once the version is known."""

    type: ClassVar[int] = CREATESESSION_V2
    layout: ClassVar[str] = (
        "name str, session_channel i64, version i32, user str?, password str?, "
        "min_large_message_size i32, xa bool, auto_commit_sends bool, auto_commit_acks bool, "
        "confirmation_window i32, pre_acknowledge bool, default_address str?, client_id str?"
    )

    def __init__(
        self,
        name: str,
        session_channel: int,
        version: int,
        user: str | None = None,
        password: str | None = None,
        min_large_message_size: int = 102400,
        xa: bool = False,
        auto_commit_sends: bool = True,
        auto_commit_acks: bool = True,
        confirmation_window: int = -1,
        pre_acknowledge: bool = False,
        default_address: str | None = None,
        client_id: str | None = None,
    ) -> None:
        super().__init__(
            name,
            session_channel,
            version,
            user,
            password,
            min_large_message_size,
            xa,
            auto_commit_sends,
            auto_commit_acks,
            confirmation_window,
            pre_acknowledge,
            default_address,
        )
        self.client_id: str | None = client_id


class CreateSessionResponse(Packet):
    """CREATESESSION_RESP."""

    type: ClassVar[int] = CREATESESSION_RESP
    layout: ClassVar[str] = "server_version i32"

    def __init__(
        self,
        server_version: int,
    ) -> None:
        self.server_version: int = server_version


class ReattachSession(Packet):
    """REATTACH_SESSION. Channel 1, on a new connection; the last number the client confirmed."""

    type: ClassVar[int] = REATTACH_SESSION
    layout: ClassVar[str] = "name str, last_confirmed_command_id i32"

    def __init__(
        self,
        name: str,
        last_confirmed_command_id: int,
    ) -> None:
        self.name: str = name
        self.last_confirmed_command_id: int = last_confirmed_command_id


class ReattachSessionResponse(Packet):
    """REATTACH_SESSION_RESP. Not reattached: the client makes the session anew."""

    type: ClassVar[int] = REATTACH_SESSION_RESP
    layout: ClassVar[str] = "last_confirmed_command_id i32, reattached bool"

    def __init__(
        self,
        last_confirmed_command_id: int,
        reattached: bool,
    ) -> None:
        self.last_confirmed_command_id: int = last_confirmed_command_id
        self.reattached: bool = reattached


class SessionStart(Packet):
    """SESS_START. Deliver to the consumers of this session. No answer."""

    type: ClassVar[int] = SESS_START
    layout: ClassVar[str] = ""


class SessionStop(Packet):
    """SESS_STOP. Stop delivering; answered by NullResponse."""

    type: ClassVar[int] = SESS_STOP
    layout: ClassVar[str] = ""


class SessionClose(Packet):
    """SESS_CLOSE."""

    type: ClassVar[int] = SESS_CLOSE
    layout: ClassVar[str] = ""


class AddMetadata(Packet):
    """SESS_ADD_METADATA."""

    type: ClassVar[int] = SESS_ADD_METADATA
    layout: ClassVar[str] = "key str, value str"

    def __init__(
        self,
        key: str,
        value: str,
    ) -> None:
        self.key: str = key
        self.value: str = value


class AddMetadataV2(Packet):
    """SESS_ADD_METADATA2."""

    type: ClassVar[int] = SESS_ADD_METADATA2
    layout: ClassVar[str] = "key str, value str, requires_confirmation bool"

    def __init__(
        self,
        key: str,
        value: str,
        requires_confirmation: bool = True,
    ) -> None:
        self.key: str = key
        self.value: str = value
        self.requires_confirmation: bool = requires_confirmation

    def counts(self) -> bool:
        return self.requires_confirmation


class UniqueAddMetadata(Packet):
    """SESS_UNIQUE_ADD_METADATA. Refused with code 114 if another session has the same pair."""

    type: ClassVar[int] = SESS_UNIQUE_ADD_METADATA
    layout: ClassVar[str] = "key str, value str, requires_confirmation bool"

    def __init__(
        self,
        key: str,
        value: str,
        requires_confirmation: bool = True,
    ) -> None:
        self.key: str = key
        self.value: str = value
        self.requires_confirmation: bool = requires_confirmation

    def counts(self) -> bool:
        return self.requires_confirmation


PACKETS: Final[list[type[Packet]]] = [
    CreateSession,
    CreateSessionV2,
    CreateSessionResponse,
    ReattachSession,
    ReattachSessionResponse,
    SessionStart,
    SessionStop,
    SessionClose,
    AddMetadata,
    AddMetadataV2,
    UniqueAddMetadata,
]
