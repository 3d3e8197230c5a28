"""Local transactions and XA (fact sheet A1.a)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.packets_xid import Xid
from atalanta.wire.core.types import (
    SESS_COMMIT,
    SESS_ROLLBACK,
    SESS_XA_COMMIT,
    SESS_XA_END,
    SESS_XA_FAILED,
    SESS_XA_FORGET,
    SESS_XA_GET_TIMEOUT,
    SESS_XA_GET_TIMEOUT_RESP,
    SESS_XA_INDOUBT_XIDS,
    SESS_XA_INDOUBT_XIDS_RESP,
    SESS_XA_JOIN,
    SESS_XA_PREPARE,
    SESS_XA_RESP,
    SESS_XA_RESUME,
    SESS_XA_ROLLBACK,
    SESS_XA_SET_TIMEOUT,
    SESS_XA_SET_TIMEOUT_RESP,
    SESS_XA_START,
    SESS_XA_SUSPEND,
)


class Commit(Packet):
    """SESS_COMMIT."""

    type: ClassVar[int] = SESS_COMMIT
    layout: ClassVar[str] = "correlation i64@132=-1"

    def __init__(
        self,
        correlation: int = -1,
    ) -> None:
        self.correlation: int = correlation


class Rollback(Packet):
    """SESS_ROLLBACK."""

    type: ClassVar[int] = SESS_ROLLBACK
    layout: ClassVar[str] = "consider_last_message_as_delivered bool"

    def __init__(
        self,
        consider_last_message_as_delivered: bool = False,
    ) -> None:
        self.consider_last_message_as_delivered: bool = consider_last_message_as_delivered


class XaFailed(Packet):
    """SESS_XA_FAILED."""

    type: ClassVar[int] = SESS_XA_FAILED
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaStart(Packet):
    """SESS_XA_START."""

    type: ClassVar[int] = SESS_XA_START
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaEnd(Packet):
    """SESS_XA_END."""

    type: ClassVar[int] = SESS_XA_END
    layout: ClassVar[str] = "xid xid, failed bool"

    def __init__(
        self,
        xid: Xid,
        failed: bool,
    ) -> None:
        self.xid: Xid = xid
        self.failed: bool = failed


class XaCommit(Packet):
    """SESS_XA_COMMIT."""

    type: ClassVar[int] = SESS_XA_COMMIT
    layout: ClassVar[str] = "xid xid, one_phase bool"

    def __init__(
        self,
        xid: Xid,
        one_phase: bool,
    ) -> None:
        self.xid: Xid = xid
        self.one_phase: bool = one_phase


class XaPrepare(Packet):
    """SESS_XA_PREPARE."""

    type: ClassVar[int] = SESS_XA_PREPARE
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaResponse(Packet):
    """SESS_XA_RESP. `code` is XA's own."""

    type: ClassVar[int] = SESS_XA_RESP
    layout: ClassVar[str] = "error bool, code i32, message str?, correlation i64@130=-1"

    def __init__(
        self,
        error: bool,
        code: int,
        message: str | None = None,
        correlation: int = -1,
    ) -> None:
        self.error: bool = error
        self.code: int = code
        self.message: str | None = message
        self.correlation: int = correlation


class XaRollback(Packet):
    """SESS_XA_ROLLBACK."""

    type: ClassVar[int] = SESS_XA_ROLLBACK
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaJoin(Packet):
    """SESS_XA_JOIN."""

    type: ClassVar[int] = SESS_XA_JOIN
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaSuspend(Packet):
    """SESS_XA_SUSPEND."""

    type: ClassVar[int] = SESS_XA_SUSPEND
    layout: ClassVar[str] = ""


class XaResume(Packet):
    """SESS_XA_RESUME."""

    type: ClassVar[int] = SESS_XA_RESUME
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaForget(Packet):
    """SESS_XA_FORGET."""

    type: ClassVar[int] = SESS_XA_FORGET
    layout: ClassVar[str] = "xid xid"

    def __init__(
        self,
        xid: Xid,
    ) -> None:
        self.xid: Xid = xid


class XaInDoubt(Packet):
    """SESS_XA_INDOUBT_XIDS."""

    type: ClassVar[int] = SESS_XA_INDOUBT_XIDS
    layout: ClassVar[str] = ""


class XaInDoubtResponse(Packet):
    """SESS_XA_INDOUBT_XIDS_RESP."""

    type: ClassVar[int] = SESS_XA_INDOUBT_XIDS_RESP
    layout: ClassVar[str] = "xids xid*"

    def __init__(
        self,
        xids: list[Xid],
    ) -> None:
        self.xids: list[Xid] = xids


class XaSetTimeout(Packet):
    """SESS_XA_SET_TIMEOUT."""

    type: ClassVar[int] = SESS_XA_SET_TIMEOUT
    layout: ClassVar[str] = "timeout_s i32"

    def __init__(
        self,
        timeout_s: int,
    ) -> None:
        self.timeout_s: int = timeout_s


class XaSetTimeoutResponse(Packet):
    """SESS_XA_SET_TIMEOUT_RESP."""

    type: ClassVar[int] = SESS_XA_SET_TIMEOUT_RESP
    layout: ClassVar[str] = "ok bool"

    def __init__(
        self,
        ok: bool,
    ) -> None:
        self.ok: bool = ok


class XaGetTimeout(Packet):
    """SESS_XA_GET_TIMEOUT."""

    type: ClassVar[int] = SESS_XA_GET_TIMEOUT
    layout: ClassVar[str] = ""


class XaGetTimeoutResponse(Packet):
    """SESS_XA_GET_TIMEOUT_RESP."""

    type: ClassVar[int] = SESS_XA_GET_TIMEOUT_RESP
    layout: ClassVar[str] = "timeout_s i32"

    def __init__(
        self,
        timeout_s: int,
    ) -> None:
        self.timeout_s: int = timeout_s


PACKETS: Final[list[type[Packet]]] = [
    Commit,
    Rollback,
    XaFailed,
    XaStart,
    XaEnd,
    XaCommit,
    XaPrepare,
    XaResponse,
    XaRollback,
    XaJoin,
    XaSuspend,
    XaResume,
    XaForget,
    XaInDoubt,
    XaInDoubtResponse,
    XaSetTimeout,
    XaSetTimeoutResponse,
    XaGetTimeout,
    XaGetTimeoutResponse,
]
