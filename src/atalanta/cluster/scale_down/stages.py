"""The stages of a scale-down (ScaleDownHandler.scaleDown).

The node moves its queues by address, the store-and-forward queues, transactions in doubt and duplicate ids. Then it
announces its end. Before that the target gets the duplicate ids and the queues, and clients and members are
disconnected (cluster/scale_down/disconnect.py). Members send until shortly before: the target gets the ids of that time
when nothing more is read. An Atalanta target gets all ids once more at the end, since the ids of many moved messages
push them out of the target's cache.

A message that the target refuses for its content stays here and is named; the others are moved. A message for a full
address waits as a sender's would, for credits or for the next attempt, and those for other addresses are moved. When
nothing has found room for scale-down-full-timeout, the messages for the full addresses stay, too.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.forward_frame import forward_id, link_bytes, node_id_bytes
from atalanta.cluster.links.sent_mark import SentMark
from atalanta.cluster.scale_down.duplicate_ids import CacheStage
from atalanta.cluster.scale_down.queue_cursor import AddressCursor, QueueCursor, give_back
from atalanta.cluster.scale_down.shipments import (
    RETRY_NS,
    Shipment,
    finish,
    for_queues,
    for_target,
    for_third,
)
from atalanta.cluster.scale_down.stage import Stage
from atalanta.cluster.scale_down.transactions import TransactionStage
from atalanta.kernel.journal import records
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.wire.core.client.reply import Reply

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.link import ScaleDownLink
    from atalanta.cluster.scale_down.scale_down import ScaleDown
    from atalanta.cluster.scale_down.shipments import ShipmentSender
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference

WAITING_MAX: Final = 1_000  # queues and addresses that wait at once
NAMED_MAX: Final = 10  # refused messages of a queue that are reported
QUESTIONS_MAX: Final = 100  # requested at once
LEARN_NS: Final = 500_000_000  # the way of a notification to all members, and of their messages to this node
# Bridges to connected members get this long without progress.
DRAIN_NS: Final = 10_000_000_000


class Mover:
    """Runs all stages over one link to the target. After a lost link the stages start again with the remaining
    messages."""

    def __init__(self, part: ScaleDown, link: ScaleDownLink) -> None:
        self.part = part
        self.link = link
        self.broker = part.broker
        self.node_bytes = node_id_bytes(part.cluster.local.node_id)
        self.target_id = part.target.node_id if part.target is not None else ""
        self.ids: dict[str, int] = {}  # queue ids at the target
        self.asked: dict[str, bool] = {}
        self.impossible: dict[str, str] = {}
        self.refusals: dict[str, str] = {}
        self.stages: deque[Stage] = deque()
        self.stay: dict[Reference, bool] = {}  # refused messages
        self.refused_branches: dict[bytes, bool] = {}  # by xid
        self.moved_before = -1  # when the stages were last planned anew
        self.named: dict[tuple[str, bool], int] = {}  # reported refusals: queue, whether for want of room
        self.created_at: int = 0  # when the target was last given a queue
        self.carried: dict[tuple[str, bytes], bool] = {}  # duplicate ids (cache, id) that the target has been given
        self.stages.append(CacheStage(self))
        self.stages.append(QueueStage(self))
        self.stages.append(HoldStage(self))
        self.stages.append(CacheStage(self))
        self.stages.append(DisconnectStage(self))

    def plan(self) -> None:
        """Adds the stages that move what is here."""
        if self.link.ours:
            self.carried.clear()
        prefix = f"{self.broker.config.internal_naming_prefix}sf."
        moves: deque[Stage] = deque()
        for address in list(self.broker.addresses.values()):
            queues = [
                queue
                for queue in address.queues()
                if not queue.spec.temporary and not queue.internal
            ]
            if queues:
                moves.append(AddressStage(self, queues))
        self.stages.append(MoveStage(self, moves))
        self.stages.append(DrainStage(self))
        forwards: deque[Stage] = deque()
        for queue in self.part.movable():
            if queue.internal and queue.name.startswith(prefix):
                forwards.append(ForwardStage(self, queue))
        self.stages.append(MoveStage(self, forwards))
        self.stages.append(TransactionStage(self))
        self.stages.append(CacheStage(self))
        self.stages.append(EndStage(self))

    def plan_anew(self) -> bool:
        """Adds the stages again if messages are left that they have not seen, such as scheduled ones that came due.

        That may be so as long as something is moved, and once more.
        """
        moved = self.part.moved
        if self.part.left() == 0 or moved == self.moved_before:
            return False
        self.moved_before = moved
        self.plan()
        return True

    # -- batches of inputs ----------------------------------------------------------------------
    def turn(self, now: int) -> None:
        for sender in (self.link.sender, self.link.xa_sender):
            sender.check_full(now, self.part.full_timeout_ns)
            if sender.waiting:
                self.part.check_soon(now, RETRY_NS)
        self._settle(now)
        while self.stages and self.stages[0].step(now):
            self.stages.popleft()
            if self.part.mover is not self:
                return

    def _settle(self, now: int) -> None:
        """Removes messages that the target has answered for, in records of at most commit-interval messages."""
        sender = self.link.sender
        arrived = sender.arrived
        sender.arrived = []
        interval = self.part.choice.config.commit_interval
        batch = records.Batch()
        count = 0
        for shipment in arrived:
            self.part.moved += finish(self.broker.store, shipment.references, batch)
            count += 1
            if count == interval:
                self.broker.plans.append(batch, [], [], None, 0)
                batch = records.Batch()
                count = 0
        self.broker.plans.append(batch, [], [], None, 0)
        for shipment in sender.refused:
            self._refused(shipment)
        sender.refused = []

    def _refused(self, shipment: Shipment) -> None:
        why = shipment.refused
        queue = "(duplicate ids)"
        if shipment.references:
            reference = shipment.references[0]
            queue = reference.queue.name
            if not shipment.full:
                why = f"the target refuses message {reference.message.id}: {why}"
        for reference in shipment.references:
            self.stay[reference] = True
        self.part.why = f"queue {queue}: {why}"
        self.report_refusal(queue, why, shipment.full)
        give_back(self.broker.scheduled, shipment.references)

    def report_refusal(self, queue: str, why: str, full: bool = False) -> None:
        """Names what stays in the log, at most NAMED_MAX of a queue; a full address once."""
        known = self.named.get((queue, full), 0)
        self.named[(queue, full)] = known + 1
        if known < (1 if full else NAMED_MAX):
            self.broker.trace.event("scale_down_refused", {"queue": queue, "why": why})

    def unanswered(self) -> bool:
        """Returns True if the target may have messages that it has not answered for."""
        return bool(self.link.sender.unanswered) or any(
            isinstance(stage, TransactionStage) and stage.under_way() for stage in self.stages
        )

    def abort(self, now: int) -> None:
        self._settle(now)
        self.link.sender.abort()
        self.link.xa_sender.abort()

    # -- queues of the target -------------------------------------------------------------------
    def known(self, now: int, queues: list[Queue]) -> bool:
        """Returns True if the target's ids of all these queues are known; requests the missing ones."""
        complete = True
        for queue in queues:
            name = queue.name
            if name in self.ids or name in self.impossible:
                continue
            complete = False
            if name not in self.asked and len(self.asked) < QUESTIONS_MAX:
                self.asked[name] = True
                self._ask_id(now, queue, True)
        return complete

    def queues_made(self, now: int) -> bool:
        """Returns True if the target has all queues that will be moved, and the durable ones that are empty: members
        may have messages under way to them. Creates the missing ones."""
        queues = [each for each in self.part.movable() if not each.internal]
        return self.known(now, [each for each in queues if each.spec.durable or should_exist(each)])

    def _ask_id(self, now: int, queue: Queue, create: bool) -> None:
        def answer(now: int, succeeded: bool, value: object) -> None:
            if succeeded and isinstance(value, int):
                self.asked.pop(queue.name, None)
                self.ids[queue.name] = value
            elif create:
                self.link.create_queue(now, queue.spec).on_done = created
            else:
                self._cannot(queue, self.refusals.get(queue.name, str(value)))

        def created(reply: Reply) -> None:
            self.created_at = self.broker.now
            # A client that has already reconnected there may have created it first.
            error = reply.error
            if error is not None:
                self.refusals[queue.name] = f"{error.text} (code {error.code})"
            self._ask_id(self.broker.now, queue, False)

        self.link.ask(now, f"queue.{queue.name}", "ID", answer)

    def _cannot(self, queue: Queue, why: str) -> None:
        self.asked.pop(queue.name, None)
        self.impossible[queue.name] = why
        self.part.why = f"queue {queue.name} cannot be had at the target: {why}"
        self.report_refusal(queue.name, why)


