"""Distributed transactions (XA): the branches of one node, and the heuristic decisions of operators.

Follows ResourceManagerImpl and TransactionImpl. A prepared branch is one record (XA_PREPARED: messages with their
routes and duplicate ids, acknowledgements). Its commit is another record, with the content of a local commit and the
end of the branch. Until then its messages are in no queue, and messages it acknowledged are not delivered.
"""

from __future__ import annotations

from binascii import b2a_base64
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import (
    DUPLICATE_ID,
    ILLEGAL_STATE,
    TRANSACTION_TIMEOUT,
    BrokerError,
)
from atalanta.kernel.journal import records
from atalanta.kernel.publish.acknowledged_routes import store_acknowledged
from atalanta.kernel.publish.duplicate_detection import (
    headers_of_links,
    put_back,
)
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.transactions.transaction import Transaction
from atalanta.kernel.transactions.xa_records import encode_ended, encode_prepared
from atalanta.message.encoding.buffer import Reader

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.endpoint import Reply

XA_TIMER: Final = "kernel.xa"
BRANCHES_MAX: Final = 10_000  # of one node, without prepared ones
XID_BYTES_MAX: Final = 1_024
# States of a branch.
ACTIVE: Final = 0
SUSPENDED: Final = 1
PREPARED: Final = 2
ROLLED_BACK: Final = 3
# Outcomes of a branch (XA_ENDED); a heuristic one is kept until the transaction manager forgets it.
ENDED: Final = 0
HEURISTICALLY_COMMITTED: Final = 1
HEURISTICALLY_ROLLED_BACK: Final = 2


class Branch:
    """A branch. `xid` is in its wire form (XidCodecSupport); `timeout_s` < 0 is the node's own timeout."""

    def __init__(self, xid: bytes, created_at: int, timeout_s: int) -> None:
        self.xid = xid
        self.created_at = created_at
        self.timeout_s = timeout_s
        self.state: int = ACTIVE
        self.timed_out: bool = False
        self.workers: int = 0  # sessions that work in the branch
        self.clients: dict[int, bool] = {}  # connections that have worked in the branch since the node's start
        self.transaction = Transaction()
        self.plans: list[Plan] = []
        self.lsn: int = 0
        self.stored_bytes: int = 0


class Heuristic:
    """A prepared branch that an operator ended: its manager learns that at its next call, and may then forget it."""

    def __init__(self, outcome: int, lsn: int) -> None:
        self.outcome = outcome
        self.lsn = lsn


class Branches:
    """The branches of a node by xid."""

    def __init__(self) -> None:
        self.by_xid: dict[bytes, Branch] = {}
        self.heuristics: dict[bytes, Heuristic] = {}
        self.prepared: int = 0
        self.stored_bytes: int = 0
        self.timer_set: bool = False

    def in_doubt(self) -> list[bytes]:
        """Returns the xids for a recovery scan: prepared branches and heuristic outcomes."""
        found = [branch.xid for branch in self.by_xid.values() if branch.state == PREPARED]
        found.extend(self.heuristics)
        return found

    def newest_lsn(self) -> int:
        """Returns the lsn that must be durable before the result of `in_doubt` is sent."""
        newest = 0
        for branch in self.by_xid.values():
            newest = max(newest, branch.lsn)
        for heuristic in self.heuristics.values():
            newest = max(newest, heuristic.lsn)
        return newest


# -- the two phases -------------------------------------------------------------------------------
def prepare(broker: Broker, now: int, branch: Branch, endpoint: Reply, token: int) -> None:
    """Prepares a branch; `endpoint.done(token)` when it survives a crash. BrokerError: it is rolled back instead.

    A repeat rolls back too; `endpoint.failed` reports it when the first copy is durable.
    """
    transaction = branch.transaction
    error = transaction.rollback_only
    plans: list[Plan] = []
    if error is None:
        try:
            plans = _plan(broker, now, transaction)
        except Undecided:
            raise  # the prepare is tried again
        except BrokerError as refused:
            error = refused
    if error is not None:
        roll_back_active(broker, now, branch, error)
        if error.code != DUPLICATE_ID:
            raise error
        broker.store.refuse_when_durable(broker.journal.last, endpoint, token, error)
        return
    batch = records.Batch()
    written: list[Plan] = []
    arrived: list[Reference] = []
    for plan in plans:
        if plan.acknowledged is not None:
            written.append(store_acknowledged(broker.plans, plan, batch, arrived))
    branch.plans = [plan for plan in plans if plan not in written]
    transaction.acknowledged.extend(arrived)
    brought = broker.publisher.duplicates.take_shipment_ids(branch.plans, batch)
    hold(branch)
    branch.state = PREPARED
    payload = encode_prepared(branch)
    branch.stored_bytes = len(payload)
    broker.branches.prepared += 1
    broker.branches.stored_bytes += branch.stored_bytes
    batch.add(records.XA_PREPARED, payload)
    branch.lsn = broker.plans.append(batch, written, arrived, endpoint, token)
    broker.publisher.duplicates.add(brought, branch.lsn)


