"""The network connectors of a node: this broker as the end that dials in networks of ActiveMQ Classic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.multicast_agent import BrokerListener
from atalanta.cluster.networks.bridge import NetworkBridge
from atalanta.cluster.networks.config import MULTICAST, NetworkTarget
from atalanta.cluster.networks.settings import NetworkSettings, group_uri
from atalanta.cluster.part import Part
from atalanta.management.controls.control import Control
from atalanta.management.metrics_text import escape, head
from atalanta.wire.openwire.multicast_discovery import parse_group
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.cluster.discovery.multicast_agent import MulticastAgents
    from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkTarget
    from atalanta.kernel.ports import Links
    from atalanta.management.request.call import Attribute, Attributes, Call
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.wire.connection import TransportConnection
    from atalanta.wire.openwire.server.node_clients import NodeClients
    from atalanta.wire.server import WireServer

SCHEMES: Final = ("tcp", "nio", "ssl", "nio+ssl", "auto", "auto+nio", "auto+ssl", "auto+nio+ssl")


FIGURES: Final[list[tuple[str, str, str, Callable[[NetworkBridge], int]]]] = [
    ("network_bridge_connected", "1 while the bridge forwards messages", "gauge",
     lambda bridge: int(bridge.connected())),
    ("network_bridge_messages_sent_total", "messages sent, repeats too", "counter",
     lambda bridge: bridge.sent()),
    ("network_bridge_messages_received_total", "messages received by duplex", "counter",
     lambda bridge: bridge.received()),
]  # fmt: skip
ATTRIBUTES: Final[dict[str, Callable[[NetworkBridge], object]]] = {
    "Connected": lambda bridge: bridge.connected(),
    "RemoteBrokerName": lambda bridge: bridge.remote_name(),
    "RemoteAddress": lambda bridge: bridge.place(),
    "Duplex": lambda bridge: bridge.config.duplex,
    "FailureReason": lambda bridge: bridge.told,
    "MessagesSent": lambda bridge: bridge.sent(),
    "MessagesReceived": lambda bridge: bridge.received(),
}


class NetworkControl(Control):
    """The control of the bridges, by number; each attribute is a list with a value for each bridge of the connector."""

    def __init__(self, bridges: dict[str, NetworkBridge], settings: NetworkSettings, broker_name: str) -> None:
        self.bridges = bridges
        self.settings = settings
        self.broker_name = broker_name
        super().__init__({name: self._attribute(getter) for name, getter in ATTRIBUTES.items()}, {})
        self.broker_attributes: Attributes = {
            "NetworkConnectorNames": lambda call: [each.name for each in self.settings.connectors]
        }

    def select(self, call: Call) -> bool:
        return bool(self._named(call.name))

    def _named(self, name: str) -> list[NetworkBridge]:
        return [bridge for bridge in self.bridges.values() if bridge.config.name == name]

    def _attribute(self, getter: Callable[[NetworkBridge], object]) -> Attribute:
        return lambda call: [getter(bridge) for bridge in self._named(call.name)]

    def metrics(self) -> Iterator[str]:
        """Yields the metrics of network bridges."""
        shown = list(self.bridges.values())
        broker = escape(self.broker_name)
        for figure, why, kind, value in FIGURES if shown else ():
            yield head(figure, why, kind, "atalanta_")
            for bridge in shown:
                label = f'{{broker="{broker}",network="{escape(bridge.config.name)}",to="{escape(bridge.place())}"}}'
                yield f"atalanta_{figure}{label} {value(bridge)}\n"


class HeardBrokers(BrokerListener):
    """The bridges by URL. `add` creates one. The options of a URL are the other broker's, and not taken over."""

    def __init__(self, add: Callable[[list[NetworkTarget]], NetworkBridge]) -> None:
        self.add = add
        self.bridges: dict[str, NetworkBridge] = {}

    def broker_found(self, now: int, url: str) -> None:
        known = self.bridges.get(url)
        if known is not None:
            known.resume()
            return
        try:
            uri = parse_uri(url, SCHEMES)
        except UriError:
            return  # a broker for other clients
        port = DEFAULT_PORT if uri.port is None else uri.port
        self.bridges[url] = self.add([NetworkTarget(uri.scheme, uri.host, port)])

    def broker_lost(self, now: int, url: str) -> None:
        bridge = self.bridges.get(url)
        if bridge is not None:
            bridge.stop()


class Networks(Part):
    """The bridges of all connectors. `by_number`: by the number in the keys of their dials and timers.

    `agents` hear of brokers for the connectors with `multicast:`.
    """

    def __init__(
        self, settings: NetworkSettings, host: WireServer, resources: ResourceRegistry, links: Links,
        node_clients: NodeClients, agents: MulticastAgents | None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.host = host
        self.links = links
        self.node_clients = node_clients
        self.agents = agents
        self.by_number: dict[str, NetworkBridge] = {}
        self.made = 0
        self.control = control = NetworkControl(self.by_number, settings, host.broker.config.name)
        resources.register_control("network", control)
        resources.extend_broker(control.broker_attributes, {})
        resources.register_metrics(control.metrics)

    def start(self, now: int) -> None:
        for config in self.settings.connectors:
            if config.auto_start and config.way.kind == MULTICAST and self.agents is not None:
                agent = self.agents.agent_of(parse_group(group_uri(config.uri)))
                agent.listen(now, HeardBrokers(self._adder(config)))
            self._begin(config)

    def _begin(self, config: NetworkConnectorConfig) -> None:
        if config.auto_start:
            for targets in config.way.bridges:
                self.add(config, targets)

    def reload(self, fresh: NetworkSettings) -> None:
        """Adds, changes and removes connectors. Those that hear of brokers by multicast change with a restart only."""
        heard = {each.name: each for each in self.settings.connectors if each.hears()}
        others = {each.name: each for each in fresh.connectors if not each.hears() and each.name not in heard}
        before = {each.name: each for each in self.settings.connectors if not each.hears()}
        for name, config in before.items():
            if others.get(name) == config:
                others[name] = config  # that of its bridges
            else:
                self._end(config)
        self.settings = NetworkSettings([*heard.values(), *others.values()], fresh.discovery_uris, fresh.tls)
        self.control.settings = self.settings
        for name, config in others.items():
            if before.get(name) is not config:
                self._begin(config)
                self.host.broker.trace.event("network_connector_added", {"network": name})

    def _end(self, config: NetworkConnectorConfig) -> None:
        for number, bridge in list(self.by_number.items()):
            if bridge.config is config:
                del self.by_number[number]
                bridge.end("the network connector was removed or changed")
        self.host.broker.trace.event("network_connector_removed", {"network": config.name})

    def _adder(self, config: NetworkConnectorConfig) -> Callable[[list[NetworkTarget]], NetworkBridge]:
        """Returns the function that adds a bridge to a broker that was heard."""
        return lambda targets: self.add(config, targets)

    def add(self, config: NetworkConnectorConfig, targets: list[NetworkTarget]) -> NetworkBridge:
        """Adds a bridge to one of these brokers, and dials."""
        self.made += 1
        number = self.made
        bridge = NetworkBridge(self.host, self.links, self.node_clients, config, targets, number)
        self.by_number[str(number)] = bridge
        bridge.dial()
        return bridge

    def stop(self, now: int) -> None:
        for bridge in self.by_number.values():
            bridge.stop()

    def of_key(self, key: str) -> NetworkBridge | None:
        return self.by_number.get(key.split(".")[1])

    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
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
