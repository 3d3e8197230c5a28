"""Packets of local transactions and XA."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT32,
    INT64,
    NULLABLE_STRING,
    XID,
    XIDS,
    Packet,
    numbered,
    wire,
)


class Xid:
    """The id of one branch of a distributed transaction; a value, usable as a key.

    Encoded as in XidCodecSupport.
    """

    def __init__(
        self, format_id: int, branch_qualifier: bytes, global_transaction_id: bytes
    ) -> None:
        self.format_id: int = format_id
        self.branch_qualifier: bytes = branch_qualifier
        self.global_transaction_id: bytes = global_transaction_id

    def _key(self) -> tuple[int, bytes, bytes]:
        return (self.format_id, self.branch_qualifier, self.global_transaction_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Xid) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        branch = self.branch_qualifier.hex()
        return f"Xid({self.format_id}, {self.global_transaction_id.hex()}:{branch})"


@mutable_dataclass(eq=False, repr=False)
class Commit(Packet):
    """SESS_COMMIT."""

    correlation: int = field(default=-1, metadata=wire(INT64, since=packet_types.COMMIT_CORRELATION_VERSION))


@mutable_dataclass(eq=False, repr=False)
class Rollback(Packet):
    """SESS_ROLLBACK."""

    consider_last_message_as_delivered: bool = field(default=False, metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class BranchPacket(Packet):
    """A packet about one branch."""

    xid: Xid = field(metadata=wire(XID))


@dataclass(eq=False, repr=False, init=False)
class XaFailed(BranchPacket):
    """SESS_XA_FAILED."""


@dataclass(eq=False, repr=False, init=False)
class XaStart(BranchPacket):
    """SESS_XA_START."""


@mutable_dataclass(eq=False, repr=False)
class XaEnd(BranchPacket):
    """SESS_XA_END."""

    failed: bool = field(metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class XaCommit(BranchPacket):
    """SESS_XA_COMMIT."""

    one_phase: bool = field(metadata=wire(BOOL))


@dataclass(eq=False, repr=False, init=False)
class XaPrepare(BranchPacket):
    """SESS_XA_PREPARE."""


@mutable_dataclass(eq=False, repr=False)
class XaResponse(Packet):
    """SESS_XA_RESP: `code` is XA's own."""

    error: bool = field(metadata=wire(BOOL))
    code: int = field(metadata=wire(INT32))
    message: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    correlation: int = field(default=-1, metadata=wire(INT64, since=packet_types.ASYNC_RESPONSE_VERSION))


@dataclass(eq=False, repr=False, init=False)
class XaRollback(BranchPacket):
    """SESS_XA_ROLLBACK."""


@dataclass(eq=False, repr=False, init=False)
class XaJoin(BranchPacket):
    """SESS_XA_JOIN."""


@dataclass(eq=False, repr=False, init=False)
class XaSuspend(Packet):
    """SESS_XA_SUSPEND."""


@dataclass(eq=False, repr=False, init=False)
class XaResume(BranchPacket):
    """SESS_XA_RESUME."""


@dataclass(eq=False, repr=False, init=False)
class XaForget(BranchPacket):
    """SESS_XA_FORGET."""


@dataclass(eq=False, repr=False, init=False)
class XaInDoubt(Packet):
    """SESS_XA_INDOUBT_XIDS."""


@mutable_dataclass(eq=False, repr=False)
class XaInDoubtResponse(Packet):
    """SESS_XA_INDOUBT_XIDS_RESP."""

    xids: list[Xid] = field(metadata=wire(XIDS))


@mutable_dataclass(eq=False, repr=False)
class XaSetTimeout(Packet):
    """SESS_XA_SET_TIMEOUT."""

    timeout_s: int = field(metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class XaSetTimeoutResponse(Packet):
    """SESS_XA_SET_TIMEOUT_RESP."""

    ok: bool = field(metadata=wire(BOOL))


@dataclass(eq=False, repr=False, init=False)
class XaGetTimeout(Packet):
    """SESS_XA_GET_TIMEOUT."""


@mutable_dataclass(eq=False, repr=False)
class XaGetTimeoutResponse(Packet):
    """SESS_XA_GET_TIMEOUT_RESP."""

    timeout_s: int = field(metadata=wire(INT32))


def decode_xid(reader: Reader, what: str) -> Xid:
    """Decodes an Xid. DecodeError names `what`."""
    format_id = reader.int32(f"{what}.format_id")
    branch = reader.blob(f"{what}.branch_qualifier")
    return Xid(format_id, branch, reader.blob(f"{what}.global_transaction_id"))


def encode_xid(writer: Writer, xid: Xid) -> None:
    writer.int32(xid.format_id)
    writer.blob(xid.branch_qualifier)
    writer.blob(xid.global_transaction_id)


PACKETS: Final = numbered(
    {
        packet_types.SESS_COMMIT: Commit,
        packet_types.SESS_ROLLBACK: Rollback,
        packet_types.SESS_XA_FAILED: XaFailed,
        packet_types.SESS_XA_START: XaStart,
        packet_types.SESS_XA_END: XaEnd,
        packet_types.SESS_XA_COMMIT: XaCommit,
        packet_types.SESS_XA_PREPARE: XaPrepare,
        packet_types.SESS_XA_RESP: XaResponse,
        packet_types.SESS_XA_ROLLBACK: XaRollback,
        packet_types.SESS_XA_JOIN: XaJoin,
        packet_types.SESS_XA_SUSPEND: XaSuspend,
        packet_types.SESS_XA_RESUME: XaResume,
        packet_types.SESS_XA_FORGET: XaForget,
        packet_types.SESS_XA_INDOUBT_XIDS: XaInDoubt,
        packet_types.SESS_XA_INDOUBT_XIDS_RESP: XaInDoubtResponse,
        packet_types.SESS_XA_SET_TIMEOUT: XaSetTimeout,
        packet_types.SESS_XA_SET_TIMEOUT_RESP: XaSetTimeoutResponse,
        packet_types.SESS_XA_GET_TIMEOUT: XaGetTimeout,
        packet_types.SESS_XA_GET_TIMEOUT_RESP: XaGetTimeoutResponse,
    }
)
