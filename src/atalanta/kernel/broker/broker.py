"""The broker of one node: its addresses and queues, and the route of a message from its sender to its queues.

`publish` is the hot path: duplicate check, routing (kernel/routing/router.py), one journal record. When the record
is durable, the queues (kernel/queue/queue.py) enqueue the message. Inputs carry `now`; all else uses ports.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal.named_values import NamedValues
from atalanta.kernel.memory.large_body import OPEN_LOOK_NS, OPEN_TIMER, LargeBodies
from atalanta.kernel.memory.memory import Memory
from atalanta.kernel.observer import Observer
from atalanta.kernel.publish.grouping import GroupingHandler
from atalanta.kernel.publish.plan_writer import PlanWriter
from atalanta.kernel.publish.prepare import prepare
from atalanta.kernel.publish.reroute import expire_found, tell_delivered
from atalanta.kernel.publish.scale_down_target import Absorbed
from atalanta.kernel.queue.delivery.bridge_origin import Origins
from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
from atalanta.kernel.queue.delivery.freed_references import FreedReferences
from atalanta.kernel.queue.delivery.message_store import MessageStore
from atalanta.kernel.queue.delivery.scheduled import ScheduledMessages
from atalanta.kernel.queue.delivery.slow_consumers import SlowConsumers
from atalanta.kernel.queue.dispatch_gate import arm_gate
from atalanta.kernel.queue.displacement import cut_rings
from atalanta.kernel.queue.paging.paging import Paging
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.registry.addresses import AddressRegistry
from atalanta.kernel.registry.diverts import DivertRegistry
from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
from atalanta.kernel.registry.queues import QueueRegistry
from atalanta.kernel.registry.retroactive import Retroactive
from atalanta.kernel.routing.bindings import RemoteBinding
from atalanta.kernel.sessions.clients import Clients
from atalanta.kernel.sessions.ingress_headers import stamping_wanted
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.kernel.transactions.sinks import Sinks
from atalanta.kernel.transactions.xa import Branches
from atalanta.message.message import Message

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import Reply
    from atalanta.kernel.ports import BrokerPorts, Ids, Journal, Timers, Trace
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Security
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.broker_config import BrokerConfig

DISPATCH_MAX: Final = (
    2_000  # messages that one queue delivers in one batch of inputs; a zero timer continues
)
FLUSH_TIMER: Final = "kernel.flush"


class Broker:
    """The state of one node's messages. Ids are never used twice: they start at the clock's microseconds."""

    def __init__(
        self,
        config: BrokerConfig,
        settings: AddressSettingsRepository,
        security: Security,
        ports: BrokerPorts,
        node_id: str,
        window_bytes: int = 0,
    ) -> None:
        """Creates an empty broker. `window_bytes`: for clients that ask for the default, see CreditWindows.choose."""
        journal = ports.journal
        timers = ports.timers
        trace = ports.trace
        self.config = config
        self.settings = settings
        self.security = security
        self.journal: Journal = journal
        self.timers: Timers = timers
        self.ids: Ids = ports.ids
        self.trace: Trace = trace
        self.node_id = node_id
        self.observers: list[Observer] = []
        self.memory = Memory(config.global_max_size_bytes, config.global_max_messages, trace)
        self.address_registry = AddressRegistry(
            config, settings, journal, self.memory, self.observers
        )
        self.addresses: dict[str, Address] = self.address_registry.by_name
        self.queue_registry = QueueRegistry(
            self, self.address_registry, journal, ports.ids, self.observers
        )
        self.queues: dict[str, Queue] = self.queue_registry.by_name
        self.queues_by_id: dict[int, Queue] = self.queue_registry.by_id
        self.remotes_by_id: dict[int, RemoteBinding] = {}
        self.values = NamedValues(journal)
        self.diverts = DivertRegistry(
            config, self.address_registry, self.queues, self.values, trace
        )
        self.sinks = Sinks()
        self.branches = Branches()
        self.absorbed = Absorbed()
        self.origins = Origins(self.values)
        self.caches = DuplicateCaches(config.id_cache_size, settings, self.addresses, journal)
        self.memory.windows.choose(window_bytes)
        self.large = LargeBodies(trace, ports.large)
        self.dispatches = DispatchList()
        self.store = MessageStore(
            journal, self.memory, self.large, self.dispatches, timers, trace, ports.pages
        )
        self.plans = PlanWriter(self.store, self.caches, config.persist_id_cache)
        self.scheduled: ScheduledMessages = self.store.scheduled
        self.paging: Paging = self.store.paging
        self.freed = FreedReferences(timers)
        self.memory.paging = ports.pages is not None
        self.observers.append(Retroactive(self))
        self.grouping: GroupingHandler | None = None  # keeps groups together across the cluster
        self.clients = Clients(ports.close_connection)
        # The services that answer messages to their address, by that address: management.
        self.services: dict[str, Callable[[int, Message, Session], None]] = {}
        self.slow_consumers = SlowConsumers(
            settings, timers, trace, self.queues, self.clients, self.observers
        )
        # Names of the queues that the current expiry scan has still to examine.
        self.expiry_queues: list[str] = []
        self.next_binding_id: int = 1
        self.first_binding_id: int = 0  # of this start; lower ids belong to durable queues, or to earlier starts
        self.lost_ways: dict[int, bool] = {}  # ids of remote bindings whose connection was lost, not their queue
        self.stopping: bool = False
        self.stamping: bool = stamping_wanted(config, settings)
        self.flush_timer: bool = False
        self.now: int = 0

    # -- ids ------------------------------------------------------------------------------------
    def start_ids(self, now: int) -> None:
        """Starts the ids at the clock, so that ids which no record holds are not used again after a crash.

        These are the ids of non-durable messages, and of remote bindings, which peers may have in `_AMQ_ROUTE_TO`.
        """
        self.now = now
        self.store.set_now(now)
        self.store.skip_message_ids(now // 1_000)
        # A peer may hold messages for an earlier temporary queue (`_AMQ_ROUTE_TO`): its id must not be used again.
        self.next_binding_id = max(self.next_binding_id, now // 1_000)
        self.first_binding_id = self.next_binding_id

    def take_binding_id(self) -> int:
        binding_id = self.next_binding_id
        self.next_binding_id = binding_id + 1
        return binding_id

    # -- publishing -------------------------------------------------------------------------------
    def publish(
        self,
        now: int,
        message: Message,
        endpoint: Reply | None,
        token: int,
        known: Address | None = None,
    ) -> int:
        """Routes, journals and enqueues one message; calls `endpoint.done(token)` when the message is durable.

        Returns the number of queues that take the message. BrokerError if the address is unknown and may not be
        created. `known`: the message's address, if the caller has found it already.
        """
        if not message.special:
            address = self.addresses.get(message.address) if known is None else known
            if address is not None:
                queue = address.sole_queue(message)
                if queue is not None:
                    address.routed += 1
                    self.store.publish_to_one(message, queue, endpoint, token)
                    return 1
        plan = prepare(self, now, message)
        if plan.repeats_lsn >= 0:
            self.store.reply_when_durable(plan.repeats_lsn, endpoint, token)
            return 0
        self.plans.commit(plan, endpoint, token)
        return len(plan.routes)

    def on_durable(self, now: int, lsn: int) -> None:
        """Handles that all records up to `lsn` are durable."""
        self.now = now
        self.store.on_durable(now, lsn)

    # -- batches of inputs --------------------------------------------------------------------------
    def flush(self, now: int) -> None:
        """Delivers the messages that became deliverable in this batch of inputs; the node calls it once per batch."""
        self.now = now
        self.store.set_now(now)
        self.store.append_acknowledged()
        dispatches = self.dispatches
        if self.paging.touched:
            self.paging.turn(now)
        rounds = 0
        while dispatches.dirty and rounds < 4:
            rounds += 1
            for queue in dispatches.take_dirty():
                dispatches.begin(queue)
                self.dispatch(now, queue)
        if dispatches.rings:
            cut_rings(self.store)
        self.wake(now)
        if self.memory.freed and self.memory.waiting:
            self.memory.grant_waiting()
        if dispatches.unattended:
            self._tell_unattended(now)

    def wake(self, now: int) -> None:
        """Requests another event-loop iteration at once, if work is left after the `flush` of this one."""
        self.store.append_acknowledged()  # of consumers that acknowledge on receipt
        if self.paging.ending:
            self.paging.end_pages()
        if self.large.released:
            self.settle_large(now)
        if (self.dispatches.dirty or self.paging.touched) and not self.flush_timer:
            self.flush_timer = True
            self.timers.set(FLUSH_TIMER, now)

    def settle_large(self, now: int) -> None:
        """Handles large messages that ended in this batch of inputs, when all their records are in the journal."""
        if self.large.settle(self.journal.last, self.journal.durable):
            self.timers.set(OPEN_TIMER, now + OPEN_LOOK_NS)

    def _tell_unattended(self, now: int) -> None:
        for queue in self.dispatches.take_unattended():
            self.dispatches.attend(queue)
            for observer in self.observers:
                observer.on_unattended(now, queue)

    def dispatch(self, now: int, queue: Queue) -> None:
        """Delivers a bounded number of messages; the rest follows in the next event-loop iteration."""
        more = queue.dispatch(now, DISPATCH_MAX)
        paged = queue.paged
        if paged is not None:
            paged.looks.clear()
            if not more:
                more = self.paging.on_idle(now, queue)
        if more:
            self.dispatches.mark_dirty(queue)
        if queue.aside:
            if not more:
                queue.answer_drains()
            if queue.found_expired:
                expire_found(self, now, queue)
        if queue.handed_out:
            tell_delivered(self, now, queue)
        if queue.counting is not None:
            queue.counting.store_counts()
        if queue.special is not None:
            arm_gate(self.timers, now, queue, queue.special)
