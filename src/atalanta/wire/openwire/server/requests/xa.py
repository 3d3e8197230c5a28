"""Distributed transactions of OpenWire clients, by the kernel's branches.

Unlike CORE, no session is bound to a branch: each message and acknowledgement names its xid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT, Reply
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError, Postponed
from atalanta.kernel.transactions import xa
from atalanta.kernel.transactions.xa_session import (
    XA_HEURCOM,
    XA_HEURRB,
    XAER_DUPID,
    XAER_INVAL,
    XAER_NOTA,
    XAER_PROTO,
    XAER_RMERR,
    XaError,
    check_right,
    right_of,
    unknown,
)
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.openwire.commands.transactions import TransactionInfo, XATransactionId
from atalanta.wire.openwire.server.requests.transaction_end import TransactionEnd
from atalanta.wire.openwire.server.sessions.answers import Answer
from atalanta.wire.openwire.server.sessions.errors import xa_throwable

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.transactions.xa import XaBranch
    from atalanta.wire.openwire.encoding.structure import DataStructure
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession

BEGIN: Final = 0
PREPARE: Final = 1
COMMIT_ONE_PHASE: Final = 2
COMMIT: Final = 3
ROLLBACK: Final = 4
RECOVER: Final = 5
FORGET: Final = 6
END: Final = 7
XA_OK: Final = 0
XA_RDONLY: Final = 3
XA_RBROLLBACK: Final = 100
NODE_TIMEOUT: Final = -1


def key_of(xid: XATransactionId) -> bytes:
    """Returns the kernel's form of an xid. XaError if it is too long."""
    writer = Writer()
    writer.int32(xid.format_id)
    writer.blob(xid.branch_qualifier or b"")
    writer.blob(xid.global_transaction_id or b"")
    key = writer.getvalue()
    if len(key) > xa.XID_BYTES_MAX:
        raise XaError(XAER_INVAL, f"an xid has at most {xa.XID_BYTES_MAX} bytes")
    return key


def xid_of(key: bytes) -> XATransactionId:
    """Returns the xid of the kernel's form."""
    reader = Reader(key)
    format_id = reader.int32("xid.format_id")
    branch_qualifier = reader.blob("xid.branch_qualifier")
    return XATransactionId(format_id, reader.blob("xid.global_transaction_id"), branch_qualifier)


def known_branch(session: OpenWireSession, xid: XATransactionId) -> XaBranch:
    """Returns the branch for a message or an acknowledgement. BrokerError unless it is active, and the user's."""
    branch = _named(session, xid)
    if branch is None:
        raise BrokerError(ILLEGAL_STATE, "the distributed transaction has not been started")
    check_right(session.kernel, branch.user, branch.xid)
    if branch.state != xa.ACTIVE:
        raise branch.wrong_state()
    return branch


def _named(session: OpenWireSession, xid: XATransactionId) -> XaBranch | None:
    """Returns the branch that a message or an acknowledgement names, None if there is none."""
    try:
        return session.kernel.services.branches.by_xid.get(key_of(xid))
    except XaError:
        return None  # too long for any


def fail_branch(session: OpenWireSession, xid: XATransactionId, why: str) -> None:
    """Fails the branch of a refused operation: it must not commit without it. A stranger's refusal changes nothing."""
    branch = _named(session, xid)
    if branch is not None and branch.state == xa.ACTIVE and right_of(session.kernel).covers(branch.user):
        branch.transaction.fail(why)


def answer_xa(session: OpenWireSession, now: int, info: TransactionInfo, xid: XATransactionId | None) -> None:
    """Processes TransactionInfo of a distributed transaction. Errors have XA's own codes."""
    try:
        if info.kind == RECOVER:
            _recover(session, info)
        elif xid is None:
            raise XaError(XAER_INVAL, "TransactionInfo without TransactionId")
        else:
            _answer(session, now, info, key_of(xid))
    except XaError as error:
        if info.response_required:
            _refuse_command(session, info.command_id, error.code, error.text)


