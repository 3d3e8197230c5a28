"""The stages of a scale-down (ScaleDownHandler.scaleDown).

The node moves its queues by address, the store-and-forward queues, transactions in doubt and duplicate ids. Then it
announces its end. Before that the target gets the duplicate ids and the queues, and clients and members are
disconnected (cluster/scale_down/disconnect.py). An Atalanta target gets the ids once more at the end, since the ids of
many moved messages push them out of the target's cache.

Messages that the target refuses stay here, and the others are moved. The refused ones are offered again, ROUNDS_MAX
times without any progress, with pauses. If an address is full, all its messages wait for the next round, and are
from then on sent one at a time. Only messages under way behind the first refused one may have overtaken it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.forward_frame import forward_id, link_bytes, node_id_bytes
from atalanta.cluster.links.sent_mark import SentMark
from atalanta.cluster.scale_down.duplicate_ids import CacheStage
from atalanta.cluster.scale_down.queue_cursor import AddressCursor, QueueCursor, give_back
from atalanta.cluster.scale_down.shipments import (
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

ROUNDS_MAX: Final = 5
PAUSE_NS: Final = 200_000_000  # before the second round; doubled before each further round
ASIDE_MAX: Final = 1_000
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
        self.aside: list[Stage] = []  # stuck stages: all must be done before a stage of another class starts
        self.kind: type[Stage] = Stage  # class of the stages in `aside`
        self.rounds = 0
        # In this round: whether anything was refused, and the full addresses. In all rounds:
        # addresses that were full.
        self.refused = False
        self.full: dict[str, bool] = {}
        self.were_full: dict[str, bool] = {}
        self.moved_before = part.moved
        self.reported: dict[tuple[str, bool], bool] = {}  # refusals reported: queue, whether its address is full
        self.created_at: int = 0  # when the target was last given a queue
        self.carried: dict[tuple[str, bytes], bool] = {}  # duplicate ids that an Artemis target has been given
        self.stages.append(CacheStage(self))
        self.stages.append(QueueStage(self))
        self.stages.append(DisconnectStage(self))

    def plan(self) -> None:
        prefix = f"{self.broker.config.internal_naming_prefix}sf."
        for address in list(self.broker.addresses.values()):
            queues = [
                queue
                for queue in address.queues()
                if not queue.spec.temporary and not queue.internal
            ]
            if queues:
                self.stages.append(AddressStage(self, queues))
        self.stages.append(DrainStage(self))
        for queue in self.part.movable():
            if queue.internal and queue.name.startswith(prefix):
                self.stages.append(ForwardStage(self, queue))
        self.stages.append(TransactionStage(self))
        self.stages.append(CacheStage(self))
        self.stages.append(EndStage(self))

    def next_round(self) -> None:
        """Starts another round with the remaining messages."""
        self.rounds += 1
        if self.refused and self.part.moved > self.moved_before:
            self.rounds = 1
        self.moved_before = self.part.moved
        self.refused = False
        self.full = {}
        self.impossible = {}
        self.refusals = {}
        self.plan()

    # -- batches of inputs ----------------------------------------------------------------------
    def turn(self, now: int) -> None:
        self._settle(now)
        self.aside = [stage for stage in self.aside if stage.stuck() or not stage.step(now)]
        while self.stages:
            stage = self.stages[0]
            if self.aside and not isinstance(stage, self.kind):
                return
            if stage.step(now):
                self.stages.popleft()
                if self.part.mover is not self:
                    return
            elif stage.stuck() and len(self.aside) < ASIDE_MAX:
                self.aside.append(self.stages.popleft())
                self.kind = type(stage)
            else:
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
        first = shipment.references[:1]
        queue = first[0].queue.name if first else "(duplicate ids)"
        self.part.why = f"queue {queue}: the target refuses a message: {shipment.refused}"
        self.refused = True
        if shipment.full and first:
            self.full[first[0].message.address] = True
            self.were_full[first[0].message.address] = True
        if (queue, shipment.full) not in self.reported:
            self.reported[(queue, shipment.full)] = True
            self.broker.trace.event("scale_down_refused", {"queue": queue, "why": shipment.refused})
        give_back(self.broker.scheduled, shipment.references)

    def holds(self, address: str) -> bool:
        """Returns True if the messages under way must be answered before another one is sent to that address."""
        return address in self.were_full and self.link.sender.under_way(address)

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
        self.refused = True
        if (queue.name, False) not in self.reported:
            self.reported[(queue.name, False)] = True
            self.broker.trace.event("scale_down_refused", {"queue": queue.name, "why": why})


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


class DisconnectStage(Stage):
    """Waits until all clients and members have ended; then the messages are moved."""

    def __init__(self, mover: Mover) -> None:
        self.mover = mover

    def step(self, now: int) -> bool:
        if not self.mover.part.disconnect_all(now, True):
            return False
        self.mover.plan()
        return True


class AddressStage(Stage):
    """Moves the queues of one address, with their messages in the order of arrival."""

    def __init__(self, mover: Mover, queues: list[Queue]) -> None:
        self.mover = mover
        self.queues = queues
        self.address = queues[0].spec.address  # address of the message sent last: a message may have kept another one
        self.walk: AddressCursor | None = None

    def step(self, now: int) -> bool:
        mover = self.mover
        if self.walk is None:
            self.queues = [each for each in self.queues if should_exist(each)]
            if not mover.known(now, self.queues):
                return False
            possible = [each for each in self.queues if each.name in mover.ids]
            self.walk = AddressCursor(mover.broker.store, possible, mover.part.pinned)
        sender = mover.link.sender
        while sender.has_room():
            if self.address in mover.full:
                return True
            if mover.holds(self.address):
                return False
            if self.stuck():
                return False
            taken = self.walk.take()
            if taken is None:
                return not self.walk.waiting
            self.address = taken[0].message.address
            ids = [mover.ids[reference.queue.name] for reference in taken]
            sender.ship(for_queues(taken, ids, mover.node_bytes, mover.broker.origins))
        return False

    def stuck(self) -> bool:
        return self.address in self.mover.link.sender.waiting


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
        self.walk = QueueCursor(mover.broker.store, queue)
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
            if mover.holds(address) or address in sender.waiting:
                return False
            self.walk.take(reference)
            if address in mover.full:
                give_back(mover.broker.scheduled, [reference])
                continue
            if self.node_id == mover.target_id:
                sender.ship(for_target(reference, self.link_bytes))
            else:
                ours = mover.link.ours
                known = b""
                if 0 < reference.sequence <= self.mark.through:
                    known = forward_id(self.link_bytes, int(reference.message.id))
                sender.ship(for_third(reference, self.node_id, mover.node_bytes, ours, known))
        return False

    def stuck(self) -> bool:
        reference = self.walk.head()
        return reference is not None and reference.message.address in self.mover.link.sender.waiting


class EndStage(Stage):
    """Starts further rounds while messages are left, at most ROUNDS_MAX in all.

    Then announces the end to the target and sends one more request. When its answer arrives, the target has answered
    for everything that was sent.
    """

    def __init__(self, mover: Mover) -> None:
        self.mover = mover
        self.announced = False
        self.pause_until = 0

    def step(self, now: int) -> bool:
        mover = self.mover
        part = mover.part
        if self.announced or not mover.link.sender.idle():
            return False
        if mover.broker.store.awaiting:
            part.check_soon(now)
            return False
        if part.left() > 0 and mover.rounds < ROUNDS_MAX:
            if mover.refused and self.pause_until == 0:
                self.pause_until = now + (PAUSE_NS << mover.rounds)
            if now < self.pause_until:
                part.check_soon(now)
                return False
            mover.next_round()
            return True
        self.announced = True
        mover.link.announce_end(mover.target_id)
        mover.link.ask(now, "broker", "NodeID", self._ended)
        return False

    def _ended(self, now: int, succeeded: bool, value: object) -> None:
        self.mover.part.moved_all(now)
