"""Management of network bridges: resource `network.NAME` (NetworkConnectorView and NetworkBridgeView of Classic)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from atalanta.management.controls.control import Control
from atalanta.management.metrics_text import escape, head

if TYPE_CHECKING:
    from atalanta.cluster.networks.bridge import NetworkBridge
    from atalanta.management.request.call import Attribute, Attributes, Call

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
    "FailureReason": lambda bridge: bridge.told,
    "MessagesSent": lambda bridge: bridge.sent(),
    "MessagesReceived": lambda bridge: bridge.received(),
}


class NetworkControl(Control):
    """The control of the bridges, by number; each attribute is a list with a value for each bridge of the connector."""

    def __init__(self, bridges: dict[str, NetworkBridge], names: list[str], broker_name: str) -> None:
        self.bridges = bridges
        self.broker_name = broker_name
        super().__init__({name: self._attribute(getter) for name, getter in ATTRIBUTES.items()}, {})
        self.broker_attributes: Attributes = {"NetworkConnectorNames": lambda call: names}

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
