"""The bridge of this broker on a connection that another broker has opened with `duplex`.

Follows TransportConnection.processBrokerInfo and DemandForwardingBridgeSupport of ActiveMQ Classic: here the other
broker's advisories and answers come as bare commands, beside the messages that it sends as a client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.security.security import CONSUME
from atalanta.message.fqqn import join_fqqn
from atalanta.wire.client_output import DELIVERED_BYTES_MAX
from atalanta.wire.openwire.commands.brokers import BrokerSubscriptionInfo
from atalanta.wire.openwire.commands.connections import ConnectionControl, ConnectionInfo
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.conversion.destination import is_advisory
from atalanta.wire.openwire.server.advisories.described_consumer import subscriptions
from atalanta.wire.openwire.server.bridge.advisory_consumer import AdvisoryConsumer
from atalanta.wire.openwire.server.bridge.demand_bridge import BridgePeer, DemandBridge
from atalanta.wire.openwire.server.bridge.local_side import SESSION

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.server.bridge.neighbour import Neighbour
    from atalanta.wire.openwire.server.bridge.node_bridges import NodeBridges
    from atalanta.wire.openwire.server.peer_brokers import PeerBrokers
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

SUBSCRIPTIONS_VERSION_MIN: Final = 12  # of OpenWire: earlier ones do not know BrokerSubscriptionInfo


class DuplexEnd(BridgePeer):
    """The bridge to the other broker.

    `peers` has the brokers that failover clients are told of; None: they are not told of this one.
    """

    def __init__(
        self, output: OpenWireOutput, shared: NodeBridges, other: Neighbour, peers: PeerBrokers | None,
        identity: Identity,
    ) -> None:  # fmt: skip
        self.output = output
        self.peers = peers
        self.other = other
        self.rules = other.rules
        self.id = f"ID:{output.host.broker.node_id}-duplex{output.conn}:1"
        self.advisories = AdvisoryConsumer(self.id, other.advisory_prefetch, other.advisory_percentage)
        self.producer_id = ProducerId(self.id, 1, SESSION)
        self.last_command: int = 0
        self.bridge = DemandBridge(
            output.host, shared, self, self.rules, other.id, self.producer_id,
            shared.refusals_of(self.rules.names.local_client_id()), identity,
        )  # fmt: skip

    def start(self, now: int) -> None:
        """Begins as a client of the other broker, and asks for its consumers."""
        properties = self.other.properties
        user = properties.text("remoteUserName") or properties.text("userName")
        password = properties.text("remotePassword") or properties.text("password")
        connection_id = ConnectionId(self.id)
        client_id = self.rules.names.remote_client_id()
        self.output.answer(ConnectionInfo(connection_id, client_id, password or None, user or None))
        self.output.answer(SessionInfo(SessionId(self.id, SESSION)))
        self.output.answer(ProducerInfo(self.producer_id))
        self.bridge.start(now)
        if self.peers is not None:
            self.peers.introduce(now, self.id, self.other.name, self.other.url)
        if not self.other.static:
            self.output.answer(self.advisories.info(properties.text("destinationFilter") or None, self.rules))

    def close(self, now: int) -> None:
        """Ends the bridge."""
        self.bridge.close(now)
        if self.peers is not None:
            self.peers.tell(now, self.id, None)

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
        elif isinstance(command, ConnectionControl):
            if self.peers is not None:
                self.peers.hear(self.id, command)
        else:
            return False
        return True

    def _advised(self, now: int, message: OpenWireMessage) -> None:
        """Handles an advisory, and acknowledges a part of the prefetch at once."""
        self.bridge.on_advisory(now, message.data_structure)
        acknowledgement = self.advisories.acknowledgement(message)
        if acknowledgement is not None:
            self.output.answer(acknowledgement)
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
        trace = self.output.host.broker.trace
        trace.event(event, {"bridge": self.rules.names.connector, "to": self.other.name, "why": why})


def open_network(
    output: OpenWireOutput, shared: NodeBridges, other: Neighbour, now: int, peers: PeerBrokers | None,
    identity: Identity,
) -> DuplexEnd | None:  # fmt: skip
    """Tells the bridge of another broker what it asks for; returns the bridge to that broker, None without duplex.

    `identity`: the user who has logged in on this connection, whose rights it has.
    """
    agreed = output.decoder.format.options
    if other.wants_subscriptions and agreed.version >= SUBSCRIPTIONS_VERSION_MIN:
        broker = output.host.broker
        config = broker.config
        permissions = broker.permissions
        found = [
            each
            for spec, each in subscriptions(broker.queue_registry, broker.node_id, config)
            if permissions.allows(identity, CONSUME, join_fqqn(spec.address, spec.name))
        ]
        output.answer(BrokerSubscriptionInfo(BrokerId(broker.node_id), config.name, found))
    if not other.duplex:
        return None
    duplex = DuplexEnd(output, shared, other, peers, identity)
    duplex.start(now)
    return duplex
