"""What another node brings late: it had it waiting for a member that is away, and has sent younger ones here since.

Such a message says when it came to that node (kernel/arrival.py). It is stored in a queue of its own first, for the
queues of `route_to`, and its sender answered. From there it goes to its place (kernel/returning.py): in front of the
first message that the same node got later and that nobody has taken yet. Until it lies there its queue hands out none
of those. Where its place lies among messages in page files, it waits until they come into memory; then its queue asks
for it (kernel/holding.py).

A queue that has no such places gets it at its end, as one gets it that has come to have none. Where a queue is gone an
anycast message is routed by its address, and one for a subscription goes with that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.awaited import Awaited
from atalanta.cluster.meanings import encode_ids, ids_of
from atalanta.cluster.part import Part
from atalanta.kernel import catalogue, records
from atalanta.kernel.arrival import LATE, Placer
from atalanta.kernel.endpoint import Endpoint
from atalanta.kernel.finishing import drop_from_queue
from atalanta.kernel.holding import LATEST, hold, hold_until_durable, hold_younger, let_go
from atalanta.kernel.moves import reroute
from atalanta.kernel.observer import Observer
from atalanta.kernel.placing import add_to_batch
from atalanta.kernel.plan import Plan
from atalanta.kernel.queue_spec import MULTICAST, QueueSpec
from atalanta.kernel.reference import READY, PagedReference, Reference
from atalanta.kernel.returning import SLICE_MAX, Return, Room
from atalanta.kernel.router import Route
from atalanta.kernel.spots import Looked, has_places
from atalanta.kernel.stray import remember_lost_way, route_stray

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.message import Message
    from atalanta.kernel.queue import Queue

PART: Final = LATE
LOOK: Final = "late.look"
WAKE: Final = "late.wake"  # a queue asks for what waits for it
MOVES_MAX: Final = 500  # messages of one turn; the rest follows by a zero timer
LOOKS_MAX: Final = 5_000
COUNTS_MAX: Final = 1_000  # messages that are counted again in WATCH_NS, on average
ROOM_NS: Final = 50_000_000
ROOM_LOOKS: Final = 40  # so often, every ROOM_NS, room is waited for
WATCH_NS: Final = 200_000_000
WHY: Final = "its place here is gone"


class Stored(Endpoint):
    """What was under way to the disk is there."""

    def __init__(self, part: LateArrivals) -> None:
        self.part = part

    def done(self, token: int) -> None:
        self.part.settled()


class Removals(Observer):
    """What is for a queue that goes waits no longer."""

    def __init__(self, part: LateArrivals) -> None:
        self.part = part

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if queue.deleted and queue.id in self.part.awaited:
            self.part.thorough = True
            self.part.broker.timers.set(WAKE, now)


class Look:
    """One turn's part of a look through the queue."""

    def __init__(self) -> None:
        self.looked: dict[tuple[int, int], Looked] = {}
        self.first: dict[str, int] = {}  # the lowest id that went to the queue of that name
        self.moves: int = 0
        self.splits: int = 0  # messages that each of their queues gets by itself from now on
        self.waits: bool = False  # the last one looked at does, and none before it of its queue and link
        self.stopped: bool = False  # the last one looked at waits until others have moved, or are on disk
        self.unsettled: bool = False
        self.without_room: bool = False  # for the next page of the queue itself


