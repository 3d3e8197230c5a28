"""Scanner that finds members by connectors: static ones, and those of a discovery group.

While no connector answers, all are tried for ever, as by Artemis' main locator. When one answers, members are
learnt from the topology. The other connectors are then tried `topology-scanner-attempts` times to complete the
topology. They are tried again whenever a link opens (ClusterConnectionImpl.TopologyScanner).

Any host can send announcements. So there is one locator for an address, however many nodes are announced there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.cluster.discovery.discovery import DiscoveryListener
from atalanta.cluster.links.cluster_link import ClusterLink
from atalanta.cluster.links.cluster_login import WITHHELD
from atalanta.kernel.security.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.connection.dialer import MemberDialer
    from atalanta.cluster.links.retry import Attempts
    from atalanta.cluster.topology.members import Members
    from atalanta.cluster.topology.topology import Member

LOCATE: Final = "locate."
DISCOVERED: Final = "discovered/"
SAME_CREDENTIALS: Final = "give all nodes the same cluster-user and cluster-password"
OWN_CREDENTIALS: Final = (
    "these are the default cluster-user and cluster-password, which Artemis 2.54 and newer refuse:"
    " give all nodes the same ones of your own"
)
REASONS_MAX: Final = 8  # in the log for one connector
BACKUP_TRIES: Final = 20  # failures before a connector counts as wrong that may lead to a backup of this node
CHECK_CONNECTOR: Final = "start the node there, or correct host and port of the connector"
PASSIVE: Final = "if a backup of this node waits there, nothing: it does not listen. Else"


class Scanner(DiscoveryListener):
    """Connectors by name. `open` are those that answered the login; `exhausted` have used up their attempts."""

    def __init__(
        self,
        members: Members,
        attempts: Attempts,
        dialer: MemberDialer,
        trusts: Callable[[int, str, TransportConfiguration], bool],
    ) -> None:
        """`trusts` tells whether a discovered node, at a connector, has proven that it knows the password."""
        self.members = members
        self.trusts = trusts
        self.local = members.local
        self.attempts = attempts
        self.dialer = dialer
        self.stopping: bool = False
        self.targets: dict[str, TransportConfiguration] = {}
        self.locators: dict[str, Locator] = {}
        self.open: dict[str, bool] = {}
        self.tries: dict[str, int] = {}  # failures in a row; they set the pause
        self.scans: dict[str, int] = {}  # failures since the last `wake`; they have a limit
        self.exhausted: dict[str, bool] = {}
        self.reasons: dict[str, str] = {}  # why a connector fails
        self.told: dict[str, list[str]] = {}  # the reasons that are in the log since it was connected
        self.places: dict[str, str] = {}  # names of the targets of discovered nodes, by node id
        self.announced: dict[str, int] = {}  # discovered nodes of each such target
        self.reached: dict[str, bool] = {}  # connectors that answered the login since they are known

    def halt(self, why: str) -> None:
        """Closes all locators, and opens none until `resume`. The connectors stay known."""
        self.stopping = True
        for locator in list(self.locators.values()):
            locator.close(why)

    def resume(self, now: int) -> None:
        """Tries all connectors, as at the start."""
        self.stopping = False
        self.tries.clear()
        self.scans.clear()
        self.exhausted.clear()
        for name in list(self.targets):
            self.dial(now, name)

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        """Keeps a locator to the address of a discovered node while it is announced or connected."""
        name = f"{DISCOVERED}{connector.address}"
        if self.places.get(node_id) != name:
            self.undiscovered(now, node_id)
            self.places[node_id] = name
            if self.local.forget_real(connector.address):
                self.dial(now, name)
            self.announced[name] = self.announced.get(name, 0) + 1
        if self.targets.get(name) != connector:
            self.find(now, name, connector)

    def finds_trusted(self, now: int, name: str) -> bool:
        """Returns whether a node that is announced at that target has proven that it knows the password."""
        at = [node_id for node_id, place in self.places.items() if place == name]
        return any(self.trusts(now, node_id, self.targets[name]) for node_id in at)

    def undiscovered(self, now: int, node_id: str) -> None:
        name = self.places.pop(node_id, "")
        if name:
            self.announced[name] -= 1
            if self.announced[name] == 0:
                del self.announced[name]
                self.forget(name)

    def forget_discovered(self, now: int) -> None:
        """Removes the connectors of all discovered nodes: another group is listened to."""
        for node_id in list(self.places):
            self.undiscovered(now, node_id)

    def find(self, now: int, name: str, target: TransportConfiguration) -> None:
        """Keeps a locator to this connector, unless it is this node's own."""
        if self.local.settings.announces(target):
            return
        known = name in self.targets or name in self.locators
        self.targets[name] = target
        if not known:
            self.dial(now, name)

    def seeks(self, member: Member) -> bool:
        """Returns whether a connector leads to that member: a static one, or one that is announced."""
        return any(each.same_target(target) for each in member.connectors() for target in self.targets.values())

    def forget(self, name: str) -> None:
        """Removes a connector that is no longer announced. An open connection to it stays."""
        self.targets.pop(name, None)
        self.reasons.pop(name, None)
        self.reached.pop(name, None)
        self._fresh(name)

    def failures(self) -> dict[str, str]:
        """Returns the reasons why connectors fail, by host:port. The own backup is left out: it does not listen."""
        return {
            self.targets[name].address: why for name, why in self.reasons.items() if not self._is_own_backup(name)
        }

    def _is_own_backup(self, name: str) -> bool:
        own = self.members.topology.members.get(self.local.node_id)
        return own is not None and own.backup is not None and own.backup.same_target(self.targets[name])

    def _fresh(self, name: str) -> None:
        self.tries.pop(name, None)
        self.scans.pop(name, None)
        self.exhausted.pop(name, None)

    def dial(self, now: int, name: str) -> None:
        target = self.targets.get(name)
        if target is not None and self._may_ask(now, name, target) and not self.stopping:
            self.dialer.dial(self.local.key(LOCATE + name), target)

    def _may_ask(self, now: int, name: str, target: TransportConfiguration) -> bool:
        """Returns whether a locator may dial. A real Artemis that discovery named must log in here itself.

        Another challenge would be one more failed login in its log.
        """
        if name in self.locators:
            return False
        withheld = name.startswith(DISCOVERED) and not self.local.plain_password and not self.finds_trusted(now, name)
        return not (withheld and self.local.is_real(target.address))

    def wake(self, now: int) -> None:
        """Tries the connectors again whose attempts were used up."""
        exhausted = list(self.exhausted)
        self.scans.clear()
        self.exhausted.clear()
        for name in exhausted:
            self.dial(now, name)

    # -- results of dials -----------------------------------------------------------------------
    def dialed(self, now: int, conn: int, name: str) -> Locator | None:
        if name in self.locators or name not in self.targets:
            return None
        locator = Locator(self, conn, now, name)
        self.locators[name] = locator
        locator.open(now, self.targets[name])
        return locator

    def opened(self, now: int, name: str) -> None:
        self.open[name] = self.reached[name] = True
        self.told.pop(name, None)
        if self.reasons.pop(name, None) is not None and name in self.targets:
            at = self.targets[name].address
            self.local.trace.event("cluster_connector_connected", {"connector": name, "at": at})
        self._fresh(name)
        self.wake(now)

    def lost(self, now: int, name: str, why: str, refused: bool = False, withheld: bool = False) -> None:
        """Handles a lost connection or a failed dial.

        `refused`: the peer refused the cluster's credentials. `withheld`: it got no password (ClusterLink.withheld).
        """
        self.locators.pop(name, None)
        was_open = self.open.pop(name, False)
        if self.stopping or name not in self.targets:
            return
        if not was_open:
            self._report_failure(name, why, WITHHELD if withheld else self._remedy(refused))
        if not self.open:
            self._alone(now)
        tries = self.tries.get(name, 0)
        self.tries[name] = tries + 1
        scans = self.scans.get(name, 0) + 1
        self.scans[name] = scans
        limit = self.local.config.topology_scanner_attempts
        if self.open and 0 <= limit <= scans:
            self.exhausted[name] = True
            self.local.report(
                "cluster_topology_incomplete", name, f"not reached in {scans} attempts; others are"
            )
            return
        # Any host can announce any address: one that never answered is tried less and less often.
        hopeless = refused or (name.startswith(DISCOVERED) and name not in self.reached)
        pause_ms = self.attempts.pause_ms(tries, hopeless)
        self.local.set_timer(LOCATE + name, now + pause_ms * 1_000_000)

    def _report_failure(self, name: str, why: str, what_to_do: str) -> None:
        """Records `cluster_connector_failed` once for each reason. Behind a load balancer two of them may alternate."""
        told = self.told.setdefault(name, [])
        self.reasons[name] = why
        # After a takeover the former active node needs a moment until it is known as the backup.
        if self.local.settings.backed_up and (self.tries.get(name, 0) < BACKUP_TRIES or self._is_own_backup(name)):
            return
        if why in told or len(told) >= REASONS_MAX:
            return
        told.append(why)
        self.local.trace.event(
            "cluster_connector_failed",
            {
                "connector": name,
                "at": self.targets[name].address,
                "why": why,
                "what_to_do": what_to_do,
            },
        )

    def _remedy(self, refused: bool) -> str:
        settings = self.local.settings
        if not refused:
            return f"{PASSIVE} {CHECK_CONNECTOR}" if settings.backed_up else CHECK_CONNECTOR
        defaults = (DEFAULT_CLUSTER_USER, DEFAULT_CLUSTER_PASSWORD)
        are_defaults = (settings.cluster_user, settings.cluster_password) == defaults
        return OWN_CREDENTIALS if are_defaults else SAME_CREDENTIALS

    def _alone(self, now: int) -> None:
        """Tries all connectors again when none is connected any more."""
        for name in list(self.exhausted):
            del self.exhausted[name]
            self.dial(now, name)


class Locator(ClusterLink):
    """The link to a connector, by which this node learns the topology. `name` is the connector's name."""

    def __init__(self, scanner: Scanner, conn: int, now: int, name: str) -> None:
        super().__init__(scanner.members, conn, now)
        self.scanner = scanner
        self.name = name
        if name.startswith(DISCOVERED):
            self.discovered = scanner.targets[name].address
            self.trusted = scanner.finds_trusted(now, name)

    def on_ready(self, now: int) -> None:
        self.transport.answered()
        self.scanner.opened(now, self.name)
        self.announce(True)

    def on_other_packet(self, now: int, packet: Packet, channel: int) -> None:
        return None

    def on_lost(self, now: int, why: str) -> None:
        self.scanner.lost(now, self.name, why, self.refused, self.withheld)
