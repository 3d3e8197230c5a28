"""The advisories of one node (AdvisoryBroker of ActiveMQ Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.commands.connections import ConnectionInfo, RemoveInfo
from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.conversion.delivered_message import delivered_message, message_id_of
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX
from atalanta.wire.openwire.conversion.message_id import Correlations, IdTexts, id_text
from atalanta.wire.openwire.server.advisories.consumers_elsewhere import ConsumersElsewhere
from atalanta.wire.openwire.server.advisories.described_consumer import (
    HIDDEN,
    OPENWIRE,
    consumer_info,
    described,
    destination_of,
    is_composite,
    is_subscription,
)
from atalanta.wire.openwire.server.advisories.destinations import (
    DestinationAdvisories,
    DestinationWatch,
)
from atalanta.wire.openwire.server.advisories.endpoints import (
    NO_CONNECTION,
    PRODUCER,
    EndpointAdvisories,
    topic_of,
)
from atalanta.wire.openwire.server.advisories.subscription_name import subscription_parts
from atalanta.wire.openwire.server.advisories.temporary_destinations import TemporaryDestinations
from atalanta.wire.openwire.server.advisories.tolerant_observer import TolerantObserver
from atalanta.wire.openwire.server.advisories.virtual_demand import (
    ConsumerAdvisories,
    VirtualConsumers,
    VirtualDestinations,
    VirtualQueues,
    VirtualQueueWatch,
)
from atalanta.wire.openwire.server.advisories.watchers import AdvisorySource, Watchers

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.sessions.session_consumer import SessionConsumer
    from atalanta.kernel.settings.broker_config import BrokerConfig
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.advisories.endpoints import EndpointAdvisories
    from atalanta.wire.openwire.server.advisories.watcher import Watcher

CONNECTION: Final = "Connection"
CONNECTION_TOPIC: Final = f"{ADVISORY_PREFIX}{CONNECTION}"


EXPIRED: Final = "Expired"
SLOW: Final = "SlowConsumer"
NO_CONNECTIONS: Final = Correlations()  # a correlation id is shown as it is
MESSAGE_ID: Final = "orignalMessageId"  # as AdvisorySupport of Classic spells it


class OtherConsumers(ClientObserver):
    """Reports the consumers of other protocols, and durable subscriptions that end."""

    def __init__(self, advisories: EndpointAdvisories, node_id: str, config: BrokerConfig) -> None:
        self.advisories = advisories
        self.node_id = node_id
        self.config = config
        self.ids: dict[int, ConsumerId] = {}  # by the broker's number of the consumer

    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        info = described(consumer, self.node_id, self.config)
        if info is not None and info.consumer_id is not None and info.destination is not None:
            self.ids[consumer.sequential_id] = info.consumer_id
            self.advisories.add(NO_CONNECTION, info.consumer_id, info, info.destination)

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        consumer_id = self.ids.pop(consumer.sequential_id, None)
        if consumer_id is not None:
            self.advisories.remove(NO_CONNECTION, consumer_id)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if is_subscription(queue.spec, self.config):
            destination = destination_of(queue.spec, self.config)
            client_id, name = subscription_parts(queue.name)
            if not is_composite(destination):
                self.advisories.subscription_removed(destination, client_id, name)


class MessageEvents(ClientObserver):
    """Reports what happens to messages. `temporary` as in `delivered_message`."""

    def __init__(
        self, watchers: Watchers, node_id: str, config: BrokerConfig, temporary: dict[str, int]
    ) -> None:
        self.watchers = watchers
        self.node_id = node_id
        self.config = config
        self.temporary = temporary

    def on_expired(self, now: int, reference: Reference) -> None:
        message, spec = reference.message, reference.queue.spec
        if not self.watchers.by_id or message.large is not None or spec.internal or spec.address.startswith(HIDDEN):
            return
        destination = destination_of(spec, self.config)
        topic = topic_of(EXPIRED, destination)
        if not self.watchers.has_watcher(topic):
            return
        try:
            message_id = message_id_of(message, self.node_id, 0, IdTexts())
            shown = delivered_message(message, message.body, destination, message_id, 0, self.temporary, NO_CONNECTIONS)
        except Exception as error:  # nothing was changed, whatever it is
            self.watchers.leave_out(f"{EXPIRED} advisory", error)
            return  # it cannot be shown to any OpenWire client
        self.watchers.publish(NO_CONNECTION, topic, shown, {MESSAGE_ID: id_text(message_id)})

    def on_consumer_slow(self, now: int, consumer: SessionConsumer) -> None:
        info = consumer_info(consumer, self.node_id, self.config)
        if info.destination is not None:
            topic = topic_of(SLOW, info.destination)
            self.watchers.publish(NO_CONNECTION, topic, info, {"consumerId": str(info.consumer_id)})


class ConnectionAdvisories(AdvisorySource):
    """The connections with a login, by the shell's number. Passwords are not told."""

    def __init__(self, watchers: Watchers) -> None:
        self.watchers = watchers
        self.infos: dict[int, ConnectionInfo] = {}

    def replay(self, watcher: Watcher) -> None:
        if not watcher.hears_of(CONNECTION):
            return
        for conn, info in self.infos.items():
            self.watchers.replay(watcher, conn, CONNECTION_TOPIC, info, {})

    def add(self, connection_id: ConnectionId, client: Client, user: str | None) -> None:
        """Reports a connection."""
        info = ConnectionInfo(connection_id, client.client_id, None, user, client_ip=f"tcp://{client.remote}")
        self.infos[client.connection] = info
        self.watchers.publish(client.connection, CONNECTION_TOPIC, info, {})

    def remove(self, conn: int) -> None:
        """Reports the end of a connection, if it is known."""
        info = self.infos.pop(conn, None)
        if info is not None:
            self.watchers.publish(conn, CONNECTION_TOPIC, RemoveInfo(info.connection_id), {})