class LateArrivals(Part):
    """`position`: the sequence at which the look goes on; 0: none is under way, and the next begins at `passed`, at the
    front if a queue asks. `waits`: queue and link -> arrival of the first whose place was not in memory; by queue id,
    `first_waiting`: id of the first; `outside`: how many of the queue lay in files then.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.name = f"{broker.config.internal_naming_prefix}{PART}"
        self.awaited = Awaited()
        self.room = Room()
        # Messages of an earlier life, which come from page files: `awaited` tells of those up to `known_through`.
        self.earlier_through: int = 0
        self.known_through: int = 0
        self.position: int = 0
        self.waits: dict[tuple[int, int], int] = {}
        self.first_waiting: dict[int, int] = {}
        self.outside: dict[int, int] = {}
        self.passed: int = 0
        self.thorough: bool = False  # the next look from the front goes through all: a queue is gone
        self.looks_at_all: bool = False  # this one does
        self.counted: tuple[int, int] = (0, 0)  # next sequence and messages of the queue, as they were then
        self.count_at: int = 0
        self.again: bool = False  # a queue has asked while a look was under way: for what that has passed, maybe
        self.unsettled_lsn: int = 0  # it goes on when the journal is durable up to here
        self.moves_max: int = MOVES_MAX
        self.crowded: int = 0  # looks in a row without room for the next page, while it may hold what need not wait
        self.gives_way: bool = False  # those at the front do in this look: to the end of their queues
        self.moved_lsn: int = 0
        self.leaving: bool = False
        broker.arrivals.placer = Detour(self)

    # -- life -----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        """What a crash has left goes on."""
        self.broker.observers.append(Removals(self))
        queue = self.queue()
        if queue is None or queue.message_count == 0:
            return
        self.earlier_through = queue.next_sequence - 1
        for reference in queue.references:
            self._learn(reference)
        if queue.paged is None:
            self.known_through = self.earlier_through
        self._hold_all(False)
        self.broker.timers.set(LOOK, now)

    def queue(self) -> Queue | None:
        return self.broker.queues.get(self.name)

    def coming(self, now: int, message: Message, queues: list[Queue]) -> Queue:
        """It is about to be stored; returns where."""
        found = self.queue()
        if found is None:
            spec = QueueSpec(self.name, self.name, MULTICAST)
            spec.internal = True
            found = catalogue.create_queue(self.broker, now, spec)
        for queue in queues:
            self.awaited.add(queue.id, message)
            self._hold(queue)
        self.broker.timers.set(LOOK, now)
        return found

    def leave(self, now: int) -> bool:
        """This node leaves for good: what would have to wait goes to the end of its queues. True when all is there."""
        self.leaving = True
        queue = self.queue()
        readable = self.broker.paging.reader.failed is None
        if queue is not None and queue.message_count + queue.pending > 0 and readable:
            self.on_timer(now, LOOK)
            return False
        return self.moved_lsn <= self.broker.journal.durable

    # -- who waits for what ---------------------------------------------------------------------
    def _hold(self, queue: Queue) -> None:
        hold_younger(self.broker, queue, WAKE, self.awaited.lowest(queue.id))
        before = self.first_waiting.get(queue.id, 0)
        known = 0 if queue.held is None else queue.held.before.get(WAKE, 0)
        if not before:
            let_go(self.broker, queue, WAKE)
        elif before != known:
            hold(self.broker, queue, WAKE, before)

    def _hold_all(self, nothing_left: bool) -> None:
        for queue_id in self.awaited.queues():
            queue = self.broker.queues_by_id.get(queue_id)
            if nothing_left or queue is None:
                self.awaited.forget(queue_id)
            if queue is not None:
                self._hold(queue)

    def _count_again(self, now: int, queue: Queue) -> None:
        """An operator may have removed what others wait for. The longer the queue, the less often it is looked."""
        counted = (int(queue.next_sequence), int(queue.message_count))
        if counted == self.counted or now < self.count_at:
            return
        self.counted = counted
        self.count_at = now + WATCH_NS * (1 + queue.message_count // COUNTS_MAX)
        known = self.awaited.queues()
        self.awaited = Awaited()
        for reference in queue.references:
            if reference.state == READY:
                for queue_id in ids_of(reference.route_to):
                    self.awaited.add(queue_id, reference.message)
        for queue_id in known:
            target = self.broker.queues_by_id.get(queue_id)
            if target is not None:
                self._hold(target)

    # -- looking --------------------------------------------------------------------------------
    def settled(self) -> None:
        """The look goes on."""
        self.broker.timers.set(LOOK, self.broker.now)

    def on_timer(self, now: int, key: str) -> None:
        queue = self.queue()
        if queue is None or queue.message_count + queue.pending == 0:
            self.position = 0
            self._forget_waits()
            self._hold_all(True)
            return
        unsettled = self.unsettled_lsn > self.broker.journal.durable
        if unsettled or (key == WAKE and self.position > 0):
            # A queue that is held asks at once, and again and again (holding.py).
            self.again = self.again or key == WAKE
            return
        self.unsettled_lsn = 0
        if self.position == 0:
            self.gives_way = self.crowded > ROOM_LOOKS
            if key == WAKE or self.again or self.leaving or self.gives_way or self._less_outside():
                self._forget_waits()
            self.again = False
        look = Look()
        self.room.left = SLICE_MAX
        self._look(now, queue, look)
        self._note_room(look)
        for name, message_id in look.first.items():
            hold_until_durable(self.broker, self.broker.queues[name], message_id)
        if look.moves:
            self.moved_lsn = self.broker.journal.last
            self.broker.trace.count("late_messages_placed", look.moves)
        elif self.waits and self.position == 0 and queue.paged is None and queue.pending == 0:
            self._count_again(now, queue)
        self._hold_all(False)
        if look.unsettled or (self.position == 0 and queue.pending > 0):
            self.unsettled_lsn = self.broker.journal.last
            self.broker.reply_when_durable(self.unsettled_lsn, Stored(self), 0)
        elif self.position > 0 or self.again or look.without_room:
            pause = ROOM_NS if look.without_room and not look.moves else 0
            self.broker.timers.set(LOOK, now + pause)
        elif self.first_waiting:
            self.broker.timers.set(LOOK, now + WATCH_NS)

    def _note_room(self, look: Look) -> None:
        """Messages for a queue wait in page files of this one, behind those in memory that wait for another queue."""
        if look.moves:
            self.crowded = 0
            if self.gives_way:
                self.gives_way = False
                self.again = True
        elif look.without_room and len(self.first_waiting) < len(self.awaited.queues()):
            self.crowded += 1

    def _less_outside(self) -> bool:
        """Of a queue that something waits for: who has no consumer does not ask, and may lose what it has elsewhere."""
        for queue_id, known in self.outside.items():
            queue = self.broker.queues_by_id.get(queue_id)
            if queue is None or known != outside_of(queue):
                return True
        return False

    def _forget_waits(self) -> None:
        """The next look begins at the front: those that wait may have their places now."""
        self.waits = {}
        self.first_waiting = {}
        self.outside = {}
        self.passed = 0
        self.looks_at_all = self.thorough
        self.thorough = False

    def _all_wait(self, queue: Queue) -> bool:
        """Whether each that is in the queue lies behind one, for the same queue and of the same link, that waits."""
        awaited = self.awaited.queues()
        if self.looks_at_all or self.thorough or len(self.first_waiting) < len(awaited):
            return False
        if queue.paged is not None and self.known_through < self.earlier_through:
            return False
        for queue_id in awaited:
            for link, arrival in self.awaited.lowest(queue_id).items():
                if arrival < self.waits.get((queue_id, link), LATEST):
                    return False
        return True

    def _look(self, now: int, queue: Queue, look: Look) -> None:
        """`position` is 0 when its end is reached."""
        self.position = max(self.position, self.passed, 1)
        start = queue.index_of(self.position)
        looked = queue.references[start : start + LOOKS_MAX]
        for reference in looked:
            self.position = reference.sequence
            self._learn(reference)
            if reference.state == READY:
                self._look_at(now, reference, look)
            if look.stopped:
                return
            self.position = reference.sequence + 1
            if look.waits and self._all_wait(queue):
                self.passed = int(queue.next_sequence)
                self.position = 0
                return
            look.waits = False
            if look.moves + look.splits >= self.moves_max:
                return
        if len(looked) == LOOKS_MAX:
            return
        paging = self.broker.paging
        if queue.paged is not None and paging.reader.failed is None:
            came = paging.bring(now, queue) if self.leaving else paging.refill(now, queue, True)
            if came:
                return
            look.without_room = True
        self.passed = self.position
        self.position = 0

    def _learn(self, reference: Reference) -> None:
        if self.known_through < reference.sequence <= self.earlier_through:
            self.known_through = reference.sequence
            for queue_id in ids_of(reference.route_to):
                queue = self.broker.queues_by_id.get(queue_id)
                if queue is not None:
                    self.awaited.add(queue_id, reference.message)

    def _look_at(self, now: int, reference: Reference, look: Look) -> None:
        targets: list[Queue] = []
        gone: list[int] = []
        for queue_id in ids_of(reference.route_to):
            queue = self.broker.queues_by_id.get(queue_id)
            if queue is None:
                gone.append(queue_id)
            else:
                targets.append(queue)
        back = Return(self.broker, reference, targets, look.looked, True)
        places = not gone and all(has_places(each) for each in targets) and back.keeps_its_place()
        if not places or not targets:  # who sends to this queue itself says no target: that goes nowhere
            self._to_the_end(now, reference, targets, gone, look)
            return
        ready = self._ready(reference, targets, look)
        if look.stopped:
            return
        if len(ready) < len(targets) and (self.leaving or self.gives_way):
            self._to_the_end(now, reference, targets, gone, look)
        elif ready:
            self._place(reference, targets, ready, look)

    def _ready(self, reference: Reference, targets: list[Queue], look: Look) -> list[Queue]:
        """Those where its place is in memory."""
        message = reference.message
        link = int(message.arrival_link)
        ready: list[Queue] = []
        for queue in targets:
            waits = self.waits.get((queue.id, link))
            if waits is not None and message.arrival > waits:
                continue
            back = Return(self.broker, reference, [queue], look.looked, True)
            waiting = back.waits_for()
            if back.unsettled:
                look.unsettled = look.stopped = True
                return []
            if waiting is None:
                ready.append(queue)
            elif not self.leaving and not self.gives_way:
                # What came to this node later does not go before it either: else it would wait as long as more comes.
                self.waits[(queue.id, link)] = int(message.arrival)
                message_id = int(message.id)
                first = self.first_waiting.get(queue.id, message_id)
                self.first_waiting[queue.id] = min(first, message_id)
                self.outside[queue.id] = outside_of(queue)
                look.waits = True
        return ready

    def _place(
        self, reference: Reference, targets: list[Queue], ready: list[Queue], look: Look
    ) -> None:
        """Who reads one queue does not wait for who reads another: it stays for those that are not `ready`."""
        others = [each for each in targets if each not in ready]
        if others and not may_stay(reference, ready):
            self._split(reference, targets, look)
            return
        back = Return(self.broker, reference, ready, look.looked, True)
        back.stays_for = encode_ids(queue.id for queue in others)
        back.waits_for()
        if not back.makes_room(int(reference.queue.message_count), self.room):
            look.stopped = True
            return
        for here in back.go():
            name = here.queue.name
            look.first[name] = min(look.first.get(name, LATEST), int(here.message.id))
        self._went(reference.message, ready, look)

    def _split(self, reference: Reference, targets: list[Queue], look: Look) -> None:
        """A copy for each queue, with the same arrival; they and the end of the original are in one record."""
        broker = self.broker
        message = reference.message
        batch = records.Batch()
        plans: list[Plan] = []
        references: list[Reference] = []
        for queue in targets:
            plan = Plan(message.copy(0))
            plan.message.arrival_link = message.arrival_link
            plan.message.arrival = message.arrival
            plan.routes = [Route(reference.queue, encode_ids([queue.id]))]
            references += add_to_batch(broker, plan, batch)
            plans.append(plan)
        if reference.durable:
            batch.add(records.ACKS, records.encode_acks(reference.queue.id, [message.id]))
        drop_from_queue(broker, reference)
        broker.append_batch(batch, plans, references, None, 0)
        look.splits += 1

    def _went(self, message: Message, targets: list[Queue], look: Look) -> None:
        for queue in targets:
            self.awaited.remove(queue.id, message)
        look.moves += 1

    def _to_the_end(
        self, now: int, reference: Reference, targets: list[Queue], gone: list[int], look: Look
    ) -> None:
        """As a copy, behind everything."""
        message = reference.message
        routes = [Route(queue, b"") for queue in targets]
        for queue_id in gone:
            remember_lost_way(self.broker, queue_id)
        if gone:
            for route in route_stray(self.broker, now, message, gone):
                if route.queue not in targets:
                    routes.append(route)
        if routes:
            reroute(self.broker, reference, routes, WHY)
        else:
            self.broker.acknowledge(now, [reference], None, 0)
        self._went(message, targets, look)


def outside_of(queue: Queue) -> int:
    return 0 if queue.paged is None else queue.paged.count


def may_stay(reference: Reference, ready: list[Queue]) -> bool:
    """Whether its record can say that it is in those queues now, and still here for others."""
    if isinstance(reference, PagedReference):
        return False
    return not reference.durable or all(queue.durable for queue in ready)


class Detour(Placer):
    """What is for queues that have places comes to the part's queue first."""

    def __init__(self, part: LateArrivals) -> None:
        self.part = part

    def routes(self, now: int, message: Message, routes: list[Route]) -> list[Route]:
        if message.scheduled_ms > now // 1_000_000:
            return routes  # it comes behind everything when its time has come
        queues = [each.queue for each in routes if not each.route_to and has_places(each.queue)]
        if not queues:
            return routes
        ids = encode_ids(queue.id for queue in queues)
        others = [each for each in routes if each.queue not in queues]
        return [*others, Route(self.part.coming(now, message, queues), ids)]
