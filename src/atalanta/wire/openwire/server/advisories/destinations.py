"""Advisories about queues and topics that are created and deleted (`ActiveMQ.Advisory.Queue` and `….Topic`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.conversion.destination import (
    ADVISORY_PREFIX,
    has_wildcard,
    is_queue,
)
from atalanta.wire.openwire.server.advisories.described_consumer import COMPOSITE, HIDDEN
from atalanta.wire.openwire.server.advisories.endpoints import NO_CONNECTION
from atalanta.wire.openwire.server.advisories.temporary_destinations import ADDED, REMOVED
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.temporary_names import TemporaryNames
    from atalanta.wire.openwire.server.advisories.watcher import Watcher
    from atalanta.wire.openwire.server.advisories.watchers import Watchers

QUEUE_TOPIC: Final = f"{ADVISORY_PREFIX}Queue"
TOPIC_TOPIC: Final = f"{ADVISORY_PREFIX}Topic"


class DestinationAdvisories(AdvisorySource):
    """The queues and topics of a node."""

    def __init__(self, watchers: Watchers, queues: QueueRegistry) -> None:
        self.watchers = watchers
        self.queues = queues

    def replay(self, watcher: Watcher) -> None:
        if watcher.watches(QUEUE_TOPIC):
            for queue in list(self.queues.by_name.values()):
                if is_plain_queue(queue):
                    self._tell_again(watcher, ActiveMQQueue(queue.name))
        if watcher.watches(TOPIC_TOPIC):
            addresses = self.queues.addresses
            for address in list(addresses.by_name.values()):
                if is_plain_topic(address, addresses.temporaries):
                    self._tell_again(watcher, ActiveMQTopic(address.name))

    def _tell_again(self, watcher: Watcher, destination: ActiveMQDestination) -> None:
        data = DestinationInfo(None, destination, ADDED)
        self.watchers.replay(watcher, NO_CONNECTION, _topic(destination), data, {})

    def tell(self, destination: ActiveMQDestination, operation: int) -> None:
        """Reports a new destination, or the end of one."""
        self.watchers.publish(NO_CONNECTION, _topic(destination), DestinationInfo(None, destination, operation), {})


class DestinationWatch(ClientObserver):
    """Reports the changes."""

    def __init__(self, advisories: DestinationAdvisories) -> None:
        self.advisories = advisories
        self.temporaries = advisories.queues.addresses.temporaries

    def on_queue_added(self, now: int, queue: Queue) -> None:
        if is_plain_queue(queue):
            self.advisories.tell(ActiveMQQueue(queue.name), ADDED)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if is_plain_queue(queue):
            self.advisories.tell(ActiveMQQueue(queue.name), REMOVED)

    def on_address_added(self, now: int, address: Address) -> None:
        if is_plain_topic(address, self.temporaries):
            self.advisories.tell(ActiveMQTopic(address.name), ADDED)

    def on_address_removed(self, now: int, address: Address) -> None:
        if is_plain_topic(address, self.temporaries):
            self.advisories.tell(ActiveMQTopic(address.name), REMOVED)


def is_plain_queue(queue: Queue) -> bool:
    """Returns True for what OpenWire clients know as a queue that is not temporary."""
    spec = queue.spec
    if spec.routing_type != ANYCAST or spec.name != spec.address or spec.internal or spec.is_temporary():
        return False
    return not spec.name.startswith(HIDDEN) and COMPOSITE not in spec.name


def is_plain_topic(address: Address, temporaries: TemporaryNames) -> bool:
    """Returns True for what OpenWire clients know as a topic that is not temporary."""
    name = address.name
    if not address.multicast or address.internal or has_wildcard(name):
        return False
    return not temporaries.has(name) and not name.startswith(HIDDEN) and COMPOSITE not in name


def _topic(destination: ActiveMQDestination) -> str:
    return QUEUE_TOPIC if is_queue(destination) else TOPIC_TOPIC