class ConnectionWatch(ClientObserver):
    """Reports the connections of other protocols, and the end of all."""

    def __init__(self, advisories: ConnectionAdvisories, node_id: str) -> None:
        self.advisories = advisories
        self.node_id = node_id

    def on_session_created(self, now: int, session: Session) -> None:
        client = session.client
        if client.protocol == OPENWIRE or session.identity.cluster or client.connection in self.advisories.infos:
            return
        self.advisories.add(ConnectionId(f"ID:{self.node_id}:{client.connection}"), client, session.identity.user)

    def on_connection_destroyed(self, now: int, client: Client) -> None:
        self.advisories.remove(client.connection)


class Advisories:
    """The watchers, and what they hear of. `observers` are to be told what the broker does."""

    def __init__(self, node_id: str, config: BrokerConfig, timers: Timers, queues: QueueRegistry) -> None:
        self.watchers = Watchers(node_id, config.name, timers, queues.messages)
        self.temporary = TemporaryDestinations(self.watchers)
        virtual = VirtualDestinations(config, queues)
        virtual_consumers = VirtualConsumers(self.watchers, virtual)
        virtual_queues = VirtualQueues(self.watchers, virtual, node_id)
        self.consumers = ConsumerAdvisories(self.watchers, virtual_consumers)
        self.producers = EndpointAdvisories(self.watchers, PRODUCER)
        self.connections = ConnectionAdvisories(self.watchers)
        self.elsewhere = ConsumersElsewhere(self.consumers, node_id, timers, queues.addresses)
        destinations = DestinationAdvisories(self.watchers, queues)
        self.watchers.sources = [
            self.temporary, self.consumers, self.producers, self.connections, destinations, virtual_consumers,
            virtual_queues,
        ]  # fmt: skip
        told: list[ClientObserver] = [
            OtherConsumers(self.consumers, node_id, config),
            self.elsewhere,
            ConnectionWatch(self.connections, node_id),
            DestinationWatch(destinations),
            VirtualQueueWatch(virtual_queues),
            MessageEvents(self.watchers, node_id, config, self.temporary.kinds),
        ]
        self.observers: list[ClientObserver] = [TolerantObserver(self.watchers, each) for each in told]
