"""Consumers of several queues by one name with wildcards: they also get the queues that are created later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.conversion.destination import CLASSIC_WILDCARDS

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.openwire.commands.identifiers import ConsumerId

QUEUES_TIMER: Final = "wire.openwire.queues"
HIDDEN_PREFIX: Final = "$"  # names of the broker's own queues


class WildcardConsumer:
    """A consumer with a pattern. `add` creates its part for one more queue: (now, name of the queue)."""

    def __init__(self, name: str, add: Callable[[int, str], None]) -> None:
        self.pattern = AddressPattern(name, CLASSIC_WILDCARDS)
        self.add = add

    def takes(self, queue: Queue) -> bool:
        """Returns True for a queue that the pattern means: anycast, of its own address, and no temporary one."""
        spec = queue.spec
        if spec.routing_type != ANYCAST or spec.name != spec.address or spec.internal or spec.is_temporary():
            return False
        return not spec.name.startswith(HIDDEN_PREFIX) and self.pattern.matches(spec.name)


class WildcardQueues(ClientObserver):
    """The consumers with wildcards of a node. Queues are added behind the input that creates them: `created`."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.consumers: dict[tuple[int, ConsumerId], list[WildcardConsumer]] = {}
        self.created: list[Queue] = []

    def watch(self, conn: int, consumer_id: ConsumerId, consumer: WildcardConsumer) -> None:
        """Begins to add new queues to the consumer."""
        self.consumers.setdefault((conn, consumer_id), []).append(consumer)

    def unwatch(self, conn: int, consumer_id: ConsumerId) -> None:
        """Ends that."""
        self.consumers.pop((conn, consumer_id), None)

    def complete(self, now: int, conn: int, queues: list[Queue]) -> None:
        """Adds the queues that are missing at the consumers of a connection: permissions have changed."""
        for (owner, _), consumers in list(self.consumers.items()):
            if owner == conn:
                for consumer in consumers:
                    for queue in queues:
                        if not queue.deleted and consumer.takes(queue):
                            consumer.add(now, queue.name)

    def on_queue_added(self, now: int, queue: Queue) -> None:
        if self.consumers:
            self.created.append(queue)
            self.timers.set(QUEUES_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """Adds the new queues to the consumers whose pattern they match."""
        created = self.created
        self.created = []
        for queue in created:
            for consumers in list(self.consumers.values()):
                for consumer in consumers:
                    if not queue.deleted and consumer.takes(queue):
                        consumer.add(now, queue.name)
