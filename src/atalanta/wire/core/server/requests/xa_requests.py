"""XA on a session's channel: every XA request is answered by SESS_XA_RESP, with XA's own codes.

Other errors are answered as EXCEPTION (ServerSessionPacketHandler); the client makes XAER_RMFAIL of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.errors import BrokerError, Postponed
from atalanta.kernel.transactions import xa_session
from atalanta.kernel.transactions.xa_session import XaError
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.transaction import (
    XaCommit,
    XaEnd,
    XaFailed,
    XaForget,
    XaGetTimeout,
    XaGetTimeoutResponse,
    XaInDoubt,
    XaInDoubtResponse,
    XaJoin,
    XaPrepare,
    XaResponse,
    XaResume,
    XaRollback,
    XaSetTimeout,
    XaSetTimeoutResponse,
    XaStart,
    XaSuspend,
    Xid,
    decode_xid,
    encode_xid,
)

if TYPE_CHECKING:
    from atalanta.wire.core.server.session import CoreSession

NO_CORRELATION: Final = -1
XA_OK: Final = 0


class XaReply(Reply):
    """Takes the answers to one session's XA requests; other answers go to the session itself."""

    def __init__(self, session: CoreSession) -> None:
        self.session = session

    def takes_notices(self) -> bool:
        return self.session.takes_notices()

    def done(self, token: int) -> None:
        self.session.reply(XaResponse(error=False, code=XA_OK, correlation=token))

    def failed(self, token: int, error: BrokerError) -> None:
        self.session.failed(token, error)


class XaRefusal(Reply):
    """Refuses an XA request when the ends of branches are on disk: an unknown one may have just ended."""

    def __init__(self, session: CoreSession, error: XaError) -> None:
        self.session = session
        self.error = error

    def done(self, token: int) -> None:
        error = self.error
        self.session.reply(XaResponse(error=True, code=error.code, message=error.text, correlation=token))


class InDoubtReply(Reply):
    """Answers a recovery scan when all that has led to the answer is on disk."""

    def __init__(self, session: CoreSession, xids: list[Xid]) -> None:
        self.session = session
        self.xids = xids

    def done(self, token: int) -> None:
        self.session.reply(XaInDoubtResponse(self.xids))


def _key(xid: Xid) -> bytes:
    writer = Writer()
    encode_xid(writer, xid)
    return writer.getvalue()


def answer_xa(session: CoreSession, now: int, packet: Packet) -> bool:
    """Processes an XA request; returns False for any other request."""
    try:
        return _answer(session, now, packet)
    except XaError as error:
        if not isinstance(packet, XaFailed):
            services = session.session.services
            lsn = services.branches.newest_end()
            services.store.reply_when_durable(lsn, XaRefusal(session, error), NO_CORRELATION)
    except Postponed:
        raise
    except BrokerError as refusal:  # separate name: mypyc gives each name one type
        session.failed(NO_CORRELATION, refusal)
    return True


def _answer(session: CoreSession, now: int, packet: Packet) -> bool:
    kernel = session.session
    if isinstance(packet, XaPrepare):
        xa_session.prepare(kernel, now, _key(packet.xid), XaReply(session), NO_CORRELATION)
    elif isinstance(packet, XaCommit):
        xa_session.commit(
            kernel, now, _key(packet.xid), packet.one_phase, XaReply(session), NO_CORRELATION
        )
    elif isinstance(packet, XaRollback):
        xa_session.roll_back(kernel, now, _key(packet.xid), XaReply(session), NO_CORRELATION)
    elif isinstance(packet, XaForget):
        xa_session.forget(kernel, _key(packet.xid), XaReply(session), NO_CORRELATION)
    elif isinstance(packet, XaFailed):
        xa_session.failed(kernel, now, _key(packet.xid))
    elif isinstance(packet, XaInDoubt):
        xids = [decode_xid(Reader(key), "xid") for key in xa_session.in_doubt(kernel)]
        # What it lists, and what it does not list any more, must be durable: after a crash a branch whose end was not
        # would be in doubt again, and its coordinator may have forgotten how it ends.
        lsn = kernel.services.branches.newest_lsn()
        kernel.services.store.reply_when_durable(lsn, InDoubtReply(session, xids), NO_CORRELATION)
    elif isinstance(packet, XaSetTimeout):
        xa_session.set_timeout(kernel, packet.timeout_s)
        session.reply(XaSetTimeoutResponse(True))
    elif isinstance(packet, XaGetTimeout):
        session.reply(XaGetTimeoutResponse(xa_session.timeout(kernel)))
    else:
        return _associate(session, now, packet)
    return True


def _associate(session: CoreSession, now: int, packet: Packet) -> bool:
    kernel = session.session
    if isinstance(packet, XaStart):
        xa_session.start(kernel, now, _key(packet.xid))
    elif isinstance(packet, XaEnd):
        xa_session.end(kernel, now, _key(packet.xid))
    elif isinstance(packet, XaSuspend):
        xa_session.suspend(kernel)
    elif isinstance(packet, XaResume):
        xa_session.resume(kernel, _key(packet.xid))
    elif isinstance(packet, XaJoin):
        xa_session.join(kernel, _key(packet.xid))
    else:
        return False
    session.reply(XaResponse(error=False, code=XA_OK, correlation=NO_CORRELATION))
    return True