def _plan(broker: Broker, now: int, transaction: Transaction) -> list[Plan]:
    plans: list[Plan] = []
    undecided: list[str] = []
    headers = headers_of_links(transaction.messages) if broker.router.grouping is not None else []
    for message in transaction.messages:
        try:
            plan = broker.publisher.prepare(now, message)
        except Undecided as waiting:
            undecided.extend(waiting.ids)
            continue
        if plan.repeats_lsn >= 0:
            raise BrokerError(DUPLICATE_ID, f"duplicate message detected on {message.address}")
        plans.append(plan)
        if plan.diverted is not None:
            plans.extend(plan.diverted)
            plan.diverted = None
    if undecided:
        put_back(headers)
        raise Undecided(undecided)
    return plans


def hold(branch: Branch) -> None:
    """Holds the queues that a prepared branch will send to, so that they are not deleted as unused."""
    for plan in branch.plans:
        for planned in plan.routes:
            planned.queue.count_pending(1)


def _release(broker: Broker, branch: Branch) -> None:
    """Releases the queues of a branch that is no longer in doubt."""
    for plan in branch.plans:
        for planned in plan.routes:
            planned.queue.count_pending(-1)
    broker.branches.by_xid.pop(branch.xid, None)
    broker.branches.prepared -= 1
    broker.branches.stored_bytes -= branch.stored_bytes


def commit_prepared(
    broker: Broker, now: int, branch: Branch, outcome: int, endpoint: Reply | None, token: int
) -> None:
    """Commits in one record: the messages in their queues, the acknowledgements, the end of the branch.

    A message whose duplicate id has arrived by another route in the meantime is not sent again.
    """
    _release(broker, branch)
    batch = records.Batch()
    references: list[Reference] = []
    plans: list[Plan] = []
    for plan in branch.plans:
        plan.routes = [planned for planned in plan.routes if not planned.queue.deleted]
        if _arrived_meanwhile(broker, plan):
            broker.trace.count("duplicates_dropped")
            continue
        plans.append(plan)
        references.extend(broker.plans.add(plan, batch))
    broker.store.finish(branch.transaction.acknowledged, batch)
    batch.add(records.XA_ENDED, encode_ended(branch.xid, outcome))
    lsn = broker.plans.append(batch, plans, references, endpoint, token)
    if outcome != ENDED:
        broker.branches.heuristics[branch.xid] = Heuristic(outcome, lsn)


def _arrived_meanwhile(broker: Broker, plan: Plan) -> bool:
    for cache_name, duplicate_id in plan.duplicates:
        if broker.caches.cache_of(cache_name).lsn_of(duplicate_id) >= 0:
            return True
    return False


def hand_over(broker: Broker, branch: Branch, batch: records.Batch) -> None:
    """Ends a branch that another node has taken over, without effect; the caller finishes its acknowledgements."""
    _release(broker, branch)
    for plan in branch.plans:
        if plan.message.large is not None:
            broker.large.hold(plan.message.large, 0)  # its transaction is over
    batch.add(records.XA_ENDED, encode_ended(branch.xid, ENDED))


def roll_back_prepared(
    broker: Broker, now: int, branch: Branch, outcome: int, endpoint: Reply | None, token: int
) -> None:
    """Rolls back a prepared branch: drops its sends, and returns acknowledged messages to their queues."""
    _release(broker, branch)
    batch = records.Batch()
    batch.add(records.XA_ENDED, encode_ended(branch.xid, outcome))
    lsn = broker.plans.append(batch, [], [], endpoint, token)
    if outcome != ENDED:
        broker.branches.heuristics[branch.xid] = Heuristic(outcome, lsn)
    broker.redelivery.redeliver(now, branch.transaction.acknowledged, True)
    branch.transaction = Transaction()