def _answer(session: OpenWireSession, now: int, info: TransactionInfo, key: bytes) -> None:
    if info.kind == BEGIN:
        _begin(session, now, key)
        session.done(session.answers.token_for(info))
    elif info.kind == END:
        session.done(session.answers.token_for(info))
    elif info.kind == PREPARE:
        _prepare(session, now, info, key)
    elif info.kind in (COMMIT_ONE_PHASE, COMMIT):
        _commit(session, now, key, info.kind == COMMIT_ONE_PHASE, session.answers.token_for(info))
    elif info.kind == ROLLBACK:
        _roll_back(session, now, info, key)
    elif info.kind == FORGET:
        branches = session.kernel.services.branches
        ended = branches.heuristics.get(key)
        if ended is not None:
            check_right(session.kernel, ended.user, key)
        token = session.answers.token_for(info)
        if not branches.forget(key, session, token):
            session.answers.forget(token)
            raise XaError(XAER_NOTA, f"no heuristic end of {xa.identifier(key)} is known")
    else:
        raise XaError(XAER_INVAL, f"a distributed transaction has no step {info.kind}")


def _begin(session: OpenWireSession, now: int, key: bytes) -> None:
    """Begins a branch; one that is active is joined. The xid of a heuristic end is taken until it is forgotten."""
    branches = session.kernel.services.branches
    branch = branches.by_xid.get(key)
    if branch is not None:
        check_right(session.kernel, branch.user, key)
        if branch.state != xa.ACTIVE:
            raise XaError(XAER_PROTO, branch.wrong_state().text)
        return
    user = right_of(session.kernel).user()
    ended = branches.heuristics.get(key)
    if ended is not None:
        check_right(session.kernel, ended.user, key)
        raise XaError(XAER_DUPID, f"the end of {xa.identifier(key)} is not forgotten yet")
    if not branches.has_room(user):
        raise XaError(XAER_RMERR, f"more than {xa.BRANCHES_MAX} transactions are open")
    branches.add(now, key, NODE_TIMEOUT, user)
    session.branches[key] = []


def _branch(session: OpenWireSession, key: bytes) -> XaBranch:
    """Returns the branch for a step of its end. XaError: unknown, or ended by an operator."""
    branches = session.kernel.services.branches
    ended = branches.heuristics.get(key)
    if ended is not None:
        check_right(session.kernel, ended.user, key)
        committed = ended.outcome == xa.HEURISTICALLY_COMMITTED
        raise XaError(
            XA_HEURCOM if committed else XA_HEURRB,
            f"transaction has been heuristically {'committed' if committed else 'rolled back'}: {xa.identifier(key)}",
        )
    branch = branches.by_xid.get(key)
    if branch is None:
        raise unknown(key)
    check_right(session.kernel, branch.user, key)
    return branch


def _prepare(session: OpenWireSession, now: int, info: TransactionInfo, key: bytes) -> None:
    """Prepares. A branch without any work is read-only, and over."""
    branch = _branch(session, key)
    branches = session.kernel.services.branches
    answer = Answer(info.command_id)
    read_only = branch.state == xa.ACTIVE and branch.transaction.empty()
    answer.result = XA_RDONLY if read_only else XA_OK
    token = session.answers.add(answer) if info.response_required else SILENT
    if read_only:
        del branches.by_xid[key]
        session.branches.pop(key, None)
        session.done(token)
    elif branch.state == xa.PREPARED:
        session.kernel.services.store.reply_when_durable(branch.lsn, session, token)
    else:
        _prepare_active(session, now, branch, token)


def _prepare_active(session: OpenWireSession, now: int, branch: XaBranch, token: int) -> None:
    try:
        session.kernel.services.branches.prepare(now, branch, session, token)
    except Postponed as postponed:
        session.kernel.wait(now, postponed, None, _prepare_again(session, branch, token))
    except BrokerError as error:
        _refuse(session, token, XA_RBROLLBACK, error.text)


def _prepare_again(session: OpenWireSession, branch: XaBranch, token: int) -> Callable[[int], None]:
    """Returns the function that prepares again, unless another client has ended the branch meanwhile."""

    def again(now: int) -> None:
        if _refuse_ended(session, branch, token):
            return
        if branch.state == xa.PREPARED:
            session.kernel.services.store.reply_when_durable(branch.lsn, session, token)
        else:
            _prepare_active(session, now, branch, token)

    return again


def _commit(session: OpenWireSession, now: int, key: bytes, one_phase: bool, token: int) -> None:
    """Commits, in one phase or a prepared branch."""
    try:
        branch = _branch(session, key)
        if branch.state == xa.PREPARED and not one_phase:
            _commit_prepared(session, now, branch, token)
            return
        if branch.state == xa.PREPARED or (branch.state == xa.ACTIVE and not one_phase):
            raise XaError(XAER_PROTO, branch.wrong_state().text)
    except (XaError, BrokerError):
        session.answers.forget(token)
        raise
    _commit_active(session, now, branch, token)


