"""The network connectors of a node: this broker as the end that dials in networks of ActiveMQ Classic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.discovery.multicast_agent import parse_group
from atalanta.cluster.networks.bridge import NetworkBridge
from atalanta.cluster.networks.config import MULTICAST
from atalanta.cluster.networks.heard_brokers import HeardBrokers
from atalanta.cluster.networks.management import NetworkControl
from atalanta.cluster.networks.settings import group_uri
from atalanta.cluster.part import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.cluster.discovery.multicast_agent import MulticastAgents
    from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkTarget
    from atalanta.cluster.networks.settings import NetworkSettings
    from atalanta.kernel.ports import Links
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.wire.connection import Connection
    from atalanta.wire.host import Host
    from atalanta.wire.openwire.server.node_clients import NodeClients


class Networks(Part):
    """The bridges of all connectors. `by_number`: by the number in the keys of their dials and timers.

    `agents` hear of brokers for the connectors with `multicast:`.
    """

    def __init__(
        self, settings: NetworkSettings, host: Host, resources: ResourceRegistry, links: Links,
        node_clients: NodeClients, agents: MulticastAgents | None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.host = host
        self.links = links
        self.node_clients = node_clients
        self.agents = agents
        self.by_number: dict[str, NetworkBridge] = {}
        names = [each.name for each in settings.connectors]
        control = NetworkControl(self.by_number, names, host.broker.config.name)
        resources.register_control("network", control)
        resources.extend_broker(control.broker_attributes, {})
        resources.register_metrics(control.metrics)

    def start(self, now: int) -> None:
        for config in self.settings.connectors:
            if not config.auto_start:
                continue
            if config.way.kind == MULTICAST and self.agents is not None:
                agent = self.agents.agent_of(parse_group(group_uri(config.uri)))
                agent.listen(now, HeardBrokers(self._adder(config)))
            for targets in config.way.bridges:
                self.add(config, targets)

    def _adder(self, config: NetworkConnectorConfig) -> Callable[[list[NetworkTarget]], NetworkBridge]:
        """Returns the function that adds a bridge to a broker that was heard."""
        return lambda targets: self.add(config, targets)

    def add(self, config: NetworkConnectorConfig, targets: list[NetworkTarget]) -> NetworkBridge:
        """Adds a bridge to one of these brokers, and dials."""
        number = len(self.by_number) + 1
        bridge = NetworkBridge(self.host, self.links, self.node_clients, config, targets, number)
        self.by_number[str(number)] = bridge
        bridge.dial()
        return bridge

    def stop(self, now: int) -> None:
        for bridge in self.by_number.values():
            bridge.stop()

    def of_key(self, key: str) -> NetworkBridge | None:
        return self.by_number.get(key.split(".")[1])

    def on_dialed(self, now: int, conn: int, key: str) -> Connection | None:
        bridge = self.of_key(key)
        return None if bridge is None else bridge.on_dialed(now, conn)

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        bridge = self.of_key(key)
        if bridge is not None:
            bridge.on_dial_failed(now, why)

    def on_timer(self, now: int, key: str) -> None:
        bridge = self.of_key(key)
        if bridge is not None:
            bridge.dial()