def roll_back_active(broker: Broker, now: int, branch: Branch, error: BrokerError) -> None:
    """Rolls back a branch that is not prepared, so nothing is stored; a later commit is answered with `error`."""
    transaction = branch.transaction
    back = transaction.acknowledged
    transaction.acknowledged = []
    transaction.messages = []
    transaction.rollback_only = error
    branch.state = ROLLED_BACK
    broker.redelivery.redeliver(now, back, True)


def forget(broker: Broker, xid: bytes, endpoint: Reply, token: int) -> bool:
    """Forgets a heuristic outcome for the transaction manager; returns False if there is none."""
    if broker.branches.heuristics.pop(xid, None) is None:
        return False
    batch = records.Batch()
    batch.add(records.XA_ENDED, encode_ended(xid, ENDED))
    broker.plans.append(batch, [], [], endpoint, token)
    return True


# -- time -------------------------------------------------------------------------------------------
def watch(broker: Broker, now: int) -> None:
    """Starts the timeout of unprepared branches (transaction-timeout, transaction-timeout-scan-period)."""
    if not broker.branches.timer_set:
        broker.branches.timer_set = True
        period_ns = broker.config.transaction_timeout_scan_period_ms * 1_000_000
        broker.timers.set(XA_TIMER, now + period_ns)


def on_timer(broker: Broker, now: int) -> None:
    """Rolls back timed-out branches (ResourceManagerImpl.TxTimeoutHandler), but never a prepared one."""
    branches = broker.branches
    branches.timer_set = False
    unprepared = 0
    for branch in list(branches.by_xid.values()):
        if branch.state == PREPARED:
            continue
        limit_ns = broker.config.transaction_timeout_ms * 1_000_000
        if branch.timeout_s > 0:
            limit_ns = branch.timeout_s * 1_000_000_000
        if now - branch.created_at <= limit_ns:
            unprepared += 1
            continue
        del branches.by_xid[branch.xid]
        branch.timed_out = True
        broker.trace.event("transaction_timed_out", {"xid": identifier(branch.xid)})
        roll_back_active(
            broker, now, branch, BrokerError(TRANSACTION_TIMEOUT, "transaction timed out")
        )
    if unprepared:
        watch(broker, now)


# -- for management -------------------------------------------------------------------------------------
def identifier(xid: bytes) -> str:
    """Returns the text that Artemis shows to operators for a transaction (XidImpl.toBase64String)."""
    reader = Reader(xid)
    format_id = reader.int32("xid.format_id")
    branch = reader.blob("xid.branch_qualifier")
    data = bytearray(branch + reader.blob("xid.global_transaction_id"))
    for shift in (0, 8, 16, 24):
        shifted = format_id >> shift
        # Java's % keeps the sign, and the byte cast keeps the low eight bits.
        remainder = abs(shifted) % 0xFF
        data.append((remainder if shifted >= 0 else -remainder) & 0xFF)
    return b2a_base64(bytes(data), newline=False).decode("ascii")


def list_prepared(broker: Broker) -> list[Branch]:
    """Returns the prepared branches, the oldest first."""
    found = [branch for branch in broker.branches.by_xid.values() if branch.state == PREPARED]
    found.sort(key=_by_age)
    return found


def _by_age(branch: Branch) -> int:
    return branch.created_at


def list_heuristic(broker: Broker, outcome: int) -> list[bytes]:
    """Returns the xids that an operator committed or rolled back and no manager has forgotten yet."""
    return [xid for xid, ended in broker.branches.heuristics.items() if ended.outcome == outcome]


def end_by_operator(broker: Broker, now: int, name: str, commit: bool) -> bool:
    """Commits or rolls back a prepared branch without its manager; `name` is its `identifier`. False: unknown."""
    for branch in list_prepared(broker):
        if identifier(branch.xid) == name:
            if commit:
                commit_prepared(broker, now, branch, HEURISTICALLY_COMMITTED, None, 0)
            else:
                roll_back_prepared(broker, now, branch, HEURISTICALLY_ROLLED_BACK, None, 0)
            return True
    return False


def in_wrong_state(branch: Branch) -> BrokerError:
    names = ("active", "suspended", "prepared", "rolled back")
    return BrokerError(
        ILLEGAL_STATE, f"transaction {identifier(branch.xid)} is {names[branch.state]}"
    )
