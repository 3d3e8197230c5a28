"""Redistribution of messages from a queue without a matching local consumer to members with one.

The triggers and rules are those of Artemis' Redistributor:

- Redistribution starts when the last local consumer is closed, when a remote consumer is added, or when no local
  selector matches a waiting message.
- It starts after redistribution-delay (-1 never, 0 at once).
- Messages of a group, and internal or non-destructive queues are excluded, also a queue with a log-view lease.

Unlike in Artemis, a member that is away is never a target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.observer import Observer
from atalanta.kernel.queue.consumer import QueueConsumer
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import READY
from atalanta.kernel.routing.bindings import RemoteBinding

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.settings.repository import AddressSettingsRepository

MOVES_MAX: Final = 500  # messages per event-loop iteration; the rest follows by a zero timer
SCAN_MAX: Final = 5_000
TIMER: Final = "cluster.redistribute."


class Redistribution(Observer):
    """The redistribution of a node. `timers_set` has the names of the queues whose delay runs."""

    def __init__(
        self,
        mover: MessageMover,
        queues: QueueRegistry,
        settings: AddressSettingsRepository,
        timers: Timers,
    ) -> None:
        self.mover = mover
        self.queues = queues.by_name
        self.addresses = queues.addresses.by_name
        self.settings = settings
        self.timers = timers
        self.timers_set: dict[str, bool] = {}
        self.moved: int = 0
        self.stopping: bool = False

    # -- triggers -------------------------------------------------------------------------------
    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        """Cancels redistribution when a local consumer without selector is added: it takes all messages."""
        if consumer.selector is None and not consumer.browse_only:
            self._cancel(consumer.queue)

    def _cancel(self, queue: Queue) -> None:
        if queue.name in self.timers_set:
            del self.timers_set[queue.name]
            self.timers.cancel(TIMER + queue.name)

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        """Starts the delay again, whatever timer was set before."""
        queue = consumer.queue
        if not consumer.browse_only and not takes_everything(queue):
            self._cancel(queue)
            self.consider(now, queue)

    def on_unattended(self, now: int, queue: Queue) -> None:
        """Considers messages that arrive after the last consumer was closed.

        In Artemis the redistributor stays at the queue as a consumer.
        """
        self.consider(now, queue)

    def remote_consumer(self, now: int, remote: RemoteBinding) -> None:
        """Considers the local queues of that name when another node has consumers."""
        address = self.addresses.get(remote.address)
        group = None if address is None else address.groups.get(remote.routing_name)
        if group is not None:
            for queue in list(group.locals):
                if not takes_everything(queue):
                    self.consider(now, queue)

    def consider(self, now: int, queue: Queue) -> None:
        """Sets the queue's timer if another node has a consumer and a delay is configured."""
        if (
            queue.internal
            or queue.deleted
            or queue.keeps_messages
            or queue.spec.temporary
        ):
            return
        delay_ms = self.settings.match(queue.spec.address).redistribution_delay_ms
        if delay_ms < 0 or queue.name in self.timers_set or not self._has_remote_consumer(queue):
            return
        self.timers_set[queue.name] = True
        self.timers.set(TIMER + queue.name, now + delay_ms * 1_000_000)

    def _has_remote_consumer(self, queue: Queue) -> bool:
        address = self.addresses.get(queue.spec.address)
        group = None if address is None else address.groups.get(queue.routing_name())
        if group is None:
            return False
        for remote in group.remotes:
            if remote.redistributes() and remote.consumer_count > 0:
                return True
        return False

    # -- moving ---------------------------------------------------------------------------------
    def on_timer(self, now: int, key: str) -> None:
        name = key[len(TIMER) :]
        self.timers_set.pop(name, None)
        if self.stopping:
            return
        queue = self.queues.get(name)
        if queue is None or queue.active_lease() is not None:
            return
        address = self.addresses.get(queue.spec.address)
        group = None if address is None else address.groups.get(queue.routing_name())
        if group is None:
            return
        if queue.paged is not None:
            queue.paged.request()
            self.mover.store.paging.touch(queue)
        moves = 0
        # Moved messages stay in the list until their record is durable. They do not count for SCAN_MAX.
        start = queue.skip_taken()
        waiting = queue.references[start : start + SCAN_MAX]
        for reference in waiting:
            if reference.state != READY or reference.message.group_id is not None:
                continue
            if queue.has_match(reference.message):
                continue
            target = group.redistribution_target(reference.message)
            if target is None:
                continue
            route_to = target.remote_id.to_bytes(8, "big", signed=True)
            self.mover.redistribute(reference, target.forward, route_to)
            moves += 1
            if moves >= MOVES_MAX:
                self.timers_set[name] = True
                self.timers.set(key, now)
                break
        self.moved += moves
        if moves and queue.paged is not None:
            # The rest is read into memory in this event-loop iteration.
            self.timers_set[name] = True
            self.timers.set(key, now)
        if moves:
            self.mover.trace.count("messages_redistributed", moves)


def takes_everything(queue: Queue) -> bool:
    """Returns whether the queue has a local consumer without selector. Then no message is redistributed."""
    return any(not each.browse_only and each.selector is None for each in queue.consumers)
