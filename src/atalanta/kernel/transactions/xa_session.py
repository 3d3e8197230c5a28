"""The XA operations of a session, with the errors of ServerSessionImpl.

Outside a branch an XA session commits each operation by itself, so `auto_commit_*` is off only inside a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, TRANSACTION_ROLLED_BACK, BrokerError, Postponed
from atalanta.kernel.transactions import xa
from atalanta.kernel.transactions.branch_right import BranchRight
from atalanta.kernel.transactions.transaction import SessionTransaction

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.transactions.xa import XaBranch

# javax.transaction.xa.XAException.
XA_RBTIMEOUT: Final = 106
XA_HEURCOM: Final = 7
XA_HEURRB: Final = 6
XAER_RMERR: Final = -3
XAER_NOTA: Final = -4
XAER_INVAL: Final = -5
XAER_PROTO: Final = -6
XAER_DUPID: Final = -8


class XaError(Exception):
    """An XA error, answered with XA's own `code`; the state is unchanged."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def _check(session: Session, xid: bytes) -> None:
    if not session.xa:
        raise BrokerError(ILLEGAL_STATE, f"session {session.name} is not an XA session")
    if len(xid) > xa.XID_BYTES_MAX:
        raise XaError(XAER_INVAL, f"an xid has at most {xa.XID_BYTES_MAX} bytes")


def right_of(session: Session) -> BranchRight:
    """Returns the right of the session's user to the branches of the node."""
    services = session.services
    return BranchRight(services.permissions, session.identity, services.config.management_address, session.metadata)


def check_right(session: Session, user: str | None, xid: bytes) -> None:
    """Raises BrokerError SECURITY unless the session's user may end a branch of `user`.

    It is none of XA's errors, so transaction managers take it for XAER_RMFAIL: they keep the transaction and try again.
    """
    right = right_of(session)
    if not right.covers(user):
        right.check(session.services.store.now, user, xa.identifier(xid))


def unknown(xid: bytes) -> XaError:
    """Returns the error of a request for a branch that the node does not have, or has no more."""
    return XaError(XAER_NOTA, f"cannot find xid in resource manager: {xa.identifier(xid)}")


def _known(session: Session, xid: bytes) -> XaBranch:
    _check(session, xid)
    branch = session.services.branches.by_xid.get(xid)
    if branch is None:
        raise unknown(xid)
    check_right(session, branch.user, xid)
    return branch


def _not_at_work(session: Session, xid: bytes, verb: str) -> None:
    """Checks that every session has left the branch by `end`; Artemis checks the caller's session only."""
    _check(session, xid)
    branch = session.services.branches.by_xid.get(xid)
    if branch is None:
        return
    check_right(session, branch.user, xid)
    if branch.workers > 0:
        raise XaError(
            XAER_PROTO,
            f"cannot {verb}, a session is currently doing work in transaction {xa.identifier(xid)}",
        )


# -- association --------------------------------------------------------------------------------------
def start(session: Session, now: int, xid: bytes) -> None:
    """Starts a new branch, and rolls back one that the session still works in (xidReplacedOnXStart)."""
    _check(session, xid)
    branches = session.services.branches
    if xid in branches.by_xid or xid in branches.heuristics:
        raise XaError(XAER_DUPID, f"cannot start, there is already a xid {xa.identifier(xid)}")
    _check_room(session)
    if session.branch is not None:
        branches.abandon(now, session.branch)
    session.enter_branch(branches.add(now, xid, session.xa_timeout_s, right_of(session).user()))


def _check_room(session: Session) -> None:
    """Raises XaError if the user has too many branches."""
    if not session.services.branches.has_room(right_of(session).user()):
        raise XaError(XAER_RMERR, f"more than {xa.BRANCHES_MAX} transactions are open")


def end(session: Session, now: int, xid: bytes) -> None:
    _check(session, xid)
    branch = session.branch
    if branch is not None and branch.xid == xid:
        session.enter_branch(None)
        if branch.state == xa.ROLLED_BACK:
            # Acknowledgements that the client sent after the rollback are returned too.
            rolled_back = branch.transaction.rollback_only
            assert rolled_back is not None
            session.services.branches.roll_back_active(now, branch, rolled_back)
            code = XA_RBTIMEOUT if branch.timed_out else XAER_PROTO
            raise XaError(code, "cannot end, transaction is rolled back")
        session.ended_branch = branch
        return
    other = session.services.branches.by_xid.get(xid)
    if other is None:
        raise XaError(XAER_NOTA, f"cannot find suspended transaction to end {xa.identifier(xid)}")
    check_right(session, other.user, xid)
    session.services.command.begin_change()
    if other.state == xa.SUSPENDED:
        other.state = xa.ACTIVE
    elif other.state != xa.ACTIVE:
        raise XaError(XAER_PROTO, f"transaction is not suspended {xa.identifier(xid)}")


def suspend(session: Session) -> None:
    _check(session, b"")
    branch = session.branch
    if branch is None:
        raise XaError(XAER_PROTO, "cannot suspend, session is not doing work in a transaction")
    session.services.command.begin_change()
    if branch.state == xa.ACTIVE:
        branch.state = xa.SUSPENDED
    session.enter_branch(None)


def resume(session: Session, xid: bytes) -> None:
    if session.branch is not None:
        raise XaError(XAER_PROTO, "cannot resume, session is currently doing work in a transaction")
    branch = _known(session, xid)
    if branch.state != xa.SUSPENDED:
        raise XaError(XAER_PROTO, f"cannot resume, it is not suspended {xa.identifier(xid)}")
    session.services.command.begin_change()
    branch.state = xa.ACTIVE
    session.enter_branch(branch)


