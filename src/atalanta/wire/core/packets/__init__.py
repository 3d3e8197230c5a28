"""CORE packets and their codec."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.wire.core.packets.base import Packet
    from atalanta.wire.core.packets.codec import decode_frame, encode
    from atalanta.wire.core.packets.connection import (
        REASON_REDIRECT,
        REASON_SCALE_DOWN,
        PacketsConfirmed,
        Ping,
    )
    from atalanta.wire.core.packets.log_chunk import LogEntry, LogReadResponse, decode_entries
    from atalanta.wire.core.packets.logview import (
        LogAckThrough,
        LogAckThroughResponse,
        LogLease,
        LogLeaseResponse,
        LogPlan,
        LogPlanResponse,
        LogRead,
        LogRetain,
    )
    from atalanta.wire.core.packets.session import ReattachSession, ReattachSessionResponse
    from atalanta.wire.core.packets.topology import SubscribeTopologyV2
    from atalanta.wire.core.packets.transaction import (
        XaCommit,
        XaEnd,
        XaInDoubt,
        XaInDoubtResponse,
        XaPrepare,
        XaResponse,
        XaRollback,
        XaStart,
        Xid,
        decode_xid,
    )
else:
    __getattr__ = face(__name__)

__all__ = [
    "REASON_REDIRECT", "REASON_SCALE_DOWN", "LogAckThrough", "LogAckThroughResponse", "LogEntry",
    "LogLease", "LogLeaseResponse", "LogPlan", "LogPlanResponse", "LogRead", "LogReadResponse",
    "LogRetain", "Packet", "PacketsConfirmed", "Ping", "ReattachSession", "ReattachSessionResponse",
    "SubscribeTopologyV2", "XaCommit", "XaEnd", "XaInDoubt", "XaInDoubtResponse", "XaPrepare",
    "XaResponse", "XaRollback", "XaStart", "Xid", "decode_entries", "decode_frame", "decode_xid",
    "encode",
]
