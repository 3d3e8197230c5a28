"""The broker of one node: it builds the parts of the kernel and passes inputs and timers on to them.

A message comes in through kernel/publish/publisher.py and leaves its queue through `dispatch`. Inputs carry `now`; all
else uses ports.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.broker.configured_resources import ConfiguredResources
from atalanta.kernel.broker.open_bodies import OpenBodies
from atalanta.kernel.broker.reserved_ids import ReservedIds
from atalanta.kernel.journal.named_values import NamedValues
from atalanta.kernel.log.log_views import LEASE_TIMER, LogViews
from atalanta.kernel.memory.large_body import OPEN_TIMER, LargeBodies
from atalanta.kernel.memory.memory import SENDERS_TIMER, Memory
from atalanta.kernel.observer import Observer
from atalanta.kernel.publish.dead_letter_resources import DeadLetterResources
from atalanta.kernel.publish.dead_letters import DeadLetters
from atalanta.kernel.publish.divert_routing import DivertRouting
from atalanta.kernel.publish.duplicate_detection import DuplicateDetection
from atalanta.kernel.publish.expiry import EXPIRY_TIMER, Expiry
from atalanta.kernel.publish.message_mover import MessageMover
from atalanta.kernel.publish.message_router import MessageRouter
from atalanta.kernel.publish.plan_writer import PlanWriter
from atalanta.kernel.publish.publisher import Publisher
from atalanta.kernel.publish.redelivery import Redelivery
from atalanta.kernel.publish.scale_down_target import ScaleDownTarget
from atalanta.kernel.publish.surplus_messages import SurplusMessages
from atalanta.kernel.publish.unknown_bindings import UnknownBindings
from atalanta.kernel.queue.delivery import scheduled
from atalanta.kernel.queue.delivery.bridge_origin import Origins
from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
from atalanta.kernel.queue.delivery.dispatcher import DISPATCH_MAX, DRAIN_TIMER, Dispatcher
from atalanta.kernel.queue.delivery.displacement import displace
from atalanta.kernel.queue.delivery.freed_references import FREED_TIMER
from atalanta.kernel.queue.delivery.message_store import MessageStore
from atalanta.kernel.queue.delivery.scheduled_messages import SCHEDULED_TIMER, ScheduledMessages
from atalanta.kernel.queue.dispatch_gate import TIMER as GATE_TIMER
from atalanta.kernel.queue.paging.paging import Paging
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.registry.addresses import AddressRegistry
from atalanta.kernel.registry.bindings import BindingRegistry
from atalanta.kernel.registry.diverts import DivertRegistry
from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
from atalanta.kernel.registry.queues import QueueRegistry
from atalanta.kernel.registry.retroactive_addresses import RetroactiveAddresses
from atalanta.kernel.security.permissions import Permissions
from atalanta.kernel.sessions import slow_consumers
from atalanta.kernel.sessions.clients import Clients
from atalanta.kernel.sessions.ingress_headers import IngressHeaders
from atalanta.kernel.sessions.request_wait import STEP_TIMER
from atalanta.kernel.sessions.services import SessionServices
from atalanta.kernel.sessions.slow_consumers import SlowConsumers
from atalanta.kernel.settings.effective_settings import all_security_rules, settings_repository
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.kernel.tasks import TASKS_TIMER
from atalanta.kernel.transactions import xa
from atalanta.kernel.transactions.xa import Branches

if TYPE_CHECKING:

    from atalanta.kernel.ports import BrokerPorts, Ids, JournalPort, Timers, Trace
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Security
    from atalanta.kernel.sessions.clients import ClientObserver
    from atalanta.kernel.settings.broker_config import BrokerConfig, StoredSettings

# The work of one turn, in deliveries: what one queue delivers in four rounds. A queue often has its own connection,
# with a write of its own; an expired message is moved.
DISPATCH_A_TURN: Final = 4 * DISPATCH_MAX
QUEUE_COST: Final = 4
EXPIRED_COST: Final = 10
FLUSH_TIMER: Final = "kernel.flush"
SWEEP_TIMER: Final = "kernel.sweep"
CACHE_SWEEP_MS: Final = 30_000  # if address-queue-scan-period is off


class Broker:
    """The state of one node's messages. Ids are never used twice: the journal reserves them."""

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
        self.journal: JournalPort = journal
        self.timers: Timers = timers
        self.ids: Ids = ports.ids
        self.trace: Trace = trace
        self.node_id = node_id
        self.observers: list[Observer] = []
        self.command = ports.command
        self.memory = Memory(config.global_max_size_bytes, config.global_max_messages, trace, timers)
        self.memory.paging = ports.pages is not None
        self.memory.windows.choose(window_bytes)
        self.large = LargeBodies(trace, ports.large)
        self.dispatches = DispatchList()
        self.store = MessageStore(
            journal, self.memory, self.large, self.dispatches, timers, trace, ports.pages, self.command,
            config.step_work_max // 4 + 1,
        )  # fmt: skip
        self.failures = self.store.failures
        self.dispatcher = Dispatcher(self.store, timers)
        self.scheduled: ScheduledMessages = self.store.scheduled
        self.paging: Paging = self.store.paging
        self.values = NamedValues(journal, self.command)
        self.origins = Origins(self.values)
        self._build_registries(ports.ids)
        self.reserved_ids = ReservedIds(self.store, self.bindings, journal)
        self._build_publisher()
        self.clients = Clients(ports.close_connection)
        self._build_sessions()
        self.slow_consumers = SlowConsumers(settings, timers, trace, self.queues, self.clients)
        self.open_bodies = OpenBodies(self.large, self.clients, self.branches, journal, timers)
        self.stopping: bool = False
        self.flush_timer: bool = False
        self.now: int = 0

    def _build_registries(self, ids: Ids) -> None:
        """Creates the registries of addresses, queues and diverts, and the caches of duplicate ids."""
        config = self.config
        settings = self.settings
        self.bindings = BindingRegistry()
        self.address_registry = AddressRegistry(
            config, settings, self.journal, self.memory, self.observers, self.command
        )
        self.security.temporaries = self.address_registry.temporaries
        self.addresses: dict[str, Address] = self.address_registry.by_name
        self.caches = DuplicateCaches(
            config.id_cache_size, settings, self.addresses, self.journal
        )
        self.plans = PlanWriter(self.store, self.caches, config.persist_id_cache)
        self.queue_registry = QueueRegistry(
            config,
            self.address_registry,
            self.plans,
            self.dispatcher,
            self.bindings,
            ids,
            self.observers,
        )
        self.queues: dict[str, Queue] = self.queue_registry.by_name
        self.diverts = DivertRegistry(
            config, self.address_registry, self.queues, self.values, self.trace
        )
        self.retroactive = RetroactiveAddresses(
            config,
            self.address_registry,
            self.queue_registry,
            self.diverts,
            settings,
            self.trace,
        )
        self.observers.append(self.retroactive)
        self.resources = ConfiguredResources(
            config,
            settings,
            self.address_registry,
            self.queue_registry,
            self.diverts,
            self.retroactive,
            self.caches,
            self.trace,
        )
        self.log_views = LogViews(
            self.node_id, self.queue_registry, self.plans, self.values, self.timers, self.trace
        )
        self.observers.append(self.log_views.retention)

    def _build_publisher(self) -> None:
        """Creates the ways of a message into the queues, and from one queue to others."""
        addresses = self.address_registry
        queues = self.queue_registry
        settings = self.settings
        trace = self.trace
        self.router = MessageRouter(self.config, self.node_id)
        diverts = DivertRouting(
            self.router,
            addresses,
            queues,
            DuplicateDetection(self.caches, self.store, trace),
            settings,
            trace,
        )
        resources = DeadLetterResources(queues, settings, trace)
        self.mover = MessageMover(self.plans, addresses, diverts, self.origins, trace)
        self.dead_letters = DeadLetters(self.mover, resources, settings)
        self.surplus = SurplusMessages(self.mover, resources, settings)
        self.expiry = Expiry(
            self.mover,
            resources,
            queues,
            settings,
            self.observers,
            self.timers,
            self.config.message_expiry_scan_period_ms,
        )
        self.redelivery = Redelivery(self.mover, self.dead_letters, settings)
        unknown_bindings = UnknownBindings(addresses, queues, settings, self.bindings)
        self.scale_down_target = ScaleDownTarget(
            addresses, self.bindings, self.values, self.origins
        )
        self.publisher = Publisher(
            self.plans,
            diverts,
            unknown_bindings,
            self.origins,
        )

    def _build_sessions(self) -> None:
        """Creates the parts that sessions use."""
        self.permissions = Permissions(self.security, self.observers)
        self.ingress_headers = IngressHeaders(self.config, self.settings)
        self.branches = Branches(self.publisher, self.redelivery, self.config, self.timers)
        self.session_services = SessionServices(
            self.config,
            self.clients,
            self.permissions,
            self.publisher,
            self.redelivery,
            self.expiry,
            self.scale_down_target,
            self.queue_registry,
            self.retroactive,
            self.memory,
            self.ingress_headers,
            self.branches,
            self.observers,
            self.dispatch,
        )

    def add_observer(self, observer: ClientObserver) -> None:
        """Adds an observer of clients, which also gets the changes of queues and addresses."""
        self.observers.append(observer)
        self.clients.observers.append(observer)

    def set_now(self, now: int) -> None:
        """Records the time (ns), for inputs that have none."""
        self.now = now
        self.store.set_now(now)

    def stop(self) -> None:
        """Records that the node stops or leaves: it serves no new clients, and expires nothing."""
        self.stopping = True
        self.expiry.stop()
        self.store.tasks.stop(self.now)

    def on_durable(self, now: int, lsn: int) -> None:
        """Handles that all records up to `lsn` are durable."""
        self.command.begin_change()
        self.now = now
        self.store.on_durable(now, lsn)

    # -- batches of inputs --------------------------------------------------------------------------
    def flush(self, now: int) -> None:
        """Delivers the messages that became deliverable in this batch of inputs; the node calls it once per batch."""
        self.set_now(now)
        if self.reserved_ids.are_used_up():
            self.reserved_ids.renew()
        self.store.append_acknowledged()
        self.store.tasks.end_turn()
        if self.store.entering:
            self.store.enter(self.journal.durable)
        dispatches = self.dispatches
        if self.paging.touched:
            self.paging.process(now)
        self._dispatch_dirty(now)
        if dispatches.displacements:
            displace(self.store)
        self.wake(now)
        if self.session_services.fan_out.end_turn():
            self._begin_turn(now)
        if self.memory.freed and self.memory.waiting:
            self.memory.grant_waiting()
        if dispatches.unattended:
            self._notify_unattended(now)

    def _dispatch_dirty(self, now: int) -> None:
        """Dispatches the listed queues, up to the work of one turn; the others stay listed, in their order."""
        dispatches = self.dispatches
        left = DISPATCH_A_TURN
        rounds = 0
        while dispatches.dirty and rounds < 4 and left > 0:
            rounds += 1
            taken = dispatches.take_dirty()
            for index, queue in enumerate(taken):
                if left <= 0:
                    dispatches.put_back(taken[index:])
                    break
                dispatches.begin(queue)
                left -= self.dispatch(now, queue)

    def wake(self, now: int) -> None:
        """Requests another event-loop iteration at once, if work is left after the `flush` of this one."""
        self.store.append_acknowledged()  # of consumers that acknowledge on receipt
        if self.paging.reader.damaged:
            self.paging.drop_damaged()
        if self.paging.finished_pages:
            self.paging.end_pages()
        if self.large.released:
            self.open_bodies.settle(now)
        if self.dispatches.dirty or self.paging.touched or self.store.entering:
            self._begin_turn(now)

    def _begin_turn(self, now: int) -> None:
        """Requests another event-loop iteration at once, unless one is requested."""
        if not self.flush_timer:
            self.flush_timer = True
            self.timers.set(FLUSH_TIMER, now)

    def _notify_unattended(self, now: int) -> None:
        for queue in self.dispatches.take_unattended():
            self.dispatches.attend(queue)
            for observer in self.observers:
                observer.on_unattended(now, queue)

    def dispatch(self, now: int, queue: Queue) -> int:
        """Delivers a bounded number of messages; the rest follows in the next event-loop iteration.

        Returns the work in deliveries. A queue to which messages are on their way back (Queue.hold) waits for them.
        """
        if queue.held > 0:
            return 0
        work = QUEUE_COST + self.dispatcher.dispatch(now, queue)
        if queue.aside and queue.found_expired:
            work += EXPIRED_COST * len(queue.found_expired)
            self.expiry.expire(now, queue.take_expired())
        limit = queue.pending_limit
        if limit is not None and limit.found:
            self.surplus.remove(now, queue, limit)
        if queue.deliveries:
            self._notify_delivered(now, queue)
        return work

    def _notify_delivered(self, now: int, queue: Queue) -> None:
        """Notifies the observers of the queue's deliveries, after the dispatch, since observers send messages."""
        for consumer, reference in queue.take_deliveries():
            for observer in self.observers:
                observer.on_delivered(now, consumer, reference)

    # -- timers -----------------------------------------------------------------------------------
    def start_timers(self, now: int) -> None:
        """Starts the periodic work."""
        self.scheduled.start()
        self.slow_consumers.arm(now)
        self.open_bodies.start(now)
        self.expiry.start(now)
        self._start_sweep_timer(now)

    def _start_sweep_timer(self, now: int) -> None:
        """Starts the sweep timer; duplicate ids are swept even if addresses and queues are not."""
        period_ms = self.config.address_queue_scan_period_ms
        if period_ms <= 0:
            period_ms = CACHE_SWEEP_MS
        self.timers.set(SWEEP_TIMER, now + period_ms * 1_000_000)

    def on_timer(self, now: int, key: str) -> None:
        """Handles a timer whose key begins with `kernel.`."""
        if key == slow_consumers.SLOW_TIMER:
            self.slow_consumers.on_timer(now)
        elif key == xa.XA_TIMER:
            self.branches.on_timer(now)
        elif key == SCHEDULED_TIMER:
            scheduled.on_timer(self.store, now)
        elif key == TASKS_TIMER:
            self.store.set_now(now)
            self.store.tasks.on_timer(now)
        elif key == FREED_TIMER:
            self.log_views.freed.on_timer(now)
        elif key == LEASE_TIMER:
            self.log_views.end_leases(now)
        elif key == FLUSH_TIMER:
            self.flush_timer = False
        elif key == STEP_TIMER:
            self.session_services.unfinished.on_timer(now)
        elif key.startswith((GATE_TIMER, DRAIN_TIMER)):
            queue = self.queues.get(key.split(".", 2)[2])
            if queue is not None:
                self.dispatches.mark_dirty(queue)
        elif key == SENDERS_TIMER:
            self.memory.on_timer(now)
        elif key == EXPIRY_TIMER:
            self.expiry.on_timer(now)
        elif key == OPEN_TIMER:
            self.open_bodies.on_timer(now)
        elif key == SWEEP_TIMER:
            self._sweep(now)

    def _sweep(self, now: int) -> None:
        """Deletes unused queues, addresses and duplicate ids."""
        if self.config.address_queue_scan_period_ms > 0:
            self.queue_registry.sweep(now)
        self.caches.sweep(now)
        if self.slow_consumers.period_s == 0:
            self.slow_consumers.arm(now)  # settings may have changed
        self._start_sweep_timer(now)

    # -- configuration ----------------------------------------------------------------------------
    def reload(
        self,
        now: int,
        fresh: BrokerConfig,
        settings: AddressSettingsRepository,
        security: Security,
    ) -> None:
        """Applies all of a changed configuration that can change without a restart, and ignores the rest.

        Follows ActiveMQServerImpl.deployReloadableConfigFromConfiguration.
        """
        config = self.config
        self.security.replace(security)
        config.security_rules = fresh.security_rules
        config.resource_limits = fresh.resource_limits
        self.settings.replace(settings)
        self.ingress_headers.reload()
        config.address_settings = fresh.address_settings
        config.stored = fresh.stored
        self.resources.reload(now, fresh)

    def change_stored_settings(self, now: int, stored: StoredSettings) -> None:
        """Applies other settings of management beside those of the configuration."""
        config = self.config
        config.stored = stored
        self.security.set_rules(all_security_rules(config), config.literal_match_markers)
        self.settings.replace(settings_repository(config))
        self.ingress_headers.reload()
        self.resources.change_settings(now)
