"""The targets of a core bridge, in the order in which they are tried.

Follows BridgeImpl.createSessionFactory and reconnectOnOriginalNode. `reconnect-attempts-same-node` attempts are made at
the lost node, at its primary and its backup alternately. Then the bridge tries its connectors, the nodes of its
discovery group and, with `ha`, the members of the target's cluster, in rotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.core.packets.topology import ClusterTopology
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.config import CoreBridgeConfig, CoreBridgeSettings

MEMBERS_MAX: Final = 1_000
PORT_MAX: Final = 65_535


class CoreBridgeTarget:
    """A target. `connector` is the local connector whose TLS is used, "" for a plain connection.

    `node_id` is the node id, if the target is tried because the bridge was connected to that node or followed there.
    """

    def __init__(self, transport: TransportConfiguration, connector: str, timeout_ms: int) -> None:
        self.transport = transport
        self.connector = connector
        self.timeout_ms = timeout_ms
        self.node_id: str = ""

    @property
    def place(self) -> str:
        return self.transport.address


class CoreBridgeTargets:
    """The targets of one bridge.

    `discovered` is by node id. `members` holds the target's cluster as [primary, backup], without missing ones.
    `followed` is the node to which a target scaled down; "" once the bridge is connected elsewhere.
    """

    def __init__(self, config: CoreBridgeConfig, settings: CoreBridgeSettings) -> None:
        self.config = config
        self.settings = settings
        self.discovered: dict[str, TransportConfiguration] = {}
        self.members: dict[str, list[TransportConfiguration]] = {}
        self.current: CoreBridgeTarget | None = None
        self.node_id: str = ""  # of the target that is, or was last, connected
        self.node: list[TransportConfiguration] = []  # its primary and backup
        self.tries_at_node: int = 0
        self.followed: str = ""
        self.turn: int = 0

    def next(self) -> CoreBridgeTarget | None:
        """Returns the next target. None as long as the discovery group has no node."""
        limit = self.config.reconnect_attempts_same_node
        if self.node and (limit < 0 or self.tries_at_node < limit):
            transport = self.node[self.tries_at_node % len(self.node)]
            self.tries_at_node += 1
            self.current = self._learnt(transport)
            self.current.node_id = self.node_id
            return self.current
        candidates = self._candidates()
        if not candidates:
            return None
        self.current = candidates[self.turn % len(candidates)]
        self.turn += 1
        return self.current

    def _candidates(self) -> list[CoreBridgeTarget]:
        found: list[CoreBridgeTarget] = []
        for name in self.config.static_connectors:
            connector = self.settings.connectors.get(name)
            if connector is not None:
                transport = TransportConfiguration(name)
                for key, value in connector.transport_params().items():
                    transport.put(key, value)
                secure = "" if connector.tls is None else name
                found.append(CoreBridgeTarget(transport, secure, connector.connect_timeout_ms))
        found.extend(self._learnt(transport) for transport in self.discovered.values())
        if self.config.ha:
            for transports in self.members.values():
                for transport in transports:
                    if not any(each.transport.same_target(transport) for each in found):
                        found.append(self._learnt(transport))
        return found

    def _learnt(self, transport: TransportConfiguration) -> CoreBridgeTarget:
        """Returns the target of an announced transport.

        Announced transports carry no secrets and are not trusted: TLS is used as a local connector says, and never
        dropped.
        """
        connectors = self.settings.connectors
        names = [transport.name, *self.config.static_connectors, *connectors]
        own = [name for name in names if name in connectors and connectors[name].tls is not None]
        wanted = transport.parameters.get("sslEnabled", "").lower() == "true"
        static = [connectors[name] for name in self.config.static_connectors if name in connectors]
        if wanted or (static and all(each.tls is not None for each in static)):
            # Without a local connector the shell refuses the connection by its name: no password is
            # sent in plain text.
            return CoreBridgeTarget(transport, own[0] if own else f"{transport.name} (TLS)", -1)
        return CoreBridgeTarget(transport, "", -1)

    def connected(self) -> None:
        """Records that `current` is connected; the topology tells which node that is."""
        self.tries_at_node = 0
        self.turn = 0
        if self.followed and self.current is not None and self.current.node_id == self.followed:
            return
        self.followed = ""
        self.node = []
        self.node_id = ""

    def leaves_for(self, node_id: str) -> None:
        """Records that the target scales down to that member."""
        if node_id in self.members:
            self.follow(node_id, self.members[node_id])

    def follow(self, node_id: str, transports: list[TransportConfiguration]) -> None:
        self.followed = node_id
        self.node_id = node_id
        self.node = transports
        self.tries_at_node = 0

    def configured(self) -> list[str]:
        """Returns the configured targets. A recorded node is valid only for the same ones."""
        found = [f"discovery-group {self.config.discovery_group}"]
        for name in self.config.static_connectors:
            connector = self.settings.connectors.get(name)
            if connector is not None:
                parameters = connector.transport_params()
                found.append(f"{parameters.get('host')}:{parameters.get('port')}")
        return found

    def on_topology(self, packet: ClusterTopology) -> None:
        """Updates the members. A member that leaves is still tried again if the bridge was connected to it."""
        if packet.exit:
            self.members.pop(packet.node_id, None)
            return
        transports = [each for each in (packet.primary, packet.backup) if each is not None]
        usable = [each for each in transports if is_valid_endpoint(each)]
        if not usable or (packet.node_id not in self.members and len(self.members) >= MEMBERS_MAX):
            return
        self.members[packet.node_id] = usable
        current = self.current
        if packet.node_id == self.node_id:
            self.node = usable
        elif current is not None and not self.node_id:
            if any(current.transport.same_target(each) for each in usable):
                self.node_id = packet.node_id
                self.node = usable


def is_valid_endpoint(transport: TransportConfiguration) -> bool:
    """Returns True if the transport has a valid host and port; announced ones may be wrong."""
    try:
        return 0 < transport.port <= PORT_MAX and bool(transport.host)
    except ValueError:
        return False
