"""The targets of one router, and whether they are ready (the pools of Artemis)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection_routers.target import RouterTarget, RouterTargetLink
from atalanta.cluster.discovery.discovery import DiscoveryListener
from atalanta.cluster.links.cluster_login import ClusterLogin

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.cluster.connection_routers.config import PoolConfig
    from atalanta.cluster.connection_routers.dialer import TargetDialer
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.wire.core.transport import TransportConfiguration
    from atalanta.wire.server import WireServer

LOOK_NS: Final = 500_000_000  # interval of checks of the cluster connection's members
TARGETS_MAX: Final = 10_000


class Pool(DiscoveryListener):
    """The pool of the router `name`.

    `targets` are in the order of discovery, with this node first if it is one. `key` is the prefix of the keys of
    dials and timers.
    """

    def __init__(
        self,
        config: PoolConfig,
        name: str,
        key: str,
        counts: bool,
        host: WireServer,
        dialer: TargetDialer,
        clusters: ClusterConnections | None,
        discovery: Discovery | None,
        plain_password: bool,
    ) -> None:
        self.config = config
        self.name = name
        self.plain_password = plain_password  # also to targets that discovery finds
        self.key = key
        self.counts = counts
        self.host = host
        self.dialer = dialer
        self.clusters = clusters
        self.discovery = discovery
        broker = host.broker
        self.internal_prefix = broker.config.internal_naming_prefix
        self.targets: list[RouterTarget] = []
        self.made: int = 0
        self.changed: bool = False  # a target became ready
        self.stopping: bool = False
        self.listening: bool = False

    # -- start and stop -------------------------------------------------------------------------
    def start(self, now: int) -> None:
        config = self.config
        if config.local_target_enabled:
            self.targets.append(RouterTarget(0, None, self.host.broker.node_id))
        for name in config.static_connectors:
            self._add(self.dialer.settings.transport(name), "")
        if config.discovery_group is not None and self.discovery is not None:
            self.listening = True
            self.discovery.listen(now, config.discovery_group, self, f"connection-router {self.name}")
        self._look(now)

    def stop(self) -> None:
        """Stops listening. A node that scales down calls this twice; an interrupted scale-down has never started the
        pool."""
        self.stopping = True
        if self.listening and self.config.discovery_group is not None and self.discovery is not None:
            self.listening = False
            self.discovery.unlisten(self.config.discovery_group, self)

    def end(self) -> None:
        """Ends the pool that a reload replaces: its targets are not asked any more."""
        self.stop()
        for target in list(self.targets):
            self._drop(target)

    # -- targets --------------------------------------------------------------------------------
    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        known = self.of_node(node_id)
        if known is not None and known.connector is not None:
            if known.connector.same_target(connector):
                return
            self._drop(known)
        self._add(connector, node_id)

    def undiscovered(self, now: int, node_id: str) -> None:
        known = self.of_node(node_id)
        if known is not None:
            self._drop(known)

    def _look(self, now: int) -> None:
        """Updates the targets from the members of the cluster connection, and drops those that left."""
        name = self.config.cluster_connection
        cluster = None if name is None or self.clusters is None else self.clusters.by_name.get(name)
        if cluster is None or self.stopping:
            return
        members = cluster.members.topology.members
        for target in list(self.targets):
            if not target.local and target.node_id not in members:
                self._drop(target)
        for node_id, member in list(members.items()):
            if node_id != self.host.broker.node_id and member.primary is not None:
                self.discovered(now, node_id, member.primary)
        self.host.broker.timers.set(self.key + "members", now + LOOK_NS)

    def _add(self, connector: TransportConfiguration, node_id: str) -> None:
        if len(self.targets) >= TARGETS_MAX:
            return
        self.made += 1
        target = RouterTarget(self.made, connector, node_id)
        self.targets.append(target)
        self._dial(target)

    def _drop(self, target: RouterTarget) -> None:
        self.targets.remove(target)
        target.ready = False
        if target.link is not None:
            target.link.close("no target any more")

    def of_node(self, node_id: str) -> RouterTarget | None:
        for target in self.targets:
            if target.node_id == node_id:
                return target
        return None

    # -- readiness ------------------------------------------------------------------------------
    def ready(self) -> list[RouterTarget]:
        """Returns the ready targets, or an empty list if they are fewer than quorum-size."""
        found = [target for target in self.targets if target.ready]
        for target in found:
            if target.local:
                target.connections = len(self.host.broker.clients.connected)
        return found if len(found) >= self.config.quorum_size else []

    def ready_target(self, node_id: str) -> RouterTarget | None:
        target = self.of_node(node_id)
        return target if target is not None and target.ready else None

    def checked(self, now: int, target: RouterTarget, active: bool) -> None:
        target.lost_reported = False
        if active and not target.ready:
            self.changed = True
        target.ready = active and target in self.targets
        self._arm(now, target)

    def lost(self, now: int, target: RouterTarget, why: str) -> None:
        target.ready = False
        target.link = None
        if target in self.targets and not self.stopping:
            if not target.lost_reported:
                target.lost_reported = True
                self.host.broker.trace.event(
                    "router_target_lost", {"node": target.node_id or "?", "why": why}
                )
            self._arm(now, target)

    def _arm(self, now: int, target: RouterTarget) -> None:
        at = now + self.config.check_period_ms * 1_000_000
        self.host.broker.timers.set(f"{self.key}{target.number}", at)

    # -- links ----------------------------------------------------------------------------------
    def login(self, target: RouterTarget) -> ClusterLogin | None:
        """Returns a new login as the cluster's user; None if the pool has a user of its own."""
        if self.config.user is not None:
            return None
        found = target.connector is not None and self.config.discovery_group is not None
        address = target.connector.address if found and target.connector is not None else ""
        broker = self.host.broker

        def withheld(remote: str, what_to_do: str) -> None:
            if not target.withheld:
                target.withheld = True
                broker.trace.event("discovered_member_refused", {"remote": remote, "what_to_do": what_to_do})

        plain = self.plain_password or self._trusts(target)
        return ClusterLogin(self.dialer.settings, broker.node_id, address, plain, withheld)

    def _trusts(self, target: RouterTarget) -> bool:
        """Returns whether the target is a member that has proven that it knows the cluster's password."""
        if self.clusters is None or target.connector is None:
            return False
        return self.clusters.trusts(self.host.broker.now, target.node_id, target.connector)

    def _dial(self, target: RouterTarget) -> None:
        if target.connector is not None and not target.dialing and not self.stopping:
            target.dialing = True
            self.dialer.dial(f"{self.key}{target.number}", target.connector)

    def _of_key(self, rest: str) -> RouterTarget | None:
        for target in self.targets:
            if str(target.number) == rest:
                return target
        return None

    def on_timer(self, now: int, rest: str) -> None:
        if rest == "members":
            self._look(now)
            return
        target = self._of_key(rest)
        if target is None or self.stopping:
            return
        if target.link is not None:
            target.link.check(now)
        else:
            self._dial(target)

    def on_dialed(self, now: int, conn: int, rest: str) -> RouterTargetLink | None:
        target = self._of_key(rest)
        if target is None or self.stopping:
            return None
        target.dialing = False
        target.link = RouterTargetLink(self, target, conn, now)
        target.link.open(now)
        return target.link

    def on_dial_failed(self, now: int, rest: str, why: str) -> None:
        target = self._of_key(rest)
        if target is not None:
            target.dialing = False
            self._arm(now, target)
