"""Moves prepared transactions: each is repeated and prepared at the target, and ended here.

Follows ScaleDownHandler.scaleDownTransactions. The messages that the transaction has acknowledged are moved with it,
to queues that hold them only after a rollback (`_AMQ_ACK_ROUTE_TO`). The transaction manager finds the transaction
at the target by its xid.

The target's answer to the prepare may be lost. From the prepare on, the target remembers the messages of the
transaction (kernel/publish/duplicate_detection.py). A second attempt is therefore refused as a repeat, even if the
transaction has ended.

If the target refuses a message of a transaction, the attempt is rolled back there, and the transaction stays here. If
an address is full, it is tried again, up to scale-down-full-timeout since the last one was moved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.scale_down.shipments import (
    RETRY_NS,
    Shipment,
    finish,
    for_third,
    for_transaction,
    repeat_id,
)
from atalanta.cluster.scale_down.stage import Stage
from atalanta.kernel.errors import DUPLICATE_ID
from atalanta.kernel.journal import records
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.transactions import xa
from atalanta.kernel.transactions.branch_right import USER_KEY, USER_MARK
from atalanta.message.encoding.buffer import Reader
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.session import AddMetadataV2
from atalanta.wire.core.packets.transaction import (
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

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.stages import Mover
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message
    from atalanta.wire.core.packets.base import Packet

XAER_DUPID: Final = -8
IDLE: Final = 0
STARTING: Final = 1
LOOKING: Final = 2  # checks whether the target has it already
SENDING: Final = 3
ENDING: Final = 4
PREPARING: Final = 5
UNDOING: Final = 6  # the target has refused this attempt or a part of it


class TransactionStage(Stage):
    """Moves the prepared transactions one after the other."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover
        self.state = IDLE
        prepared = mover.broker.branches.list_prepared()
        self.branches = [each for each in prepared if each.xid not in mover.refused_branches]
        self.branch: xa.XaBranch | None = None
        self.refused: str = ""  # the reason, if it is not a repeat
        self.full: bool = False  # the reason is that an address is full
        self.full_until: int = 0
        self.retry_at: int = 0

    def step(self, now: int) -> bool:
        if not self.mover.link.sender.idle():
            return False
        if self.state == SENDING:
            self._sent(now)
        if self.state != IDLE:
            return False
        if now < self.retry_at:
            self.mover.part.check_soon(now, RETRY_NS)
            return False
        if self.branch is None:
            if not self.branches:
                return True
            self.branch = self.branches.pop(0)
            if self.full_until == 0:
                self.full_until = now + self.mover.part.full_timeout_ns
        queues = queues_of(self.branch)
        if not self.mover.known(now, queues):
            return False
        missing = [queue.name for queue in queues if queue.name not in self.mover.ids]
        if missing:
            self._failed(f"queue {missing[0]} cannot be had at the target")
            self.mover.part.check_soon(now)
        else:
            self.state = STARTING
            self.refused = ""
            self.full = False
            self._name_user(self.branch)
            self._say(XaStart(self._xid()))
        return False

    def under_way(self) -> bool:
        """Returns True if the target has seen the branch and its end is open."""
        return self.state != IDLE

    def _xid(self) -> Xid:
        assert self.branch is not None
        return decode_xid(Reader(self.branch.xid), "xid")

    def _name_user(self, branch: xa.XaBranch) -> None:
        """Tells the target whose the next branch is."""
        user = "" if branch.user is None else USER_MARK + branch.user
        link = self.mover.link
        packet = AddMetadataV2(USER_KEY, user, False)
        link.write(codec.encode(packet, link.xa_sender.channel, link.version))

    def _say(self, packet: Packet) -> None:
        link = self.mover.link
        reply = link.request(self.mover.broker.now, packet, link.xa_sender.channel)
        reply.on_done = self._on_answer

    # -- answers --------------------------------------------------------------------------------
    def _on_answer(self, reply: Reply) -> None:
        packet = reply.value
        if isinstance(packet, XaInDoubtResponse):
            if self._xid() in packet.xids:
                self._moved()
            else:
                self._failed("the target knows it, and has not prepared it")
        elif self.state == UNDOING:
            self._undone()
        elif isinstance(packet, XaResponse) and not packet.error:
            self._went_well()
        elif isinstance(packet, XaResponse):
            why = f"{packet.message} (code {packet.code})"
            if self.state == STARTING and packet.code == XAER_DUPID:
                # From an earlier attempt whose answer was lost.
                self.state = LOOKING
                self._say(XaInDoubt())
            else:
                self._went_wrong(why, False)
        elif reply.error is not None:
            error = reply.error
            self._went_wrong(f"{error.text} (code {error.code})", error.code == DUPLICATE_ID)

    def _went_well(self) -> None:
        if self.state == STARTING:
            self.state = SENDING
            copies = self._copies()
            if copies:
                self.mover.link.xa_sender.ship(Shipment([], copies))
        elif self.state == ENDING and self.refused:
            self._undo(self.refused)
        elif self.state == ENDING:
            self.state = PREPARING
            self._say(XaPrepare(self._xid()))
        elif self.state == PREPARING:
            self._moved()

    def _went_wrong(self, why: str, repeated: bool) -> None:
        if self.state in (STARTING, LOOKING):
            self._failed(why)  # this attempt has not begun at the target
        elif repeated:
            self._undo("")
        else:
            self._undo(self.refused or why)

    def _undo(self, refused: str) -> None:
        """Rolls the attempt back. `refused` is the reason; empty if the branch is, or was, at the target already."""
        self.refused = refused
        if self.state == SENDING:
            self.state = ENDING
            self._say(XaEnd(self._xid(), False))
        else:
            self.state = UNDOING
            self._say(XaRollback(self._xid()))

    def _undone(self) -> None:
        """Handles the end of the rollback. A branch that was a repeat has ended at the target, so it ends here as
        well."""
        if self.refused:
            self._failed(self.refused)
        else:
            self._moved()

    def _sent(self, now: int) -> None:
        sender = self.mover.link.xa_sender
        refused = sender.refused
        sender.arrived = []
        sender.refused = []
        if refused:
            self.full = refused[0].full
            self._undo(refused[0].refused)
        elif sender.idle():
            self.state = ENDING
            self._say(XaEnd(self._xid(), False))

    # -- messages of a branch -------------------------------------------------------------------
    def _copies(self) -> list[Message]:
        assert self.branch is not None
        mover = self.mover
        copies: list[Message] = []
        for index, plan in enumerate(self.branch.plans):
            # A branch may return to this node and leave again; this is no repeat.
            since = self.branch.created_at.to_bytes(8, "big", signed=True)
            place = b"".join((self.branch.xid, since, index.to_bytes(4, "big")))
            ids: list[int] = []
            for planned in plan.routes:
                queue = planned.queue
                if not queue.internal:
                    ids.append(mover.ids[queue.name])
                elif queue.name.endswith("." + mover.target_id):
                    raw = planned.route_to
                    ids += [int.from_bytes(raw[at : at + 8], "big", signed=True)
                            for at in range(0, len(raw), 8)]  # fmt: skip
                else:
                    reference = Reference(plan.message, queue, 0, planned.route_to)
                    node_id = queue.name.rsplit(".", 1)[1]
                    third = for_third(
                        reference, node_id, mover.node_bytes, mover.link.ours, b""
                    )
                    node = node_id.encode("utf-8", "surrogatepass")
                    for piece, copy in enumerate(third.copies):
                        name = b"".join((place, node, piece.to_bytes(4, "big")))
                        copy.properties.put(
                            BRIDGE_DUPLICATE, repeat_id(mover.node_bytes, 0, name)
                        )
                    copies += third.copies
            if ids:
                copies.append(for_transaction(plan.message, ids, [], mover.node_bytes, place))
        held: dict[int, list[Reference]] = {}
        for reference in self.branch.transaction.acknowledged:
            held.setdefault(int(reference.message.id), []).append(reference)
        for references in held.values():
            message = references[0].message
            queue_ids = [mover.ids[reference.queue.name] for reference in references]
            copy = for_transaction(message, queue_ids, queue_ids, mover.node_bytes, self.branch.xid)
            for reference in references:
                mover.broker.origins.attach(copy, int(message.id), reference.queue.name)
            copies.append(copy)
        return copies

    # -- end of a branch here -------------------------------------------------------------------
    def _moved(self) -> None:
        assert self.branch is not None
        broker = self.mover.broker
        batch = records.Batch()
        broker.branches.hand_over(self.branch, batch)
        self.mover.part.moved += finish(broker.store, self.branch.transaction.acknowledged, batch)
        broker.plans.append(batch, [], [], None, 0)
        self.full_until = 0
        self._next()

    def _failed(self, why: str) -> None:
        """Keeps the branch here, unless its time to wait for a full address is not over."""
        assert self.branch is not None
        now = self.mover.broker.now
        if self.full and now < self.full_until:
            self.retry_at = now + RETRY_NS
            self.state = IDLE
            return
        self.mover.refused_branches[self.branch.xid] = True
        name = f"(transaction {xa.identifier(self.branch.xid)})"
        self.mover.part.why = f"{name}: {why}"
        self.mover.report_refusal(name, why)
        self._next()

    def _next(self) -> None:
        self.branch = None
        self.state = IDLE


def queues_of(branch: xa.XaBranch) -> list[Queue]:
    """Returns the queues whose ids at the target must be known."""
    found: dict[str, Queue] = {}
    for plan in branch.plans:
        for planned in plan.routes:
            if not planned.queue.internal:
                found[planned.queue.name] = planned.queue
    for reference in branch.transaction.acknowledged:
        found[reference.queue.name] = reference.queue
    return list(found.values())
