"""Discovery of members by DNS, without JGroups: the addresses of a headless service, or its SRV records.

The names are resolved every dns-discovery-period. Each address gets a locator, as a static connector does. An
address that is no longer in the answer is removed. While the DNS does not answer, or has no addresses, the last
answer counts: an outage of the DNS must not split the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.part import Part
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_uri

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import ClusterConnection
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.cluster.native_config import OwnSettings

PREFIX: Final = "dns."
DNS_PLACE: Final = "dns/"  # prefix of the names of locators
TCP: Final = "tcp"
SRV: Final = "srv"
NAMES_MAX: Final = 100
PLACES_MAX: Final = 10_000


class DnsName:
    """A DNS name and its last answer, `places`. `port` 0: SRV records have the ports."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.number: int = 0  # of the cluster connection
        self.places: list[tuple[str, int]] = []
        self.failed: bool = False


def dns_names(text: str) -> list[DnsName]:
    """Parses `tcp://name:port,srv://_service._tcp.name`. UriError names the part that is wrong."""
    found: list[DnsName] = []
    for part in text.split(","):
        if not part.strip():
            continue
        uri = parse_uri(part, (TCP, SRV))
        if uri.params:
            raise UriError(f"'{part.strip()}' takes no parameters")
        if uri.scheme == SRV and uri.port is not None:
            raise UriError(f"'{part.strip()}': SRV records have ports of their own")
        port = DEFAULT_PORT if uri.port is None else uri.port
        found.append(DnsName(uri.host, 0 if uri.scheme == SRV else port))
    if not found:
        raise UriError("no name is given")
    if len(found) > NAMES_MAX:
        raise UriError(f"more than {NAMES_MAX} names")
    return found


class DnsDiscovery(Part):
    """Resolves the names of all cluster connections, in their order. Keys are "dns.<number of the name>"."""

    def __init__(self, own: OwnSettings, clusters: ClusterConnections) -> None:
        self.own = own
        self.source = clusters
        self.clusters: list[ClusterConnection] = []  # those that are removed stay, and dial nobody
        self.links = clusters.links
        self.broker = clusters.broker
        self.period_ns = own.dns_discovery_period_ms * 1_000_000
        self.names: list[DnsName] = []
        self.stopping = False
        self._add_names()

    def _add_names(self) -> None:
        for cluster in self.source.connections:
            if cluster in self.clusters:
                continue
            number = len(self.clusters)
            self.clusters.append(cluster)
            text = self.own.dns_text(cluster.config.name, number)
            if text is not None:
                for name in dns_names(text):
                    name.number = number
                    self.names.append(name)

    def follow(self) -> None:
        """Resolves the names of cluster connections that a reload has added."""
        known = len(self.names)
        self._add_names()
        for number in range(known, len(self.names)):
            self._ask(number)

    def start(self, now: int) -> None:
        for number in range(len(self.names)):
            self._ask(number)

    def stop(self, now: int) -> None:
        self.stopping = True

    def on_timer(self, now: int, key: str) -> None:
        if not self.stopping:
            self._ask(int(key[len(PREFIX) :]))

    def _ask(self, number: int) -> None:
        name = self.names[number]
        self.links.resolve(f"{PREFIX}{number}", name.name, name.port)

    def on_resolved(self, now: int, key: str, places: list[tuple[str, int]], why: str) -> None:
        if self.stopping:
            return
        number = int(key[len(PREFIX) :])
        name = self.names[number]
        trace = self.broker.trace
        if why or not places:
            if not name.failed:
                trace.event("dns_lookup_failed", {"name": name.name, "why": why or "no addresses"})
            name.failed = True
        else:
            if name.failed or places != name.places:
                shown = " ".join(f"{host}:{port}" for host, port in places[:NAMES_MAX])
                trace.event("dns_answer", {"name": name.name, "places": shown})
            name.failed = False
            self._take(now, name, places[:PLACES_MAX])
        self.broker.timers.set(key, now + self.period_ns)

    def _take(self, now: int, name: DnsName, places: list[tuple[str, int]]) -> None:
        before = name.places
        scanner = self.clusters[name.number].scanner
        beside = [other for other in self.names if other.number == name.number]
        name.places = places
        for place in before:
            if not any(place in other.places for other in beside):
                scanner.forget(locator_name(place))
        for host, port in places:
            # Also for one whose attempts were used up, since the DNS still has it.
            target = TransportConfiguration.tcp(locator_name((host, port)), host, port)
            scanner.find(now, target.name, target)


def locator_name(place: tuple[str, int]) -> str:
    return f"{DNS_PLACE}{place[0]}:{place[1]}"
