"""The bridges of a connector with `multicast:`, to brokers that publish themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.multicast_agent import BrokerListener
from atalanta.cluster.networks.config import NetworkTarget
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.cluster.networks.bridge import NetworkBridge

SCHEMES: Final = ("tcp", "nio", "ssl", "nio+ssl", "auto", "auto+nio", "auto+ssl", "auto+nio+ssl")


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
