"""The bridge of this broker on a connection that another broker has opened with `duplex`.

Follows TransportConnection.processBrokerInfo and DemandForwardingBridgeSupport of ActiveMQ Classic: here the other
broker's advisories and answers come as bare commands, beside the messages that it sends as a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.commands.brokers import BrokerSubscriptionInfo
from atalanta.wire.openwire.commands.connections import ConnectionInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX, is_advisory
from atalanta.wire.openwire.server.advisories.described_consumer import subscriptions
from atalanta.wire.openwire.server.bridge.demand_bridge import BridgePeer, DemandBridge
from atalanta.wire.openwire.server.bridge.local_side import SESSION
from atalanta.wire.openwire.server.requests.acknowledgements import STANDARD
from atalanta.wire.openwire.server.sessions.output import DELIVERED_BYTES_MAX

if TYPE_CHECKING:
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.server.bridge.neighbour import Neighbour
    from atalanta.wire.openwire.server.bridge.node_bridges import NodeBridges
    from atalanta.wire.openwire.server.peer_brokers import PeerBrokers
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

CONSUMERS: Final = f"{ADVISORY_PREFIX}Consumer."
TEMPORARY: Final = f"{ADVISORY_PREFIX}TempQueue,{ADVISORY_PREFIX}TempTopic"
ADVISORY_CONSUMER: Final = 1  # its number in the bridge's session


class DuplexEnd(BridgePeer):
    """The bridge to the other broker. `unread`: its advisories that are not acknowledged.

    `peers` has the brokers that failover clients are told of; None: they are not told of this one.
    """

    def __init__(
        self, output: OpenWireOutput, shared: NodeBridges, other: Neighbour, peers: PeerBrokers | None
    ) -> None:
        self.output = output
        self.peers = peers
        self.other = other
        self.rules = other.rules
        self.id = f"ID:{output.host.broker.node_id}-duplex{output.conn}:1"
        self.consumer_id = ConsumerId(self.id, SESSION, ADVISORY_CONSUMER)
        self.producer_id = ProducerId(self.id, 1, SESSION)
        self.unread: int = 0
        self.last_command: int = 0
        self.bridge = DemandBridge(
            output.host, shared, self, self.rules, other.id, self.producer_id,
            shared.refusals_of(self.rules.names.local_client_id()),
        )  # fmt: skip

    def start(self, now: int) -> None:
        """Begins as a client of the other broker, and asks for its consumers."""
        properties = self.other.properties
        user = properties.text("remoteUserName") or properties.text("userName")
        password = properties.text("remotePassword") or properties.text("password")
        connection_id = ConnectionId(self.id)
        client_id = self.rules.names.remote_client_id()
        self.output.send(ConnectionInfo(connection_id, client_id, password or None, user or None))
        self.output.send(SessionInfo(SessionId(self.id, SESSION)))
        self.output.send(ProducerInfo(self.producer_id))
        self.bridge.start(now)
        if self.peers is not None:
            self.peers.introduce(now, self.id, self.other.name, self.other.url)
        if not self.other.static:
            self.output.send(
                ConsumerInfo(
                    self.consumer_id,
                    destination=ActiveMQTopic(",".join(self._topics())),
                    prefetch_size=self.other.advisory_prefetch,
                    dispatch_async=True,
                    no_local=True,
                )
            )

    def close(self, now: int) -> None:
        """Ends the bridge."""
        self.bridge.close(now)
        if self.peers is not None:
            self.peers.tell(now, self.id, None)

    def _topics(self) -> list[str]:
        chosen = self.other.properties.text("destinationFilter")
        if chosen:
            topics = [each if each.startswith(CONSUMERS) else CONSUMERS + each for each in chosen.split(",")]
        else:
            names = self.rules.dynamic.names
            topics = [f"{CONSUMERS}{'Queue' if queue else 'Topic'}.{name}" for queue, name in names]
        return [*(topics or [f"{CONSUMERS}>"]), *([TEMPORARY] if self.rules.temporary else [])]

    def takes(self, now: int, command: Command) -> bool:
        """Processes a command that is for the bridge; returns False if the other broker sends it as a client."""
        if isinstance(command, Response):
            self.bridge.on_response(now, command)
        elif isinstance(command, BrokerSubscriptionInfo):
            self.bridge.on_subscriptions(now, command)
        elif isinstance(command, OpenWireMessage) and command.destination is not None:
            if not is_advisory(command.destination):
                return False
            self._advised(now, command)
        else:
            return False
        return True

    def _advised(self, now: int, message: OpenWireMessage) -> None:
        """Handles an advisory, and acknowledges a part of the prefetch at once."""
        self.bridge.on_advisory(now, message.data_structure)
        self.unread += 1
        if self.unread * 100 > self.other.advisory_prefetch * self.other.advisory_percentage:
            last, count = message.message_id, self.unread
            self.unread = 0
            self.output.send(MessageAck(message.destination, None, self.consumer_id, STANDARD, None, last, count))
        if message.response_required:
            self.output.respond(message.command_id)

    # -- the connection, as the bridge uses it ---------------------------------------------------
    def send_to_peer(self, command: Command) -> None:
        self.output.send(command)

    def take_command_id(self) -> int:
        self.last_command += 1
        return self.last_command

    def is_full(self) -> bool:
        return len(self.output.out) > DELIVERED_BYTES_MAX

    def flush_later(self) -> None:
        self.output.flush_later()

    def bridge_failed(self, why: str) -> None:
        self.output.end(why)

    def tell(self, event: str, why: str) -> None:
        host = self.output.host
        trace = host.broker.trace
        trace.event(event, {"bridge": self.rules.names.connector, "to": self.other.name, "why": why})


def open_network(
    output: OpenWireOutput, shared: NodeBridges, other: Neighbour, now: int, peers: PeerBrokers | None
) -> DuplexEnd | None:
    """Tells the bridge of another broker what it asks for; returns the bridge to that broker, None without duplex."""
    if other.wants_subscriptions:
        broker = output.host.broker
        config = broker.config
        found = subscriptions(broker.queue_registry, broker.node_id, config.wildcard)
        output.send(BrokerSubscriptionInfo(BrokerId(broker.node_id), config.name, found))
    if not other.duplex:
        return None
    duplex = DuplexEnd(output, shared, other, peers)
    duplex.start(now)
    return duplex