def should_exist(queue: Queue) -> bool:
    """Returns True if the queue has messages, or is a durable subscription, which must not miss any."""
    if queue.message_count > 0:
        return True
    spec = queue.spec
    return spec.durable and spec.routing_type == MULTICAST and not spec.configuration_managed


class QueueStage(Stage):
    """Creates the queues at the target before the members are disconnected.

    At the DISCONNECT the target removes its bindings to this node. From then on it routes to its own queues only, and
    a durable subscription that it does not have would miss messages. Members that are real Artemis nodes move their
    messages for this node to queues of the same name at the target, and drop those whose queue they do not know there
    (QueueImpl.moveBetweenSnFQueues). So they get a while to learn of queues that were just created, and that this node
    has no consumers any more; what they had sent before arrives.
    """

    def __init__(self, mover: Mover) -> None:
        self.mover = mover

    def step(self, now: int) -> bool:
        mover = self.mover
        if not mover.queues_made(now):
            return False
        if now < max(mover.created_at, mover.part.frozen_at) + LEARN_NS and mover.part.has_other_members():
            mover.part.check_soon(now)
            return False
        return True


class HoldStage(Stage):
    """Stops reading from members. What they sent last, and its duplicate ids, is on disk in the turn after that.

    A member that lost its link before the answer sends such a message to the target, which has to know its id.
    """

    def __init__(self, mover: Mover) -> None:
        self.mover = mover

    def step(self, now: int) -> bool:
        return self.mover.part.hold_members(now)


