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
    TRANSACTION_ROLLED_BACK,
    TRANSACTION_TIMEOUT,
    BrokerError,
    Postponed,
)
from atalanta.kernel.journal import records
from atalanta.kernel.publish.acknowledged_routes import store_acknowledged
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.transactions.commit import check_current, prepared
from atalanta.kernel.transactions.draft import Draft
from atalanta.kernel.transactions.prepared_draft import PreparedDraft
from atalanta.kernel.transactions.transaction import SessionTransaction
from atalanta.kernel.transactions.xa_records import encode_ended
from atalanta.message.encoding.buffer import Reader

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.publish.publisher import Publisher
    from atalanta.kernel.publish.redelivery import Redelivery
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.kernel.transactions.branch_right import BranchRight

XA_TIMER: Final = "kernel.xa"
BRANCHES_MAX: Final = 10_000  # of one node, without prepared ones
BRANCHES_EACH: Final = 1_000  # that each user may have also when others have all of those
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


class XaBranch:
    """A branch. `xid` is in its wire form (XidCodecSupport); `timeout_s` < 0 is the node's own timeout.

    `workers` counts the sessions that work in the branch. `clients` are the connections that have worked in it since
    the node's start. `user` is who has started it; None: it belongs to everybody, since nobody knows its user.
    """

    def __init__(self, xid: bytes, created_at: int, timeout_s: int, user: str | None) -> None:
        self.xid = xid
        self.created_at = created_at
        self.timeout_s = timeout_s
        self.user = user
        self.state: int = ACTIVE
        self.timed_out: bool = False
        self.workers: int = 0
        self.clients: dict[int, bool] = {}
        self.transaction = SessionTransaction()
        self.plans: list[RoutingPlan] = []
        self.lsn: int = 0
        self.stored_bytes: int = 0

    def hold_queues(self) -> None:
        """Holds the queues that a prepared branch will send to, so that they are not deleted as unused."""
        for plan in self.plans:
            for planned in plan.routes:
                planned.queue.count_pending(1)

    def release_queues(self) -> None:
        """Ends `hold_queues`."""
        for plan in self.plans:
            for planned in plan.routes:
                planned.queue.count_pending(-1)

    def is_large(self, work_max: int) -> bool:
        """Returns True if the commit of the prepared branch is too much for one step."""
        return 2 * len(self.plans) + (self.stored_bytes >> 10) > work_max

    def wrong_state(self) -> BrokerError:
        """Returns the error for a request that the branch's state does not allow."""
        names = ("active", "suspended", "prepared", "rolled back")
        return BrokerError(
            ILLEGAL_STATE, f"transaction {identifier(self.xid)} is {names[self.state]}"
        )


class Heuristic:
    """A prepared branch that an operator ended: its manager learns that at its next call, and may then forget it."""

    def __init__(self, outcome: int, lsn: int, user: str | None) -> None:
        self.outcome = outcome
        self.lsn = lsn
        self.user = user


