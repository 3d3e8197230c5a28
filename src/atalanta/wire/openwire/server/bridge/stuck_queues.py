"""Messages that have come over a bridge to a queue whose consumers have gone: they go back to where others wait.

A bridge sends no message to a broker where it has been, so such messages would stay. Classic has
`replayWhenNoConsumers` for that (ConditionalNetworkBridgeFilterFactory), off by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.kernel.sessions.session_consumer import SessionConsumer

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.wire.openwire.server.bridge.demand import Demand
    from atalanta.wire.openwire.server.bridge.node_demands import DemandOwner

STUCK_TIMER: Final = "wire.openwire.stuck"
NS_PER_MS: Final = 1_000_000


class Watched:
    """A queue with demand behind a bridge. `back` is the way back, while it is open.

    `due_at` is when it opens (ns), 0: it does not wait.
    """

    def __init__(self, bridge: DemandOwner, demand: Demand) -> None:
        self.bridge = bridge
        self.demand = demand
        self.back: Demand | None = None
        self.due_at: int = 0

    def open(self, now: int) -> None:
        """Opens the way back."""
        self.due_at = 0
        self.back = self.bridge.return_to(now, self.demand)

    def close(self, now: int) -> None:
        """Closes the way back: the queue has a consumer again."""
        self.due_at = 0
        back = self.back
        self.back = None
        if back is not None:
            self.bridge.close_demand(now, back)


class StuckQueues(ClientObserver):
    """The queues of a node with demand behind bridges, by name. `armed_at`: when the timer is set to (ns), 0: not."""

    def __init__(self, timers: Timers, queues: QueueRegistry) -> None:
        self.timers = timers
        self.queues = queues
        self.by_queue: dict[str, list[Watched]] = {}
        self.armed_at: int = 0

    def watch(self, now: int, bridge: DemandOwner, demand: Demand) -> None:
        """Begins to watch the queue of a demand."""
        if bridge.replay_delay_ms() < 0:
            return
        name = demand.destination.physical_name or ""
        watched = Watched(bridge, demand)
        self.by_queue.setdefault(name, []).append(watched)
        queue = self.queues.by_name.get(name)
        if queue is not None and not _has_consumer(queue):
            self._wait(now, watched)

    def unwatch(self, now: int, bridge: DemandOwner, demand: Demand) -> None:
        """Ends that."""
        name = demand.destination.physical_name or ""
        found = self.by_queue.get(name, [])
        left = [each for each in found if each.demand is not demand]
        if len(left) == len(found):
            return
        for each in found:
            if each.demand is demand:
                each.close(now)
        if left:
            self.by_queue[name] = left
        else:
            del self.by_queue[name]

    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        if self.by_queue and _is_application(consumer):
            for watched in self.by_queue.get(consumer.queue.name, []):
                watched.close(now)

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        queue = consumer.queue
        if self.by_queue and _is_application(consumer) and not _has_consumer(queue):
            for watched in self.by_queue.get(queue.name, []):
                self._wait(now, watched)

    def _wait(self, now: int, watched: Watched) -> None:
        watched.due_at = now + watched.bridge.replay_delay_ms() * NS_PER_MS
        if self.armed_at == 0 or watched.due_at < self.armed_at:
            self._arm(watched.due_at)

    def _arm(self, at: int) -> None:
        self.armed_at = at
        self.timers.set(STUCK_TIMER, at)

    def on_timer(self, now: int) -> None:
        """Opens the ways back of the queues in which messages wait; the others are looked at again later."""
        self.armed_at = 0
        first = 0
        for name, entries in list(self.by_queue.items()):
            queue = self.queues.by_name.get(name)
            waiting = 0 if queue is None else queue.message_count - queue.delivering_count
            # Over one open way messages may only circle: then hardly any waits, and the others have to open, too.
            moving = any(each.back is not None for each in entries)
            for each in entries:
                if each.due_at and each.due_at <= now:
                    if waiting > 0 or moving:
                        each.open(now)
                    else:
                        each.due_at = now + each.bridge.replay_delay_ms() * NS_PER_MS
                if each.due_at and (first == 0 or each.due_at < first):
                    first = each.due_at
        if first:
            self._arm(first)


def _is_application(consumer: QueueConsumer) -> bool:
    """Returns True unless the consumer is a bridge's, or a browser."""
    if consumer.browse_only:
        return False
    if not isinstance(consumer, SessionConsumer):
        return False
    session = consumer.session
    return not (session.identity.cluster or session.client.bridge)


def _has_consumer(queue: Queue) -> bool:
    return any(_is_application(each) for each in queue.consumers)