def _commit_prepared(session: OpenWireSession, now: int, branch: XaBranch, token: int) -> None:
    try:
        session.kernel.services.branches.commit_prepared(branch, xa.ENDED, session, token)
    except Postponed as postponed:
        session.kernel.wait(now, postponed, None, _commit_again(session, branch, token))
        return
    session.branches.pop(branch.xid, None)


def _commit_active(session: OpenWireSession, now: int, branch: XaBranch, token: int) -> None:
    services = session.kernel.services
    if branch.state == xa.ROLLED_BACK:
        services.branches.by_xid.pop(branch.xid, None)
        session.branches.pop(branch.xid, None)
        _refuse(session, token, XA_RBROLLBACK, branch.wrong_state().text)
        return
    try:
        owner = TransactionEnd(session, session.branches.get(branch.xid, []))
        services.commits.commit(owner, now, branch.transaction, session, token)
    except Postponed as postponed:
        session.kernel.wait(now, postponed, None, _commit_again(session, branch, token))
        return
    except BrokerError as error:
        _refuse(session, token, XA_RBROLLBACK, error.text)
    services.branches.by_xid.pop(branch.xid, None)
    session.branches.pop(branch.xid, None)


def _commit_again(session: OpenWireSession, branch: XaBranch, token: int) -> Callable[[int], None]:
    """Returns the function that commits again, unless another client has ended the branch meanwhile."""
    prepared = branch.state == xa.PREPARED

    def again(now: int) -> None:
        if _refuse_ended(session, branch, token):
            return
        if prepared:
            _commit_prepared(session, now, branch, token)
        elif branch.state == xa.PREPARED:
            _refuse(session, token, XAER_PROTO, branch.wrong_state().text)
        else:
            _commit_active(session, now, branch, token)

    return again


def _roll_back(session: OpenWireSession, now: int, info: TransactionInfo, key: bytes) -> None:
    """Rolls back: acknowledged messages stay with consumers of this connection, others return to their queues."""
    branch = _branch(session, key)
    branches = session.kernel.services.branches
    token = session.answers.token_for(info)
    deliveries = session.branches.pop(key, [])
    if branch.state != xa.ROLLED_BACK:
        TransactionEnd(session, deliveries).keep(branch.transaction)
    if branch.state == xa.PREPARED:
        branches.roll_back_prepared(now, branch, xa.ENDED, session, token)
        return
    del branches.by_xid[key]
    branches.redelivery.redeliver(now, branch.transaction.take_acknowledged(), True)
    session.done(token)


def _recover(session: OpenWireSession, info: TransactionInfo) -> None:
    """Answers a recovery scan when all that has led to the answer is on disk, also the ends of other branches."""
    branches = session.kernel.services.branches
    found: list[DataStructure] = []
    for key in branches.in_doubt(right_of(session.kernel)):
        found.append(xid_of(key))
    answer = Answer(info.command_id)
    answer.data = found
    token = session.answers.add(answer)
    session.kernel.services.store.reply_when_durable(branches.newest_lsn(), session, token)


def _refuse_ended(session: OpenWireSession, branch: XaBranch, token: int) -> bool:
    """Refuses a step if somebody else has ended the branch; a branch that is rolled back has an answer of its own."""
    if branch.state == xa.ROLLED_BACK or session.kernel.services.branches.by_xid.get(branch.xid) is branch:
        return False
    error = unknown(branch.xid)
    _refuse(session, token, error.code, error.text)
    return True


def _refuse(session: OpenWireSession, token: int, code: int, text: str) -> None:
    """Answers a step that failed with one of XA's codes."""
    answer = session.answers.waiting.get(token)
    if answer is not None:
        command_id = answer.command_id
        session.answers.forget(token)
        _refuse_command(session, command_id, code, text)


def _refuse_command(session: OpenWireSession, command_id: int, code: int, text: str) -> None:
    """Refuses when the ends of branches are on disk: an unknown one may have just ended."""
    services = session.kernel.services
    services.store.reply_when_durable(services.branches.newest_end(), XaRefusal(session, code, text), command_id)


class XaRefusal(Reply):
    """The refusal of a command."""

    def __init__(self, session: OpenWireSession, code: int, text: str) -> None:
        self.session = session
        self.code = code
        self.text = text

    def done(self, token: int) -> None:
        self.session.connection.respond_error(token, xa_throwable(self.code, self.text))