class Branches:
    """The branches of a node by xid."""

    def __init__(
        self, publisher: Publisher, redelivery: Redelivery, config: BrokerConfig, timers: Timers
    ) -> None:
        self.publisher = publisher
        self.plans = publisher.plans
        self.store = publisher.store
        self.redelivery = redelivery
        self.config = config
        self.timers = timers
        self.trace = publisher.trace
        self.work_max = publisher.step_work_max
        self.by_xid: dict[bytes, XaBranch] = {}
        self.heuristics: dict[bytes, Heuristic] = {}
        self.prepared: int = 0
        self.stored_bytes: int = 0
        self.timer_set: bool = False
        self._ended: bool = False  # a branch in doubt, since `newest_end` was asked for
        self._newest_end: int = 0

    def newest_end(self) -> int:
        """Returns the lsn that must be durable before a branch is said to be unknown: it may have just ended."""
        if self._ended:
            self._ended = False
            self._newest_end = self.store.journal.last
        return self._newest_end

    def in_doubt(self, right: BranchRight) -> list[bytes]:
        """Returns the xids for a recovery scan: the user's prepared branches and heuristic outcomes."""
        prepared = [branch for branch in self.by_xid.values() if branch.state == PREPARED]
        found = [branch.xid for branch in prepared if right.covers(branch.user)]
        found.extend([xid for xid, ended in self.heuristics.items() if right.covers(ended.user)])
        return found

    def newest_lsn(self) -> int:
        """Returns the lsn that must be durable before the result of `in_doubt` is sent."""
        newest = self.newest_end()
        for branch in self.by_xid.values():
            newest = max(newest, branch.lsn)
        for heuristic in self.heuristics.values():
            newest = max(newest, heuristic.lsn)
        return newest

    def held_bytes(self) -> int:
        """Returns the bytes of messages that branches keep in memory."""
        held = 0
        for branch in self.by_xid.values():
            held += branch.transaction.held_bytes()
        return held

    def has_room(self, user: str | None) -> bool:
        """Returns True if the user may begin one more branch: others cannot take the last one."""
        if len(self.by_xid) - self.prepared < BRANCHES_MAX:
            return True
        own = 0
        for branch in self.by_xid.values():
            if branch.state != PREPARED and branch.user == user:
                own += 1
        return own < BRANCHES_EACH

    # -- the two phases -------------------------------------------------------------------------
    def add(self, now: int, xid: bytes, timeout_s: int, user: str | None) -> XaBranch:
        """Adds a new branch of a user, and starts the timeout of unprepared branches."""
        self.store.command.begin_change()
        branch = XaBranch(xid, now, timeout_s, user)
        self.by_xid[xid] = branch
        self._set_timer(now)
        return branch

    def prepare(self, now: int, branch: XaBranch, endpoint: Reply, token: int) -> None:
        """Prepares a branch; `endpoint.done(token)` when it survives a crash. BrokerError: it is rolled back instead.

        A repeat rolls back too; `endpoint.failed` reports it when the first copy is durable. After Postponed nothing
        has changed, and the prepare is tried again.
        """
        transaction = branch.transaction
        error = transaction.rollback_only
        if error is None and transaction.messages:
            error = self.publisher.exhaustion(transaction.messages)
        draft: PreparedDraft | None = None
        if error is None:
            try:
                draft = self._drafted(now, transaction, branch, endpoint.takes_notices())
            except Postponed:
                raise  # the prepare is tried again
            except BrokerError as refused:
                error = refused
        if error is not None:
            self.roll_back_active(now, branch, error)
            if error.code != DUPLICATE_ID:
                raise error
            self.store.refuse_when_durable(self.store.journal.last, endpoint, token, error)
            return
        assert draft is not None
        arrived: list[Reference] = []
        for part in draft.arrived:
            arrived.extend(store_acknowledged(self.plans, part, draft.batch))
        branch.plans = draft.wanted
        transaction.acknowledged.extend(arrived)
        payload = draft.record.complete(transaction.acknowledged, branch.user)
        transaction.forget_drafts()
        self.add_prepared(branch, len(payload))
        draft.batch.add(records.XA_PREPARED, payload)
        branch.lsn = self.plans.append(draft.batch, draft.arrived, arrived, endpoint, token)
        self.publisher.duplicates.add(draft.shipment_ids, branch.lsn)

    def _drafted(self, now: int, transaction: SessionTransaction, branch: XaBranch, strict: bool) -> PreparedDraft:
        """Returns the complete draft of the branch's record, which nobody sees yet."""
        preparation = prepared(self.publisher, now, transaction, strict)
        if transaction.prepared is None:
            transaction.prepared = PreparedDraft(
                branch, preparation.plans, self.publisher.duplicates, self.work_max
            )
        draft = transaction.prepared
        draft.advance(preparation.in_steps())
        check_current(transaction, preparation)
        return draft

    def add_prepared(self, branch: XaBranch, stored_bytes: int) -> None:
        """Makes the branch a prepared one, whose record has `stored_bytes`."""
        self.store.command.begin_change()
        branch.hold_queues()
        branch.state = PREPARED
        branch.stored_bytes = stored_bytes
        self.by_xid[branch.xid] = branch
        self.prepared += 1
        self.stored_bytes += stored_bytes

    def _remove_prepared(self, branch: XaBranch) -> None:
        """Removes a branch that is no longer in doubt, and releases its queues."""
        self.store.command.begin_change()
        branch.release_queues()
        self.by_xid.pop(branch.xid, None)
        self._ended = True
        self.prepared -= 1
        self.stored_bytes -= branch.stored_bytes

    def commit_prepared(
        self, branch: XaBranch, outcome: int, endpoint: Reply | None, token: int
    ) -> None:
        """Commits in one record: the messages in their queues, the acknowledgements, the end of the branch.

        A message whose duplicate id has arrived by another route in the meantime is not sent again. For a client that
        waits, a large branch goes in steps as a local commit: Unfinished means that nothing has changed yet.
        """
        in_steps = endpoint is not None and branch.is_large(self.work_max)
        draft = self._drafted_commit(branch) if in_steps else None
        self._remove_prepared(branch)
        batch = records.Batch()
        references: list[Reference] = []
        plans: list[RoutingPlan] = []
        if draft is not None:
            batch = draft.batch
            plans = draft.plans
            references = draft.enter()
        else:
            for plan in branch.plans:
                if self._is_wanted(plan):
                    plans.append(plan)
                    references.extend(self.plans.add(plan, batch))
        self.store.finish(branch.transaction.acknowledged, batch)
        batch.add(records.XA_ENDED, encode_ended(branch.xid, outcome, branch.user))
        lsn = self.plans.append(batch, plans, references, endpoint, token)
        if outcome != ENDED:
            self.heuristics[branch.xid] = Heuristic(outcome, lsn, branch.user)

    def _drafted_commit(self, branch: XaBranch) -> Draft | None:
        """Returns the complete draft of the record of a prepared branch's commit; None if it must be made at once."""
        transaction = branch.transaction
        draft = transaction.draft
        if draft is None:
            draft = Draft(self.plans, [plan for plan in branch.plans if self._is_wanted(plan)], self.work_max)
            transaction.draft = draft
        draft.advance(True)
        for plan in draft.plans:
            if self._has_arrived(plan):  # since it was drafted
                return None
        return draft

    def _is_wanted(self, plan: RoutingPlan) -> bool:
        """Returns True unless the message has arrived by another route; it keeps the routes to existing queues."""
        plan.routes = [planned for planned in plan.routes if not planned.queue.deleted]
        if self._has_arrived(plan):
            self.trace.count("duplicates_dropped")
            return False
        return True

    def _has_arrived(self, plan: RoutingPlan) -> bool:
        caches = self.publisher.duplicates.caches
        for cache_name, duplicate_id in plan.duplicates:
            if caches.cache_of(cache_name).first_lsn_of(duplicate_id) >= 0:
                return True
        return False

    def hand_over(self, branch: XaBranch, batch: records.Batch) -> None:
        """Ends a branch that another node has taken over, without effect; the caller finishes its acknowledgements."""
        self._remove_prepared(branch)
        for plan in branch.plans:
            if plan.message.large is not None:
                self.store.large.hold(plan.message.large, 0)  # its transaction is over
        batch.add(records.XA_ENDED, encode_ended(branch.xid, ENDED, None))

    def roll_back_prepared(
        self, now: int, branch: XaBranch, outcome: int, endpoint: Reply | None, token: int
    ) -> None:
        """Rolls back a prepared branch: drops its sends, and returns acknowledged messages to their queues."""
        self._remove_prepared(branch)
        batch = records.Batch()
        batch.add(records.XA_ENDED, encode_ended(branch.xid, outcome, branch.user))
        lsn = self.plans.append(batch, [], [], endpoint, token)
        if outcome != ENDED:
            self.heuristics[branch.xid] = Heuristic(outcome, lsn, branch.user)
        self.redelivery.redeliver(now, branch.transaction.acknowledged, True)
        branch.transaction = SessionTransaction()

    def roll_back_active(self, now: int, branch: XaBranch, error: BrokerError) -> None:
        """Rolls back a branch that is not prepared, so nothing is stored; a later commit is answered with `error`."""
        self.store.command.begin_change()
        transaction = branch.transaction
        back = transaction.acknowledged
        transaction.acknowledged = []
        transaction.messages = []
        transaction.forget_drafts()
        transaction.rollback_only = error
        branch.state = ROLLED_BACK
        self.redelivery.redeliver(now, back, True)

    def abandon(self, now: int, branch: XaBranch) -> None:
        """Rolls back the branch of a session that ends, unless it is prepared."""
        if branch.state == PREPARED:
            return
        self.store.command.begin_change()
        self.by_xid.pop(branch.xid, None)
        error = BrokerError(TRANSACTION_ROLLED_BACK, "its session was closed")
        self.roll_back_active(now, branch, error)

    def forget(self, xid: bytes, endpoint: Reply, token: int) -> bool:
        """Forgets a heuristic outcome for the transaction manager; returns False if there is none."""
        if xid not in self.heuristics:
            return False
        self.store.command.begin_change()
        del self.heuristics[xid]
        self._ended = True
        batch = records.Batch()
        batch.add(records.XA_ENDED, encode_ended(xid, ENDED, None))
        self.plans.append(batch, [], [], endpoint, token)
        return True

    # -- time -----------------------------------------------------------------------------------
    def _set_timer(self, now: int) -> None:
        """Sets the timer of unprepared branches (transaction-timeout, transaction-timeout-scan-period)."""
        if not self.timer_set:
            self.timer_set = True
            period_ns = self.config.transaction_timeout_scan_period_ms * 1_000_000
            self.timers.set(XA_TIMER, now + period_ns)

    def on_timer(self, now: int) -> None:
        """Rolls back timed-out branches (ResourceManagerImpl.TxTimeoutHandler), but never a prepared one."""
        self.timer_set = False
        unprepared = 0
        for branch in list(self.by_xid.values()):
            if branch.state == PREPARED:
                continue
            limit_ns = self.config.transaction_timeout_ms * 1_000_000
            if branch.timeout_s > 0:
                limit_ns = branch.timeout_s * 1_000_000_000
            if now - branch.created_at <= limit_ns:
                unprepared += 1
                continue
            del self.by_xid[branch.xid]
            branch.timed_out = True
            self.trace.event("transaction_timed_out", {"xid": identifier(branch.xid)})
            error = BrokerError(TRANSACTION_TIMEOUT, "transaction timed out")
            self.roll_back_active(now, branch, error)
        if unprepared:
            self._set_timer(now)

    # -- for management -------------------------------------------------------------------------
    def list_prepared(self) -> list[XaBranch]:
        """Returns the prepared branches, the oldest first."""
        found = [branch for branch in self.by_xid.values() if branch.state == PREPARED]
        found.sort(key=_creation_time)
        return found

    def list_heuristic(self, outcome: int) -> list[bytes]:
        """Returns the xids that an operator committed or rolled back and no manager has forgotten yet."""
        return [xid for xid, ended in self.heuristics.items() if ended.outcome == outcome]

    def end_by_operator(self, now: int, name: str, commit: bool) -> bool:
        """Commits or rolls back a prepared branch without its manager; `name` is its `identifier`. False: unknown."""
        for branch in self.list_prepared():
            if identifier(branch.xid) == name:
                if commit:
                    self.commit_prepared(branch, HEURISTICALLY_COMMITTED, None, 0)
                else:
                    self.roll_back_prepared(now, branch, HEURISTICALLY_ROLLED_BACK, None, 0)
                return True
        return False


def _creation_time(branch: XaBranch) -> int:
    return branch.created_at


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
