"""The broker of one node: addresses, queues, and the way of a message from its sender to its queues.

`publish` is the hot path: duplicate check, route (kernel/routing/router.py), one journal record, and when that is
durable the
queues (kernel/queue/queue.py). Inputs carry `now`; everything else goes through ports.py.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.journal.message_record import write_plain_message
from atalanta.kernel.journal.named_values import NamedValues
from atalanta.kernel.memory.large_body import OPEN_LOOK_NS, OPEN_TIMER, LargeBodies
from atalanta.kernel.memory.memory import Memory
from atalanta.kernel.observer import Observer
from atalanta.kernel.publish.awaiting_journal import DeferredRefusal, Parked
from atalanta.kernel.publish.grouping import GroupingHandler
from atalanta.kernel.publish.prepare import prepare
from atalanta.kernel.publish.reroute import expire_found, tell_delivered
from atalanta.kernel.publish.scale_down_target import Absorbed
from atalanta.kernel.queue.delivery.bridge_origin import Origins
from atalanta.kernel.queue.delivery.enqueue import add_to_batch, over_limit
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.delivery.scheduled import ScheduledMessages
from atalanta.kernel.queue.delivery.slow_consumers import SlowConsumers
from atalanta.kernel.queue.dispatch_gate import arm_gate
from atalanta.kernel.queue.displacement import cut_rings, enter
from atalanta.kernel.queue.paging.paging import Paging
from atalanta.kernel.queue.queue import FINISHED_MIN, Queue
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.queue.settle import Spent, drop, drop_from_queue, finish
from atalanta.kernel.registry.addresses import AddressRegistry
from atalanta.kernel.registry.diverts import DivertRegistry
from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
from atalanta.kernel.registry.queues import QueueRegistry
from atalanta.kernel.registry.retroactive import Retroactive
from atalanta.kernel.routing.bindings import RemoteBinding
from atalanta.kernel.sessions.clients import Clients
from atalanta.kernel.sessions.ingress_headers import stamping_wanted
from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository
from atalanta.kernel.trace import places, tell
from atalanta.kernel.transactions.sinks import Sinks
from atalanta.kernel.transactions.xa import Branches
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Endpoint
    from atalanta.kernel.ports import Ids, Journal, Pages, Timers, Trace
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Security
    from atalanta.kernel.settings.broker_config import BrokerConfig

DISPATCH_MAX: Final = (
    2_000  # messages handed out by one queue in one turn; the rest follows by a zero timer
)
FLUSH_TIMER: Final = "kernel.flush"


class Broker:
    """State of one node's messages. Never hands out two ids twice: ids start at the clock's microseconds."""

    def __init__(
        self,
        config: BrokerConfig,
        settings: AddressSettingsRepository,
        security: Security,
        journal: Journal,
        timers: Timers,
        ids: Ids,
        trace: Trace,
        node_id: str,
        pages: Pages | None = None,
    ) -> None:
        self.config = config
        self.settings = settings
        self.security = security
        self.journal = journal
        self.timers = timers
        self.ids = ids
        self.trace = trace
        self.node_id = node_id
        self.observers: list[Observer] = []
        self.memory = Memory(config.global_max_size_bytes, config.global_max_messages, trace)
        self.address_registry = AddressRegistry(
            config, settings, journal, self.memory, self.observers
        )
        self.addresses: dict[str, Address] = self.address_registry.by_name
        self.queue_registry = QueueRegistry(
            self, self.address_registry, journal, ids, self.observers
        )
        self.queues: dict[str, Queue] = self.queue_registry.by_name
        self.queues_by_id: dict[int, Queue] = self.queue_registry.by_id
        self.remotes_by_id: dict[int, RemoteBinding] = {}
        self.messages: dict[int, Message] = {}
        self.values = NamedValues(journal)
        self.diverts = DivertRegistry(
            config, self.address_registry, self.queues, self.values, trace
        )
        self.sinks = Sinks()
        self.branches = Branches()
        self.absorbed = Absorbed()
        self.origins = Origins()
        self.caches = DuplicateCaches(config.id_cache_size, settings, self.addresses, journal)
        self.large = LargeBodies(trace)
        self.scheduled = ScheduledMessages(timers)
        self.spent = Spent(timers)
        self.paging = Paging(self, pages)
        self.memory.paging = pages is not None
        self.observers.append(Retroactive(self))
        self.grouping: GroupingHandler | None = None  # groups are kept together across the cluster
        self.clients = Clients()
        self.slow_consumers = SlowConsumers()
        self.parked: deque[Parked] = deque()
        self.dirty: list[Queue] = []
        # Queues with acknowledgements of this turn that are not in the journal yet.
        self.acknowledging: list[Queue] = []
        # Names of queues that this round of the search for expired messages has still to look at.
        self.expiry_queues: list[str] = []
        self.unattended: list[Queue] = []
        self.rings: list[Queue] = []  # that got messages in this turn
        self.next_message_id: int = 1
        self.next_binding_id: int = 1
        self.first_binding_id: int = 0  # of this life; lower ones are of durable queues, or of an earlier life
        self.lost_ways: dict[int, bool] = {}  # ids of remote bindings whose way was lost, not their queue
        self.stored_bytes: int = 0
        self.stopping: bool = False
        self.stamping: bool = stamping_wanted(config, settings)
        self.flush_timer: bool = False
        self.now: int = 0

    # -- ids ------------------------------------------------------------------------------------
    def start_ids(self, now: int) -> None:
        """Ids go on from the clock, so that those which no record holds are not used again after a crash.

        Such are the ids of non-durable messages, and of remote bindings, which peers may have in `_AMQ_ROUTE_TO`.
        """
        self.now = now
        self.next_message_id = max(self.next_message_id, now // 1_000)
        # A peer may hold messages for a temporary queue of before (`_AMQ_ROUTE_TO`): its id is nobody's now.
        self.next_binding_id = max(self.next_binding_id, now // 1_000)
        self.first_binding_id = self.next_binding_id

    def take_message_id(self) -> int:
        message_id = self.next_message_id
        self.next_message_id = message_id + 1
        return message_id

    def take_binding_id(self) -> int:
        binding_id = self.next_binding_id
        self.next_binding_id = binding_id + 1
        return binding_id

    # -- the way of a message ---------------------------------------------------------------------
    def publish(
        self,
        now: int,
        message: Message,
        endpoint: Endpoint | None,
        token: int,
        known: Address | None = None,
    ) -> int:
        """Route, journal and enqueue one message; `endpoint.done(token)` when it is safe.

        Returns the number of queues that take it. BrokerError if the address is unknown and may not be created.
        `known`: the message's address, if who sends it has looked already.
        """
        if not message.special:
            address = self.addresses.get(message.address) if known is None else known
            if address is not None:
                queue = address.sole_queue(message)
                if queue is not None:
                    address.routed += 1
                    self._publish_to_one(message, queue, endpoint, token)
                    return 1
        plan = prepare(self, now, message)
        if plan.repeats_lsn >= 0:
            self.reply_when_durable(plan.repeats_lsn, endpoint, token)
            return 0
        self.commit_plan(now, plan, endpoint, token)
        return len(plan.routes)

    def _publish_to_one(
        self, message: Message, queue: Queue, endpoint: Endpoint | None, token: int
    ) -> None:
        """What `publish` does, for the usual message: one queue, no duplicate id. No plan, no lists."""
        message.id = self.take_message_id()
        reference = Reference(message, queue, queue.take_sequence(), b"")
        if self.memory.charge(reference):
            over_limit(self, queue)
        if self.trace.on:
            tell(self.trace, "story_routed", message, places([reference]))
        if reference.durable:
            stored = [reference]
            message.references = stored
            self.messages[message.id] = message
            self.stored_bytes += reference.size
            journal = self.journal
            write_plain_message(journal.begin(records.PLAIN_MESSAGE), message, reference)
            message.plain = True
            lsn = journal.end()
            message.lsn = lsn
            queue.pending += 1
            self.parked.append(Parked(lsn, stored, endpoint, token))
            return
        message.lsn = 0
        if queue.pending > 0:
            queue.pending += 1
            self.journal.hurry()
            self.parked.append(Parked(self.journal.last, [reference], endpoint, token))
            return
        self._enqueue_one(reference)
        if endpoint is not None:
            endpoint.done(token)

    def commit_plan(self, now: int, plan: Plan, endpoint: Endpoint | None, token: int) -> None:
        """One record for message, routes and duplicate ids; the queues see it when that is durable."""
        batch = records.Batch()
        references = add_to_batch(self, plan, batch)
        self.append_batch(batch, [plan], references, endpoint, token)

    def append_batch(
        self,
        batch: records.Batch,
        plans: list[Plan],
        references: list[Reference],
        endpoint: Endpoint | None,
        token: int,
    ) -> int:
        """Journal the batch (if it holds anything) and park references and reply on it; returns the lsn (0: none)."""
        lsn = 0
        after_lsn = 0
        if len(batch) > 0:
            lsn = batch.append_to(self.journal)
        for plan in plans:
            plan.message.lsn = lsn
            after_lsn = max(after_lsn, plan.after_lsn)
            for cache_name, duplicate_id in plan.duplicates:
                self.caches.cache_of(cache_name).add(duplicate_id, lsn)
            if plan.diverted is not None:
                for copy in plan.diverted:
                    copy.message.lsn = lsn
                    for cache_name, duplicate_id in copy.duplicates:
                        self.caches.cache_of(cache_name).add(duplicate_id, lsn)
        if lsn > 0:
            self.parked.append(Parked(lsn, references, endpoint, token))
        elif after_lsn > self.journal.durable or self._must_wait(references):
            self.journal.hurry()
            self.parked.append(Parked(self.journal.last, references, endpoint, token))
        else:
            self._enqueue(references)
            if endpoint is not None:
                endpoint.done(token)
        return lsn

    def _must_wait(self, references: list[Reference]) -> bool:
        """Keep the order of a sender who mixes durable and non-durable messages."""
        if not self.parked:
            return False
        for reference in references:
            if reference.queue.pending > 1:
                return True
        return False

    def _enqueue(self, references: list[Reference]) -> None:
        for reference in references:
            reference.queue.pending -= 1
            self._enqueue_one(reference)

    def _enqueue_one(self, reference: Reference) -> None:
        queue = reference.queue
        if queue.deleted:
            drop(self, reference)
            return
        if reference.sequence == 0:
            self.scheduled.hold_new(reference, reference.message.scheduled_ms)
            return
        if queue.paged is not None:
            self.paging.take(reference)
        else:
            queue.add(reference)
            if not queue.dirty:
                self.mark_dirty(queue)
        if queue.special is not None:
            enter(self, queue.special, reference)
        if (
            queue.open_consumers == 0
            and not queue.unattended
            and not queue.has_match(reference.message)
        ):
            self.note_unattended(queue)

    def reply_when_durable(self, lsn: int, endpoint: Endpoint | None, token: int) -> None:
        """`done(token)` once everything up to `lsn` is on disk: the answer to a repeat waits for the first copy."""
        if endpoint is None:
            return
        if lsn <= self.journal.durable:
            endpoint.done(token)
        else:
            self.journal.hurry()
            self.parked.append(Parked(max(lsn, self._last_parked()), [], endpoint, token))

    def refuse_when_durable(
        self, lsn: int, endpoint: Endpoint, token: int, error: BrokerError
    ) -> None:
        """`failed(token, error)` once everything up to `lsn` is on disk: "duplicate" means "done" to who asks."""
        if lsn <= self.journal.durable:
            endpoint.failed(token, error)
        else:
            refusal = DeferredRefusal(endpoint, error)
            self.journal.hurry()
            self.parked.append(Parked(max(lsn, self._last_parked()), [], refusal, token))

    def _last_parked(self) -> int:
        return self.parked[len(self.parked) - 1].lsn if self.parked else 0

    def on_durable(self, now: int, lsn: int) -> None:
        """Everything up to `lsn` is on disk."""
        self.now = now
        self.paging.on_durable(lsn)
        parked = self.parked
        while parked and parked[0].lsn <= lsn:
            waiting = parked.popleft()
            self._enqueue(waiting.references)
            if waiting.endpoint is not None:
                waiting.endpoint.done(waiting.token)
        if self.large.leaving:
            self.large.on_durable(lsn)

    # -- acknowledging ------------------------------------------------------------------------------
    def acknowledge_one(self, reference: Reference, endpoint: Endpoint, token: int) -> None:
        """As `acknowledge`, for one message: all of a turn go into one record a queue (`flush`)."""
        queue = reference.queue
        if queue.leased or reference.state != DELIVERING:
            self.acknowledge(self.now, [reference], endpoint, token)
            return
        if reference.durable:
            if not queue.acknowledging:
                self.acknowledging.append(queue)
            queue.acknowledging.append(reference.message.id)
        if self.trace.on:
            tell(self.trace, "story_acknowledged", reference.message, queue.name)
        queue.acknowledged += 1
        drop_from_queue(self, reference)
        if queue.tombstones >= FINISHED_MIN:
            queue.trim_front()
        if token != SILENT:
            self.append_acknowledged()
            self.reply_when_durable(
                self.journal.last if reference.durable else 0, endpoint, token
            )

    def append_acknowledged(self) -> None:
        """The records of what `acknowledge_one` finished. Nobody waits for those who did not ask for an answer."""
        if self.acknowledging:
            queues = self.acknowledging
            self.acknowledging = []
            for queue in queues:
                message_ids = queue.acknowledging
                queue.acknowledging = []
                if not queue.deleted:
                    self.journal.append_idle(
                        records.ACKS, records.encode_acks(queue.id, message_ids)
                    )

    def acknowledge(
        self, now: int, references: list[Reference], endpoint: Endpoint | None, token: int
    ) -> None:
        """Finish delivered messages of a session that commits acknowledgements by itself."""
        batch = records.Batch()
        finish(self, references, batch)
        if len(batch) == 0:
            self.reply_when_durable(0, endpoint, token)
            return
        self.append_batch(batch, [], [], endpoint, token)

    # -- turns --------------------------------------------------------------------------------------
    def mark_dirty(self, queue: Queue) -> None:
        if not queue.dirty and queue.consumers:
            queue.dirty = True
            self.dirty.append(queue)

    def note_unattended(self, queue: Queue) -> None:
        """The queue has a message that nobody here takes: observers are told once in this turn."""
        if not queue.unattended and not queue.internal:
            queue.unattended = True
            self.unattended.append(queue)

    def flush(self, now: int) -> None:
        """Hand out what became deliverable in this turn; called by the node once per batch of inputs."""
        self.now = now
        self.append_acknowledged()
        if self.paging.touched:
            self.paging.turn(now)
        rounds = 0
        while self.dirty and rounds < 4:
            rounds += 1
            work = self.dirty
            self.dirty = []
            for queue in work:
                queue.dirty = False
                self.dispatch(now, queue)
        if self.rings:
            cut_rings(self)
        self.wake(now)
        if self.memory.freed and self.memory.waiting:
            self.memory.grant_waiting()
        if self.unattended:
            self._tell_unattended(now)

    def wake(self, now: int) -> None:
        """Another turn at once, if there is something to do after this one's `flush`."""
        self.append_acknowledged()  # of consumers that acknowledge by receiving
        if self.paging.ending:
            self.paging.end_pages()
        if self.large.released:
            self.settle_large(now)
        if (self.dirty or self.paging.touched) and not self.flush_timer:
            self.flush_timer = True
            self.timers.set(FLUSH_TIMER, now)

    def settle_large(self, now: int) -> None:
        """Every record of what ended in this turn is in the journal."""
        if self.large.settle(self.journal.last, self.journal.durable):
            self.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)

    def _tell_unattended(self, now: int) -> None:
        found = self.unattended
        self.unattended = []
        for queue in found:
            queue.unattended = False
            for observer in self.observers:
                observer.on_unattended(now, queue)

    def dispatch(self, now: int, queue: Queue) -> None:
        """One bounded round of deliveries; what is left goes on at the next turn."""
        more = queue.dispatch(now, DISPATCH_MAX)
        paged = queue.paged
        if paged is not None:
            paged.looks.clear()
            if not more:
                more = self.paging.on_idle(now, queue)
        if more:
            self.mark_dirty(queue)
        if queue.aside:
            if not more:
                queue.answer_forced()
            if queue.found_expired:
                expire_found(self, now, queue)
        if queue.handed_out:
            tell_delivered(self, now, queue)
        if queue.counting is not None:
            queue.counting.store()
        if queue.special is not None:
            arm_gate(self, now, queue, queue.special)

    # -- look-ups -----------------------------------------------------------------------------------
    def settings_of(self, address: str) -> AddressSettings:
        return self.settings.match(address)
