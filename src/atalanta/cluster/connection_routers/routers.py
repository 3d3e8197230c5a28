"""The connection routers of a node, and the clients that wait for a target.

An acceptor names its router (`router=`). The router decides at the first session of a connection, when the user is
known. A client whose version is too old for routing, or for which there is no target, is refused as in Artemis. If
the pool has too few ready targets, the client waits for quorum-timeout.

Artemis decides for each session, so that a round-robin policy separates the sessions of a connection. Here each
connection is routed once. Nodes of the cluster are never redirected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.connection_routers.cache import Cache
from atalanta.cluster.connection_routers.config import CLIENT_ID, RouterConfig, RoutersConfig
from atalanta.cluster.connection_routers.dialer import TargetDialer
from atalanta.cluster.connection_routers.keys import Newcomer
from atalanta.cluster.connection_routers.management import ConnectionRouterControl
from atalanta.cluster.connection_routers.policies import Policy
from atalanta.cluster.connection_routers.pool import Pool
from atalanta.cluster.connection_routers.router import GOES, NOT_READY, STAYS, Decision, Router
from atalanta.cluster.connection_routers.target import CLIENT_ID_PREFIX
from atalanta.cluster.part import Part
from atalanta.kernel.errors import INCOMPATIBLE, REMOTE_DISCONNECT, ROUTING, BrokerError
from atalanta.wire.server import Routing

if TYPE_CHECKING:
    from atalanta.cluster.connection.cluster_connections import ClusterConnections
    from atalanta.cluster.discovery.discovery import Discovery
    from atalanta.kernel.ports import Links
    from atalanta.kernel.security.security import Identity
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.wire.connection import ClientConnection, TransportConnection
    from atalanta.wire.endpoint import ConnectorConfig
    from atalanta.wire.server import WireServer

WAIT_TIMER: Final = "routers.wait"
PRUNE_TIMER: Final = "routers.prune"
PRUNE_NS: Final = 60_000_000_000
# A client that is refused as "not ready" tries again at once, and without end.
REFUSE_AFTER_NS: Final = 100_000_000


class WaitingClient:
    def __init__(self, connection: ClientConnection, router: Router, client: Newcomer, until: int) -> None:
        self.connection = connection
        self.router = router
        self.client = client
        self.until = until


class Routers(Part, Routing):
    """The routers of a node, by name. Keys of their dials and timers are "routers.<number>.<rest>"."""

    def __init__(
        self,
        config: RoutersConfig,
        host: WireServer,
        resources: ResourceRegistry,
        links: Links,
        clusters: ClusterConnections | None,
        discovery: Discovery | None,
    ) -> None:
        self.clusters = clusters
        self.discovery = discovery
        self.links = links
        self.made: int = 0
        self.host = host
        self.broker = host.broker
        self.routers: dict[str, Router] = {}
        self.pools: dict[str, Pool] = {}  # by the number in their keys
        self.waiting: list[WaitingClient] = []
        for each in config.routers:
            self._make(each, config)
        host.register_routing(self)
        resources.register_control("connectionrouter", ConnectionRouterControl(self))

    def _make(self, each: RouterConfig, config: RoutersConfig) -> Router:
        pool: Pool | None = None
        policy: Policy | None = None
        if each.policy is not None:
            start = int.from_bytes(self.broker.ids.uuid()[:3], "big")
            policy = Policy(each.policy, each.policy_number, start)
        if each.pool is not None:
            counts = policy is not None and policy.counts
            number = str(self.made)
            self.made += 1
            dialer = TargetDialer(config.settings, self.clusters, self.links)
            pool = Pool(
                each.pool, each.name, f"routers.{number}.", counts, self.host, dialer, self.clusters, self.discovery,
                config.plain_password,
            )
            self.pools[number] = pool
        cache = None if each.cache is None else Cache(each.cache, each.name, self.broker.values)
        router = Router(each, pool, policy, cache)
        self.routers[each.name] = router
        return router

    # -- start and stop -------------------------------------------------------------------------
    def start(self, now: int) -> None:
        for router in self.routers.values():
            self._start(now, router)
        self.broker.timers.set(PRUNE_TIMER, now + PRUNE_NS)

    def reload(self, now: int, config: RoutersConfig | None) -> None:
        """Replaces changed routers, also by another connector, and adds new ones (ConnectionRouterManager.update).

        A router that was removed from the file stays until the node stops: connections from before may name it.
        """
        if config is None:
            return
        for each in config.routers:
            known = self.routers.get(each.name)
            if known is not None and known.config == each and not _moved(known, config.settings.connectors):
                continue
            if known is not None and known.pool is not None:
                known.pool.end()
                self.pools = {key: pool for key, pool in self.pools.items() if pool is not known.pool}
            router = self._make(each, config)
            self._start(now, router)
            for waiting in self.waiting:
                if waiting.router is known:
                    waiting.router = router
        self._try_again(now)

    def _start(self, now: int, router: Router) -> None:
        if router.cache is not None:
            router.cache.start(now)
        if router.pool is not None:
            router.pool.start(now)

    def stop(self, now: int) -> None:
        for pool in self.pools.values():
            pool.stop()

    def _pool(self, key: str) -> tuple[Pool | None, str]:
        _, number, rest = key.split(".", 2)
        return self.pools.get(number), rest

    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        pool, rest = self._pool(key)
        return None if pool is None else pool.on_dialed(now, conn, rest)

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        pool, rest = self._pool(key)
        if pool is not None:
            pool.on_dial_failed(now, rest, why)

    def on_timer(self, now: int, key: str) -> None:
        if key == WAIT_TIMER:
            self._try_again(now)
        elif key == PRUNE_TIMER:
            for router in self.routers.values():
                if router.cache is not None:
                    router.cache.prune(now)
            self.broker.timers.set(PRUNE_TIMER, now + PRUNE_NS)
        else:
            pool, rest = self._pool(key)
            if pool is not None:
                pool.on_timer(now, rest)

    def flush(self, now: int) -> None:
        """Routes waiting clients if a target became ready."""
        changed = False
        for pool in self.pools.values():
            changed = changed or pool.changed
            pool.changed = False
        if changed and self.waiting:
            self._try_again(now)

    # -- clients --------------------------------------------------------------------------------
    def route(
        self, now: int, connection: ClientConnection, client_id: str | None, identity: Identity
    ) -> bool:
        """Returns True if the client stays. Else `connection.routed` answers the client, now or later."""
        acceptor = connection.acceptor
        name = None if acceptor is None else acceptor.router
        if name is None or identity.cluster or connection.authenticated:
            return True
        own = f"{self.broker.config.internal_naming_prefix}{CLIENT_ID_PREFIX}"
        if client_id is not None and client_id.startswith(own):
            return True
        obstacle = connection.can_be_routed()
        if obstacle is not None:
            raise BrokerError(INCOMPATIBLE, obstacle)
        router = self.routers[name]
        if router.config.key_type == CLIENT_ID and connection.can_repeat_login():
            # After this error the client logs in again, with its client id.
            connection.routed(now, BrokerError(ROUTING, f"connection router {name} needs a client id"))
            return False
        client = Newcomer(
            client_id, identity.user, identity.roles, connection.client.remote, connection.server_name
        )
        decision = router.decide(now, client)
        if decision.kind == STAYS:
            return True
        if decision.kind == NOT_READY:
            pool = router.pool
            wait_ns = 0 if pool is None else pool.config.quorum_timeout_ms * 1_000_000
            until = now + max(wait_ns, REFUSE_AFTER_NS)
            self.waiting.append(WaitingClient(connection, router, client, until))
            self.wants_turn = True
            self._arm()
            return False
        self._answer(now, connection, router, decision)
        return False

    def _arm(self) -> None:
        if self.waiting:
            self.broker.timers.set(WAIT_TIMER, min(each.until for each in self.waiting))

    def _try_again(self, now: int) -> None:
        waiting = self.waiting
        self.waiting = []
        for each in waiting:
            if each.connection.gone:
                continue
            decision = each.router.decide(now, each.client)
            if decision.kind == NOT_READY and now < each.until:
                self.waiting.append(each)
            else:
                self._answer(now, each.connection, each.router, decision)
        self.wants_turn = bool(self.waiting)
        self._arm()

    def _answer(
        self, now: int, connection: ClientConnection, router: Router, decision: Decision
    ) -> None:
        name = router.config.name
        if decision.kind == STAYS:
            connection.routed(now, None)
            return
        target = decision.target
        if decision.kind == GOES and target is not None and target.connector is not None:
            place = target.connector.address
            self.broker.trace.event(
                "client_routed", {"router": name, "remote": connection.client.remote, "to": place}
            )
            connection.redirect(target.node_id, target.connector)
            error = BrokerError(ROUTING, f"AMQ229237: connection router {name} redirected the connection to {place}")
        else:
            self.broker.trace.event(
                "client_not_routed", {"router": name, "remote": connection.client.remote}
            )
            error = BrokerError(REMOTE_DISCONNECT, f"AMQ229240: connection router {name} rejected the connection")
            if decision.kind == NOT_READY:
                error = BrokerError(ROUTING, f"AMQ229238: connection router {name} not ready")
        connection.routed(now, error)


def _moved(router: Router, connectors: dict[str, ConnectorConfig]) -> bool:
    """Returns whether a connector of a router's pool has changed."""
    pool = router.pool
    if pool is None:
        return False
    before = pool.dialer.settings.connectors
    return any(before.get(name) != connectors.get(name) for name in pool.config.static_connectors)