def join(session: Session, xid: bytes) -> None:
    branch = _known(session, xid)
    if branch.state == xa.SUSPENDED:
        raise XaError(XAER_PROTO, f"cannot join, it is suspended {xa.identifier(xid)}")
    if branch.state != xa.ACTIVE:
        raise XaError(XAER_PROTO, f"cannot join, it is not active {xa.identifier(xid)}")
    if session.branch is not None:
        raise XaError(XAER_PROTO, "cannot join, session is currently doing work in a transaction")
    session.enter_branch(branch)


def failed(session: Session, now: int, xid: bytes) -> None:
    """Fails the branch of a client whose connection was lost: it must not be committed any more."""
    _check(session, xid)
    branches = session.services.branches
    ended = branches.heuristics.get(xid)
    if ended is not None:  # an operator was faster
        check_right(session, ended.user, xid)
        session.enter_branch(None)
        return
    branch = branches.by_xid.get(xid)
    if branch is None:
        _check_room(session)  # an unknown branch cannot be committed either
        branch = branches.add(now, xid, session.xa_timeout_s, right_of(session).user())
    check_right(session, branch.user, xid)
    session.services.command.begin_change()
    if branch.state == xa.PREPARED:
        session.enter_branch(None)
        return
    branch.transaction.rollback_only = BrokerError(
        TRANSACTION_ROLLED_BACK, "cannot commit as a failover happened during the operation"
    )
    session.enter_branch(branch)


def set_timeout(session: Session, seconds: int) -> None:
    """Sets the session's timeout; 0 is the node's own (javax.transaction.xa.XAResource.setTransactionTimeout)."""
    _check(session, b"")
    session.xa_timeout_s = seconds if seconds > 0 else -1
    if session.branch is not None:
        session.branch.timeout_s = session.xa_timeout_s


def timeout(session: Session) -> int:
    """Returns the timeout in seconds."""
    _check(session, b"")
    if session.xa_timeout_s > 0:
        return session.xa_timeout_s
    return session.services.config.transaction_timeout_ms // 1_000


def in_doubt(session: Session) -> list[bytes]:
    _check(session, b"")
    return session.services.branches.in_doubt(right_of(session))


# -- phases ---------------------------------------------------------------------------------------------
def prepare(session: Session, now: int, xid: bytes, endpoint: Reply, token: int) -> None:
    _not_at_work(session, xid, "prepare")
    branch = _known(session, xid)
    if branch.state == xa.SUSPENDED:
        raise XaError(XAER_PROTO, f"cannot prepare, it is suspended {xa.identifier(xid)}")
    if branch.state == xa.PREPARED:
        session.services.store.reply_when_durable(branch.lsn, endpoint, token)
        return
    session.services.branches.prepare(now, branch, endpoint, token)


def commit(
    session: Session, now: int, xid: bytes, one_phase: bool, endpoint: Reply, token: int
) -> None:
    ended = session.ended_branch
    session.ended_branch = None
    _not_at_work(session, xid, "commit")
    _check_heuristic(session, xid)
    branch = _known(session, xid)
    if branch.state == xa.SUSPENDED:
        raise XaError(XAER_PROTO, f"cannot commit, it is suspended {xa.identifier(xid)}")
    if branch.state == xa.PREPARED and not one_phase:
        session.services.branches.commit_prepared(branch, xa.ENDED, endpoint, token)
        return
    if branch.state == xa.PREPARED or (branch.state == xa.ACTIVE and not one_phase):
        raise branch.wrong_state()
    session.services.command.begin_change()
    del session.services.branches.by_xid[xid]
    if branch.state == xa.ROLLED_BACK:
        raise branch.transaction.rollback_only or branch.wrong_state()
    try:
        session.services.commits.commit(session, now, branch.transaction, endpoint, token)
    except Postponed:
        session.services.branches.by_xid[xid] = branch  # the commit is tried again
        session.ended_branch = ended
        raise


def roll_back(session: Session, now: int, xid: bytes, endpoint: Reply, token: int) -> None:
    """Rolls back, and returns the session's prefetched messages too (ServerSessionImpl.doRollback)."""
    session.ended_branch = None
    _not_at_work(session, xid, "roll back")
    _check_heuristic(session, xid)
    branch = _known(session, xid)
    if branch.state == xa.SUSPENDED:
        raise XaError(XAER_PROTO, f"cannot roll back, it is suspended {xa.identifier(xid)}")
    if branch.state == xa.PREPARED:
        session.services.branches.roll_back_prepared(now, branch, xa.ENDED, endpoint, token)
        session.give_back_prefetched(now, [], False)
        return
    session.services.command.begin_change()
    del session.services.branches.by_xid[xid]
    session.give_back_prefetched(now, branch.transaction.acknowledged, False)
    branch.transaction = SessionTransaction()
    endpoint.done(token)


def forget(session: Session, xid: bytes, endpoint: Reply, token: int) -> None:
    _check(session, xid)
    branches = session.services.branches
    ended = branches.heuristics.get(xid)
    if ended is not None:
        check_right(session, ended.user, xid)
    if not branches.forget(xid, endpoint, token):
        raise XaError(XAER_NOTA, f"no heuristic end of {xa.identifier(xid)} is known")


def _check_heuristic(session: Session, xid: bytes) -> None:
    _check(session, xid)
    ended = session.services.branches.heuristics.get(xid)
    if ended is None:
        return
    check_right(session, ended.user, xid)
    if ended.outcome == xa.HEURISTICALLY_COMMITTED:
        raise XaError(
            XA_HEURCOM, f"transaction has been heuristically committed: {xa.identifier(xid)}"
        )
    raise XaError(
        XA_HEURRB, f"transaction has been heuristically rolled back: {xa.identifier(xid)}"
    )
