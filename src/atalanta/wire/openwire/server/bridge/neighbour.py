"""Another broker of the network, as its bridge introduces it before the login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.security.resource_limits import NAME_CHARS_MAX
from atalanta.kernel.security.security import CONSUME
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX
from atalanta.wire.openwire.server.bridge.network_properties import NetworkProperties
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.openwire.commands.brokers import BrokerInfo
    from atalanta.wire.openwire.server.bridge.rules import BridgeRules

CONSUMERS_TOPIC: Final = f"{ADVISORY_PREFIX}Consumer"


class Neighbour:
    """The broker. `url` is that of its clients. `duplex`: messages flow to it over the same connection, by `rules`.

    ProtocolError: it is no neighbour of a network, or its options cannot be read.
    """

    def __init__(self, info: BrokerInfo, own_id: str, own_name: str) -> None:
        broker_id = info.broker_id
        if not info.network_connection or info.slave_broker or broker_id is None or not broker_id.value:
            raise ProtocolError("BrokerInfo of a client that is no bridge of a network")
        if broker_id.value == own_id:
            raise ProtocolError("the networkConnector leads to the broker that it belongs to")
        for text in (broker_id.value, info.broker_name, info.broker_url):
            if len(text or "") > NAME_CHARS_MAX:
                raise ProtocolError(f"BrokerInfo with a text of {len(text or '')} characters: at most {NAME_CHARS_MAX}")
        self.id = broker_id
        self.name: str = info.broker_name or ""
        self.url: str | None = info.broker_url
        self.duplex: bool = info.duplex_connection
        self.properties = NetworkProperties(info.network_properties or "")
        self.rules: BridgeRules = self.properties.rules(own_name, self.name)
        self.static: bool = self.properties.flag("staticBridge", False)
        self.wants_subscriptions: bool = self.properties.flag("syncDurableSubs", False)
        self.advisory_prefetch: int = self.properties.number("advisoryPrefetchSize", 0) or self.rules.prefetch
        self.advisory_percentage: int = self.properties.number("advisoryAckPercentage", 75)


def same_neighbour(one: Neighbour | None, other: Neighbour | None) -> bool:
    """Returns True if both are one broker."""
    return one is not None and other is not None and one.id == other.id


def may_bridge(permissions: Permissions, identity: Identity) -> bool:
    """Returns True if the user may see the demand, as bridges have to: its messages' ids then count for all bridges.

    Any client can say that it is a bridge, and know the id of a message that a real one will bring.
    """
    return identity.cluster or permissions.allows(identity, CONSUME, CONSUMERS_TOPIC)


def introduced(known: Neighbour | None, info: BrokerInfo, own_id: str, own_name: str) -> Neighbour:
    """Returns the broker whose bridge introduces it. ProtocolError: it has done so, or is no neighbour."""
    if known is not None:
        raise ProtocolError("a second BrokerInfo")
    return Neighbour(info, own_id, own_name)
