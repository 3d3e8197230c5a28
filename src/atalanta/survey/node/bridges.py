"""The core bridges and network connectors of one node, as its management reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from atalanta.client import Management, ManagementFailed
from atalanta.survey.model.links import BridgeView, NetworkView
from atalanta.survey.node.queue_rows import BROKER

NETWORK: Final = ("RemoteAddress", "RemoteBrokerName", "Connected", "Duplex", "FailureReason")
SENT: Final = "MessagesSent"
RECEIVED: Final = "MessagesReceived"


async def bridges_of(management: Management, ours: bool) -> list[BridgeView]:
    """Returns the core bridges. An Artemis node tells neither where a bridge leads nor why it fails."""
    found: list[BridgeView] = []
    for name in _names(await management.get(BROKER, "BridgeNames")):
        resource = f"bridge.{name}"
        bridge = BridgeView(name, str(await management.get(resource, "QueueName") or ""))
        forwarding = await management.get(resource, "ForwardingAddress")
        bridge.forwarding_address = str(forwarding) if forwarding else None
        bridge.started = (await management.get(resource, "Started")) is not False
        try:
            connected = await management.get(resource, "Connected")
            bridge.connected = connected if isinstance(connected, bool) else None
            bridge.acknowledged = await _count(management, resource, "MessagesAcknowledged")
            if ours:
                bridge.to = str(await management.get(resource, "Target") or "") or None
                bridge.why = str(await management.get(resource, "FailureReason") or "")
        except ManagementFailed:
            pass  # an earlier release, of either broker
        found.append(bridge)
    return found


async def count_bridges(management: Management, bridges: Sequence[BridgeView]) -> None:
    """Takes the second sample of what the bridges have forwarded."""
    for bridge in bridges:
        bridge.later_acknowledged = await _count(management, f"bridge.{bridge.name}", "MessagesAcknowledged")


async def networks_of(management: Management) -> list[NetworkView]:
    """Returns the bridges of the network connectors. Each attribute of a connector has a value for each bridge."""
    found: list[NetworkView] = []
    for name in _names(await management.get(BROKER, "NetworkConnectorNames")):
        resource = f"network.{name}"
        columns = {each: _values(await management.get(resource, each)) for each in (*NETWORK, SENT, RECEIVED)}
        for at, address in enumerate(columns["RemoteAddress"]):
            row = {each: values[at] if at < len(values) else None for each, values in columns.items()}
            found.append(
                NetworkView(
                    name,
                    str(address),
                    str(row["RemoteBrokerName"] or ""),
                    row["Connected"] is True,
                    row["Duplex"] is True,
                    str(row["FailureReason"] or ""),
                    _number(row[SENT]),
                    _number(row[RECEIVED]),
                )
            )
    return found


async def count_networks(management: Management, networks: Sequence[NetworkView]) -> None:
    """Takes the second sample of what the networks' bridges have sent and received."""
    for name in dict.fromkeys(each.name for each in networks):
        bridges = [each for each in networks if each.name == name]
        sent = _values(await management.get(f"network.{name}", SENT))
        received = _values(await management.get(f"network.{name}", RECEIVED))
        for bridge, out, back in zip(bridges, sent, received, strict=False):
            bridge.later_sent, bridge.later_received = _number(out), _number(back)


def _names(found: object) -> list[str]:
    return [str(name) for name in _values(found)]


def _values(found: object) -> list[object]:
    return list(found) if isinstance(found, list) else []


async def _count(management: Management, resource: str, attribute: str) -> int:
    return _number(await management.get(resource, attribute))


def _number(found: object) -> int:
    return found if isinstance(found, int) else 0
