"""Scanner that finds members by connectors: static ones, and those of a discovery group.

While no connector answers, all are tried for ever, as by Artemis' main locator. When one answers, members are
learnt from the topology. The other connectors are then tried `topology-scanner-attempts` times to complete the
topology. They are tried again whenever a link opens or a new connector is added
(ClusterConnectionImpl.TopologyScanner).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.cluster_link import ClusterLink
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connection import Cluster

LOCATE: Final = "locate."


class Scanner:
    """Connectors by name. `open` are those that answered the login; `tired` have used up their attempts."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.targets: dict[str, TransportConfiguration] = {}
        self.locators: dict[str, Locator] = {}
        self.open: dict[str, bool] = {}
        self.tries: dict[str, int] = {}  # failures in a row; they set the pause
        self.scans: dict[str, int] = {}  # failures since the last `wake`; they have a limit
        self.tired: dict[str, bool] = {}

    def find(self, now: int, name: str, target: TransportConfiguration) -> None:
        """Keeps a locator to this connector, unless it is this node's own."""
        if self.cluster.clusters.is_own(target):
            return
        known = name in self.targets or name in self.locators
        self.targets[name] = target
        if not known:
            self.wake(now)
            self.dial(name)

    def forget(self, name: str) -> None:
        """Removes a connector that is no longer announced. An open connection to it stays."""
        self.targets.pop(name, None)
        self._fresh(name)

    def _fresh(self, name: str) -> None:
        self.tries.pop(name, None)
        self.scans.pop(name, None)
        self.tired.pop(name, None)

    def dial(self, name: str) -> None:
        target = self.targets.get(name)
        if target is not None and name not in self.locators and not self.cluster.stopping:
            self.cluster.dial(self.cluster.key(LOCATE + name), target)

    def wake(self, now: int) -> None:
        """Tries the connectors again whose attempts were used up."""
        tired = list(self.tired)
        self.scans.clear()
        self.tired.clear()
        for name in tired:
            self.dial(name)

    # -- results of dials -----------------------------------------------------------------------
    def dialed(self, now: int, conn: int, name: str) -> Locator | None:
        if name in self.locators or name not in self.targets:
            return None
        locator = Locator(self.cluster, conn, now, name)
        self.locators[name] = locator
        locator.open(now, self.targets[name])
        return locator

    def opened(self, now: int, name: str) -> None:
        self.open[name] = True
        self._fresh(name)
        self.wake(now)

    def lost(self, now: int, name: str) -> None:
        """Handles a lost connection or a failed dial."""
        self.locators.pop(name, None)
        self.open.pop(name, None)
        cluster = self.cluster
        if cluster.stopping or name not in self.targets:
            return
        if not self.open:
            self._alone(now)
        tries = self.tries.get(name, 0)
        self.tries[name] = tries + 1
        scans = self.scans.get(name, 0) + 1
        self.scans[name] = scans
        limit = cluster.config.topology_scanner_attempts
        if self.open and 0 <= limit <= scans:
            self.tired[name] = True
            cluster.told(
                "cluster_topology_incomplete", name, f"not reached in {scans} attempts; others are"
            )
            return
        pause_ms = cluster.attempts.pause_ms(tries)
        cluster.broker.timers.set(cluster.key(LOCATE + name), now + pause_ms * 1_000_000)

    def _alone(self, now: int) -> None:
        """Tries all connectors again when none is connected any more."""
        for name in list(self.tired):
            del self.tired[name]
            self.dial(name)


class Locator(ClusterLink):
    def __init__(self, cluster: Cluster, conn: int, now: int, key: str) -> None:
        super().__init__(cluster, conn, now)
        self.key = key

    def on_ready(self, now: int) -> None:
        self.transport.answered()
        self.cluster.scanner.opened(now, self.key)
        self.announce(True)

    def on_said(self, now: int, packet: Packet, channel: int) -> None:
        return None

    def on_lost(self, now: int, why: str) -> None:
        self.cluster.scanner.lost(now, self.key)
