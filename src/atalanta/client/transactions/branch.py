"""Branches of XA transactions: prepared at several brokers, then committed or rolled back at each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.client.transactions.transaction import Blocked, Transaction
from atalanta.wire.core.client.errors import BranchRefused, ClientError, UnknownBranch
from atalanta.wire.core.client.request import FAIL
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.transaction import (
    XaCommit,
    XaEnd,
    XaForget,
    XaInDoubt,
    XaInDoubtResponse,
    XaPrepare,
    XaResponse,
    XaRollback,
    XaStart,
    Xid,
)

if TYPE_CHECKING:
    from atalanta.client.connection import Connection

XAER_NOTA: Final = -4  # javax.transaction.xa.XAException: the broker does not know the branch


class Branch(Transaction):
    """A branch with a session of its own. After `prepare` only the XaResource ends it.

    The context manager commits a branch that is not prepared in one phase, or rolls it back if the block raises. A
    branch that is not prepared ends with its connection. (ClientSessionImpl as an XAResource)
    """

    def __init__(self, connection: Connection, xid: Xid, on_blocked: Blocked | None = None) -> None:
        super().__init__(connection, on_blocked)
        self.xid = xid
        self.ended = False  # its session has nothing more to do
        self._left = False  # its session works in the branch no more

    async def open(self) -> Branch:
        """Opens the session and starts the branch. Raises BranchRefused if the broker knows the xid already."""
        if self._session is None:
            self._session = await self._connection.open_session(transacted=True, xa=True)
            await self._call(XaStart(self.xid))
        return self

    async def prepare(self) -> None:
        """Makes the branch durable, an empty one too. Raises BranchRefused if the broker refused one of its sends.

        Close consumers of the branch before this, and the branch before another session commits it: if a session
        fails after that, Artemis keeps messages that were on their way to it in delivery (ServerSessionImpl.pendingTX).
        """
        await self._sent()
        await self._leave(False)
        await self._call(XaPrepare(self.xid))
        self.ended = True

    async def commit(self) -> None:
        """Ends the branch and commits it in one phase, without `prepare`."""
        await self._sent()
        await self._leave(False)
        await self._call(XaCommit(self.xid, True))
        self.ended = True

    async def rollback(self) -> None:
        """Ends the branch and rolls it back. A node that has refused its `prepare` has done so already."""
        await self._leave(True)
        try:
            await self._call(XaRollback(self.xid))
        except UnknownBranch:
            pass  # it is rolled back
        self.ended = True

    async def _leave(self, failed: bool) -> None:
        if failed:
            self.session.forget_waiting()  # a message that is sent after the end of the branch would belong to none
        if not self._left:
            await self._call(XaEnd(self.xid, failed))
            self._left = True

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if self.ended:
            await self._close_after(error)
        else:
            await super().__aexit__(kind, error, trace)

    async def _call(self, packet: Packet) -> None:
        self.session.worked()
        await xa_call(self._connection, self.session, packet)


async def xa_call(connection: Connection, session: ClientSession, packet: Packet) -> None:
    """Sends a request about a branch. Raises UnknownBranch or BranchRefused."""
    answer = await connection.shell.answer(session.request(packet, FAIL))
    if not isinstance(answer, XaResponse):
        raise ClientError(f"the broker answered with {answer!r}, not with a SESS_XA_RESP")
    if answer.error:
        kind = UnknownBranch if answer.code == XAER_NOTA else BranchRefused
        text = f"{type(packet).__name__}: {answer.message} (XA code {answer.code})"
        raise kind(text, answer.code)


class XaResource:
    """The broker as a resource of XA transactions, for their manager (XAResource). It has a session of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session: ClientSession | None = None

    async def _opened(self) -> ClientSession:
        if self._session is None or self._session.closed:
            self._session = await self._connection.open_session(transacted=True, xa=True)
        return self._session

    def branch(self, xid: Xid, on_blocked: Blocked | None = None) -> Branch:
        """Returns a new branch: `async with connection.xa_resource.branch(xid) as branch`, then `prepare`.

        `on_blocked(address, seconds)` is called twice a second while the broker grants no credits for a message: its
        address is full and its policy is BLOCK, or the disk is full. What it raises ends the wait; the branch can then
        only be rolled back.
        """
        return Branch(self._connection, xid, on_blocked)

    async def recover(self) -> list[Xid]:
        """Returns the ids of the prepared branches, and of those that an operator has ended, until `forget`."""
        session = await self._opened()
        answer = await self._connection.shell.answer(session.request(XaInDoubt(), FAIL))
        if not isinstance(answer, XaInDoubtResponse):
            raise ClientError(f"the broker answered with {answer!r}, not with its prepared branches")
        return answer.xids

    async def commit(self, xid: Xid) -> None:
        """Commits a prepared branch. Raises UnknownBranch if the broker does not have it (any more)."""
        await xa_call(self._connection, await self._opened(), XaCommit(xid, False))

    async def rollback(self, xid: Xid) -> None:
        """Rolls a prepared branch back. Raises UnknownBranch if the broker does not have it (any more)."""
        await xa_call(self._connection, await self._opened(), XaRollback(xid))

    async def forget(self, xid: Xid) -> None:
        """Makes the broker forget a branch that an operator has committed or rolled back (XA_HEURCOM, XA_HEURRB)."""
        await xa_call(self._connection, await self._opened(), XaForget(xid))
