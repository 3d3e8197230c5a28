"""The broker of one node: addresses, queues, and the way of a message from its sender to its queues.

`publish` is the hot path: duplicate check, route (router.py), one journal record, and when that is durable the
queues (queue.py). Inputs carry `now`; everything else goes through ports.py.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.kernel import records
from atalanta.kernel.absorbing import ACK_ROUTE_TO, Absorbed, set_acknowledged_aside
from atalanta.kernel.account import DROP, FAIL
from atalanta.kernel.address import Address
from atalanta.kernel.bindings import RemoteBinding
from atalanta.kernel.clients import Clients
from atalanta.kernel.displacing import cut_rings, displace, enter
from atalanta.kernel.divert_routing import divert_exclusively, route_plan
from atalanta.kernel.duplicates import (
    BRIDGE_DUPLICATE,
    BRIDGE_PREFIX,
    DuplicateCache,
    DuplicateCaches,
)
from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, BrokerError
from atalanta.kernel.gate import TIMER as GATE_TIMER
from atalanta.kernel.grouping import GroupingHandler, Undecided, route_grouped
from atalanta.kernel.large import OPEN_LOOK_NS, OPEN_TIMER, LargeBodies
from atalanta.kernel.memory import Memory
from atalanta.kernel.message import ROUTE_TO, Message
from atalanta.kernel.message_record import encode_message_record, write_plain_message
from atalanta.kernel.moves import dead_letter_unrouted, expire, tell_delivered
from atalanta.kernel.observer import Observer
from atalanta.kernel.origin import name_origin
from atalanta.kernel.paging import Paging
from atalanta.kernel.parked import DeferredRefusal, Parked
from atalanta.kernel.plan import Plan
from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import DONE, SCHEDULED, PagedReference, Reference
from atalanta.kernel.router import route, route_by_ids, split_fqqn
from atalanta.kernel.scheduled import ScheduledMessages
from atalanta.kernel.settings import AddressSettings, AddressSettingsRepository
from atalanta.kernel.sinks import Sinks
from atalanta.kernel.slow_consumers import SlowConsumers
from atalanta.kernel.story import places, tell
from atalanta.kernel.stray import route_stray
from atalanta.kernel.wildcard_addresses import WildcardAddresses
from atalanta.kernel.xa import Branches

if TYPE_CHECKING:
    from atalanta.kernel.config import BrokerConfig
    from atalanta.kernel.divert import Divert
    from atalanta.kernel.endpoint import Endpoint
    from atalanta.kernel.ports import Ids, Journal, Pages, Timers, Trace
    from atalanta.kernel.security import Security
    from atalanta.kernel.special import Special

DISPATCH_MAX: Final = (
    2_000  # messages handed out by one queue in one turn; the rest follows by a zero timer
)
FLUSH_TIMER: Final = "kernel.flush"


def _restore_bridge_id(plan: Plan) -> None:
    """What `Broker._repeat_of` took off the message."""
    cache_name = BRIDGE_PREFIX + plan.message.address
    for name, duplicate_id in plan.duplicates:
        if name == cache_name:
            plan.message.put_property(BRIDGE_DUPLICATE, duplicate_id)


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
        self.addresses: dict[str, Address] = {}
        self.wildcards = WildcardAddresses(
            config.wildcard,
            [config.management_address, config.management_notification_address],
            config.internal_naming_prefix,
        )
        self.diverts: dict[str, Divert] = {}
        self.queues: dict[str, Queue] = {}
        self.queues_by_id: dict[int, Queue] = {}
        self.remotes_by_id: dict[int, RemoteBinding] = {}
        self.messages: dict[int, Message] = {}
        self.values: dict[str, tuple[bytes, int]] = {}
        self.sinks = Sinks()
        self.branches = Branches()
        self.absorbed = Absorbed()
        self.caches = DuplicateCaches()
        self.memory = Memory(config.global_max_size_bytes, config.global_max_messages, trace)
        self.large = LargeBodies(trace)
        self.scheduled = ScheduledMessages(timers)
        self.paging = Paging(self, pages)
        self.memory.paging = pages is not None
        self.observers: list[Observer] = []
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
    def publish(self, now: int, message: Message, endpoint: Endpoint | None, token: int) -> int:
        """Route, journal and enqueue one message; `endpoint.done(token)` when it is safe.

        Returns the number of queues that take it. BrokerError if the address is unknown and may not be created.
        """
        if not message.special:
            address = self.addresses.get(message.address)
            if address is not None:
                queue = address.sole_queue(message)
                if queue is not None:
                    address.routed += 1
                    self._publish_to_one(message, queue, endpoint, token)
                    return 1
        plan = self.prepare(now, message)
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
            self._over_limit(queue)
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

    def prepare(self, now: int, message: Message) -> Plan:
        """Duplicate check and routes; changes round-robin positions and the message's own headers.

        Diverts may create the address they lead to, as a sender may.
        """
        plan = Plan(message)
        if message.special and message.has_property(ROUTE_TO):
            self._prepare_from_peer(now, plan, message)
            return plan
        name, only_queue = split_fqqn(message.address)
        address = self.addresses.get(name)
        if address is None:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"address {name} does not exist")
        if message.special:
            plan.repeats_lsn = self._repeat_of(plan, message, name)
            if plan.repeats_lsn >= 0:
                return plan
        handler = self.grouping
        try:
            if address.rules is not None:
                route_plan(self, now, plan, address, only_queue, True)
            elif handler is not None and message.group_id is not None:
                plan.routes = route_grouped(self, handler, now, plan, address, only_queue, True)
            else:
                plan.routes = route(address, message, message.routing_type, only_queue)
        except Undecided:
            _restore_bridge_id(plan)  # it is tried again
            raise
        if plan.routes or plan.diverted is not None:
            address.routed += 1
        else:
            address.unrouted += 1
            if self.settings_of(name).send_to_dla_on_no_route:
                dead_letter_unrouted(self, now, plan, name)
        return plan

    def _repeat_of(self, plan: Plan, message: Message, name: str) -> int:
        """As `repeat`; a core bridge's own id counts instead of the sender's (PostOfficeImpl.checkDuplicateID)."""
        if message.has_property(BRIDGE_DUPLICATE):
            bridge_id = message.properties.get(BRIDGE_DUPLICATE)
            message.remove_property(BRIDGE_DUPLICATE)
            if isinstance(bridge_id, bytes):
                return self.repeat(plan, BRIDGE_PREFIX + message.address, bridge_id)
        duplicate_id = message.duplicate_id
        return -1 if duplicate_id is None else self.repeat(plan, name, duplicate_id)

    def _prepare_from_peer(self, now: int, plan: Plan, message: Message) -> None:
        """A message that another node forwards: routed by binding ids, repeats dropped by its bridge id."""
        raw_ids = message.property_value(ROUTE_TO)
        bridge_id = message.property_value(BRIDGE_DUPLICATE)
        if isinstance(bridge_id, bytes):
            plan.repeats_lsn = self.repeat(plan, BRIDGE_PREFIX + message.address, bridge_id)
            if plan.repeats_lsn >= 0:
                return
        else:
            duplicate_id = message.duplicate_id
            if duplicate_id is not None:
                plan.repeats_lsn = self.repeat(plan, message.address, duplicate_id)
                if plan.repeats_lsn >= 0:
                    return
        message.remove_property(ROUTE_TO)
        message.remove_property(BRIDGE_DUPLICATE)
        address = self.addresses.get(message.address)
        if address is not None and divert_exclusively(self, now, plan, address):
            return
        if isinstance(raw_ids, bytes):
            plan.routes, unknown = route_by_ids(raw_ids, self.queues_by_id, self.remotes_by_id)
            if unknown and not plan.routes:
                self._route_again(now, plan, message, unknown)
            if message.special and message.has_property(ACK_ROUTE_TO):
                set_acknowledged_aside(plan, message)

    def _route_again(self, now: int, plan: Plan, message: Message, unknown: list[int]) -> None:
        """The peer named queues that are not known here: told, and routed by its address rather than lost."""
        self.trace.event(
            "route_to_unknown_binding", {"address": message.address, "bindings": str(unknown)}
        )
        plan.routes = route_stray(self, now, message, unknown)

    def repeat(self, plan: Plan, cache_name: str, duplicate_id: bytes) -> int:
        """The lsn of the message that brought this duplicate id before; -1: none has, the plan brings it."""
        cache = self.duplicate_cache(cache_name)
        lsn = cache.lsn_of(duplicate_id)
        if lsn < 0:
            plan.duplicates.append((cache_name, duplicate_id))
        else:
            self.trace.count("duplicates_dropped")
            if self.trace.on:
                tell(self.trace, "story_repeated", plan.message, cache_name)
        return lsn

    def commit_plan(self, now: int, plan: Plan, endpoint: Endpoint | None, token: int) -> None:
        """One record for message, routes and duplicate ids; the queues see it when that is durable."""
        batch = records.Batch()
        references = self.add_to_batch(plan, batch)
        self.append_batch(batch, [plan], references, endpoint, token)

    def add_to_batch(self, plan: Plan, batch: records.Batch) -> list[Reference]:
        """References for the plan's routes; adds the MESSAGE (or DUPLICATES) record when something is durable."""
        message = plan.message
        message.id = self.take_message_id()
        if plan.origin is not None:
            name_origin(message, plan.origin.message)
        references: list[Reference] = []
        stored: list[Reference] = []
        # A message for later has no place in its queues yet (kernel/scheduled.py).
        scheduled_ms = message.scheduled_ms
        later = scheduled_ms != 0 and scheduled_ms > self.now // 1_000_000
        displacing = False
        for planned in plan.routes:
            queue = planned.queue
            if queue.special is not None and not later:
                displacing = True
            sequence = 0 if later else queue.take_sequence()
            reference = Reference(message, queue, sequence, planned.route_to)
            queue.pending += 1
            references.append(reference)
            if reference.durable:
                stored.append(reference)
            if self.memory.charge(reference):
                self._over_limit(queue)
        if message.large is not None:
            self.large.hold(message.large, len(references))
        if stored:
            message.references = stored
            self.messages[message.id] = message
            self.stored_bytes += stored[0].size
            batch.add(records.MESSAGE, encode_message_record(message, stored, plan.duplicates))
        elif plan.duplicates and self.config.persist_id_cache:
            for cache_name, duplicate_id in plan.duplicates:
                batch.add(
                    records.DUPLICATES,
                    records.encode_duplicates(cache_name, message.id, [duplicate_id]),
                )
        if displacing:
            displace(self, references, batch)
        if self.trace.on:
            tell(self.trace, "story_routed", message, places(references))
        if plan.diverted is not None:
            for copy in plan.diverted:
                references.extend(self.add_to_batch(copy, batch))
        return references

    def _over_limit(self, queue: Queue) -> None:
        """The address of a queue, or the node, is full."""
        account = queue.account
        if account.policy in (FAIL, DROP):
            self.memory.refuse(account)
        elif queue.paged is None:
            self.paging.start(queue)

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
        if len(batch) == 1:
            lsn = self.journal.append(batch.kinds[0], batch.payloads[0])
        elif len(batch) > 1:
            lsn = self.journal.append(records.BATCH, batch.encode())
        for plan in plans:
            plan.message.lsn = lsn
            after_lsn = max(after_lsn, plan.after_lsn)
            for cache_name, duplicate_id in plan.duplicates:
                self.duplicate_cache(cache_name).add(duplicate_id, lsn)
            if plan.diverted is not None:
                for copy in plan.diverted:
                    copy.message.lsn = lsn
                    for cache_name, duplicate_id in copy.duplicates:
                        self.duplicate_cache(cache_name).add(duplicate_id, lsn)
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
            self.drop(reference)
            return
        if reference.sequence == 0:
            self.scheduled.hold_new(reference, reference.message.scheduled_ms)
            return
        if queue.paged is not None:
            self.paging.take(reference)
        else:
            queue.add(reference)
            if queue.special is not None:
                enter(self, queue.special, reference)
            if not queue.dirty:
                self.mark_dirty(queue)
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
        if queue.leases or queue.keeps_messages or reference.state == DONE:
            self.acknowledge(self.now, [reference], endpoint, token)
            return
        if reference.durable:
            if not queue.acknowledging:
                self.acknowledging.append(queue)
            queue.acknowledging.append(reference.message.id)
        if self.trace.on:
            tell(self.trace, "story_acknowledged", reference.message, queue.name)
        queue.acknowledged += 1
        self.drop_from_queue(reference)
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
        self.finish(references, batch)
        if len(batch) == 0:
            self.reply_when_durable(0, endpoint, token)
            return
        self.append_batch(batch, [], [], endpoint, token)

    def finish(self, references: list[Reference], batch: records.Batch) -> None:
        """Take references out of their queues; what was durable goes into the batch as ACKS, one record a queue."""
        per_queue: dict[int, list[int]] = {}
        for reference in references:
            if reference.state == DONE:
                continue
            queue = reference.queue
            if queue.keeps_messages:
                continue
            if reference.durable:
                per_queue.setdefault(queue.id, []).append(reference.message.id)
            self.note_lost(reference, "acknowledged by another consumer", batch)
            self.drop_from_queue(reference)
            if self.trace.on:
                tell(self.trace, "story_acknowledged", reference.message, queue.name)
            queue.acknowledged += 1
        for queue_id, message_ids in per_queue.items():
            batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))

    def note_lost(self, reference: Reference, why: str, batch: records.Batch) -> None:
        """A message that a log-view reader was shown leaves by another way: say so, durably, for `lost_ranges`."""
        queue = reference.queue
        sequence = reference.sequence
        if not queue.leases or sequence > queue.shown_through or sequence <= queue.acked_through:
            return
        if not reference.durable:
            return
        queue.add_lost(sequence, why)
        batch.add(records.LOST, records.encode_lost(queue.id, sequence, why))

    def drop_from_queue(self, reference: Reference) -> None:
        """Memory only: the reference leaves its queue, the message goes with its last reference."""
        queue = reference.queue
        if reference.state == SCHEDULED:
            self.scheduled.forget(reference)
        queue.remove(reference)
        self.drop(reference)
        if queue.special is not None and queue.delivering_count == 0:
            self.mark_dirty(queue)  # its gate may have waited for this

    def drop(self, reference: Reference) -> None:
        """The reference no longer counts for its message (it may never have been in its queue)."""
        reference.state = DONE
        self.memory.release(reference)
        if reference.queue.paged is not None:
            self.paging.touch(reference.queue)
        if isinstance(reference, PagedReference):
            self.paging.finished(reference)
            return
        large = reference.message.large
        if large is not None:
            self.large.release(large)
        if reference.durable:
            self.unstore(reference)

    def unstore(self, reference: Reference) -> None:
        """The journal need not keep the message for this reference any more."""
        message = reference.message
        if message.unstore(reference) and message.id in self.messages:
            del self.messages[message.id]
            self.stored_bytes -= reference.size
            if message.plain:
                message.plain = False
                self.journal.forget(message.lsn)

    def store_delivery_count(self, reference: Reference, at_ms: int) -> None:
        """So that a poison message is not new again after a restart, nor too early; nothing waits for it."""
        if isinstance(reference, PagedReference):
            reference.page.deliveries[reference.index] = (reference.delivery_count, at_ms)
        self.journal.append(
            records.DELIVERY,
            records.encode_delivery(
                reference.queue.id, reference.message.id, reference.delivery_count, at_ms
            ),
        )

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
        if not more and queue.paged is not None:
            more = self.paging.on_idle(now, queue)
        if more:
            self.mark_dirty(queue)
        elif queue.forced:
            forced = queue.forced
            queue.forced = []
            for consumer, sequence in forced:
                if consumer.blocked and not consumer.closed:
                    queue.forced.append((consumer, sequence))
                elif not consumer.closed:
                    consumer.endpoint.forced(consumer, sequence)
        if queue.found_expired:
            self._expire_found(now, queue)
        if queue.handed_out:
            tell_delivered(self, now, queue)
        if queue.special is not None:
            self._arm_gate(now, queue, queue.special)

    def _arm_gate(self, now: int, queue: Queue, special: Special) -> None:
        gate = special.gate
        if gate is not None and not gate.is_open and gate.wake_at > now:
            self.timers.set(GATE_TIMER + queue.name, gate.wake_at)

    def _expire_found(self, now: int, queue: Queue) -> None:
        found = queue.found_expired
        queue.found_expired = []
        expire(self, now, found)

    # -- look-ups -----------------------------------------------------------------------------------
    def settings_of(self, address: str) -> AddressSettings:
        return self.settings.match(address)

    def duplicate_cache(self, name: str) -> DuplicateCache:
        """By cache name; its size is the address' id-cache-size, else the broker's (PostOfficeImpl)."""
        found = self.caches.by_name.get(name)
        if found is None:
            address = name[len(BRIDGE_PREFIX) :] if name.startswith(BRIDGE_PREFIX) else name
            size = self.settings_of(address).id_cache_size
            found = self.caches.cache(name, self.config.id_cache_size if size is None else size)
        return found

    def live_bytes(self) -> int:
        """What the journal must keep, roughly: for the compaction's decision."""
        stored = self.stored_bytes + self.branches.stored_bytes + self.paging.record_bytes()
        small = 256 * len(self.queues) + 128 * len(self.values) + 4096
        return stored + 64 * self.caches.count() + small