class DisconnectStage(Stage):
    """Waits until all clients and members have ended; then the messages are moved."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover

    def step(self, now: int) -> bool:
        if not self.mover.part.disconnect_all(now, True):
            return False
        self.mover.plan()
        return True


class MoveStage(Stage):
    """Moves several addresses, or store-and-forward queues. While one waits for the target, others are moved."""

    def __init__(self, mover: Mover, stages: deque[Stage]) -> None:
        self.mover = mover
        self.stages = stages
        self.waiting: list[Stage] = []

    def step(self, now: int) -> bool:
        self.waiting = [stage for stage in self.waiting if not stage.step(now)]
        sender = self.mover.link.sender
        while self.stages and len(self.waiting) < WAITING_MAX and sender.has_room():
            stage = self.stages.popleft()
            if not stage.step(now):
                self.waiting.append(stage)
        return not (self.stages or self.waiting)


class AddressStage(Stage):
    """Moves the queues of one address, with their messages in the order of arrival."""

    def __init__(self, mover: Mover, queues: list[Queue]) -> None:
        self.mover = mover
        self.queues = queues
        self.own_address = queues[0].spec.address
        self.address = self.own_address  # address of the message sent last: a message may have kept another one
        self.walk: AddressCursor | None = None

    def step(self, now: int) -> bool:
        mover = self.mover
        if self.walk is None:
            self.queues = [each for each in self.queues if should_exist(each)]
            if not mover.known(now, self.queues):
                return False
            possible = [each for each in self.queues if each.name in mover.ids]
            self.walk = AddressCursor(mover.broker.store, possible, mover.stay, mover.part.pinned)
        sender = mover.link.sender
        while sender.has_room():
            if sender.closed(self.own_address):
                return True
            if self.address in sender.waiting:
                return False
            taken = self.walk.take()
            if taken is None:
                return not self.walk.waiting
            self.address = taken[0].message.address
            ids = [mover.ids[reference.queue.name] for reference in taken]
            sender.ship(for_queues(taken, ids, mover.node_bytes, mover.broker.origins))
        return False


class DrainStage(Stage):
    """Lets the bridges forward the messages for connected members; then these bridges end."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover
        self.left = -1
        self.until = 0
        self.stopped = False

    def step(self, now: int) -> bool:
        part = self.mover.part
        bridged = [
            record
            for cluster in part.clusters.connections
            for record in cluster.peers.values()
            if record.bridge is not None
        ]
        if not bridged:
            return True
        if not self.stopped:
            left = sum(record.forward.message_count for record in bridged if record.linked())
            if left != self.left:
                self.left = left
                self.until = now + DRAIN_NS
            if left == 0 or now >= self.until:
                self.stopped = True
                for record in bridged:
                    if record.bridge is not None:
                        record.bridge.stop(now)
        part.check_soon(now)
        return False


class ForwardStage(Stage):
    """Moves a store-and-forward queue whose node is not connected, or is the target."""

    def __init__(self, mover: Mover, queue: Queue) -> None:
        self.mover = mover
        self.node_id = queue.name.rsplit(".", 1)[1]
        self.link_bytes = link_bytes(mover.part.cluster.local.node_id, self.node_id)
        self.walk = QueueCursor(mover.broker.store, queue, mover.stay)
        self.mark: SentMark | None = None  # made once no bridge sends from the queue any more

    def step(self, now: int) -> bool:
        mover = self.mover
        sender: ShipmentSender = mover.link.sender
        if self.mark is None:
            self.mark = SentMark(mover.broker.values, mover.broker.timers, self.walk.queue)
        while sender.has_room():
            reference = self.walk.head()
            if reference is None:
                return not self.walk.waiting
            address = reference.message.address
            if address in sender.waiting:
                return False
            self.walk.take(reference)
            if self.node_id == mover.target_id:
                sender.ship(for_target(reference, self.link_bytes))
            else:
                ours = mover.link.ours
                known = b""
                if 0 < reference.sequence <= self.mark.through:
                    known = forward_id(self.link_bytes, int(reference.message.id))
                sender.ship(for_third(reference, self.node_id, mover.node_bytes, ours, known))
        return False


class EndStage(Stage):
    """Announces the end to the target and sends one more request. When its answer arrives, the target has answered for
    everything that was sent."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover
        self.announced = False

    def step(self, now: int) -> bool:
        mover = self.mover
        if self.announced or not mover.link.sender.idle():
            return False
        if mover.broker.store.awaiting:
            mover.part.check_soon(now)
            return False
        if mover.plan_anew():
            return True
        self.announced = True
        mover.link.announce_end(mover.target_id)
        mover.link.ask(now, "broker", "NodeID", self._ended)
        return False

    def _ended(self, now: int, succeeded: bool, value: object) -> None:
        self.mover.part.moved_all(now)
