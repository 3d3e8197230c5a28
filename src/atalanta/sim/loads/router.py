"""Connection routers: producers and consumers of one key use any acceptor and must be routed to the same node.

Each key has an address with an anycast queue on every node, one sender and one consumer. There are four kinds:

- hashed: every node has a router; the targets are all nodes, known from the cluster connection, a discovery group or
  static connectors, chosen by CONSISTENT_HASH;
- first: the same with static connectors in one order, and FIRST_ELEMENT;
- gate: one node has a router and its cache keeps the target of a key over restarts (ROUND_ROBIN or
  LEAST_CONNECTIONS); clients of one key stay there (local target filter);
- shards: CONSISTENT_HASH_MODULO and a local target filter: each node accepts its share of the keys and refuses others.
"""

from __future__ import annotations

from typing import Final

from atalanta.cluster.connection_routers import (
    CLIENT_ID,
    CONSISTENT_HASH,
    CONSISTENT_HASH_MODULO,
    FIRST_ELEMENT,
    LEAST_CONNECTIONS,
    ROUND_ROBIN,
    USER_NAME,
    CacheConfig,
    PoolConfig,
    RouterConfig,
    RoutersConfig,
)
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.clients.router_client import RoutedConsumer, RoutedKey, RoutedSender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import GROUP, PASSWORD, Shape, address_of, discover
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire import AcceptorConfig

SHARE: Final = 0.25
ROUTED_PORT: Final = 61617
ROUTER: Final = "doorkeeper"
HASHED: Final = "hashed"
FIRST: Final = "first"
GATE: Final = "gate"
SHARDS: Final = "shards"
CLUSTER: Final = "cluster"
DISCOVERY: Final = "discovery"
STATIC: Final = "static"
KEYS_MAX: Final = 4
CLOSING_MESSAGES: Final = 2
STAYS: Final = "k0"  # at the gate


class RoutersLoad(SenderLoad):
    """The load: the routers' settings and the clients that they route."""

    def __init__(
        self, world: World, network: Network, ledger: Ledger, nodes: int, shape: Shape
    ) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("routers")
        self.nodes = nodes
        self.everywhere = shape.taken_everywhere()
        self.kind = self.random.choice((HASHED, HASHED, FIRST, GATE, SHARDS))
        self.source = STATIC
        if self.kind in (HASHED, GATE):
            self.source = self.random.choice((CLUSTER, DISCOVERY, STATIC))
        self.policy = {
            HASHED: CONSISTENT_HASH,
            FIRST: FIRST_ELEMENT,
            GATE: self.random.choice((ROUND_ROBIN, LEAST_CONNECTIONS)),
            SHARDS: CONSISTENT_HASH_MODULO,
        }[self.kind]
        self.key_type = self.random.choice((CLIENT_ID, USER_NAME))
        self.check_ms = self.random.choice((100, 500, 2_000))
        self.quorum = self.random.choice((1, 1, 2))
        self.gate = self.random.randrange(nodes)
        self.keys = [f"k{number}" for number in range(self.random.randint(2, KEYS_MAX))]
        self.homes: dict[str, str] = {}  # of keys with a fixed node
        self.closing = False

    # -- nodes ----------------------------------------------------------------------------------
    def configure(self, index: int, config: NodeConfig) -> None:
        for key in self.keys:
            config.broker.addresses.append(address_of(shelf(key)))
            config.security.add_user(f"{key}.user", PASSWORD, ("all",))
        assert config.cluster is not None
        if self.source == DISCOVERY and GROUP not in config.cluster.discovery_groups:
            discover(config.cluster, f"n{index}")
        if self.kind == GATE and index != self.gate:
            return
        acceptor = AcceptorConfig("doors", f"n{index}", ROUTED_PORT)
        acceptor.router = ROUTER
        config.acceptors.append(acceptor)
        config.routers = RoutersConfig([self._router(index)], config.cluster)

    def _router(self, index: int) -> RouterConfig:
        router = RouterConfig(ROUTER, self.key_type, key_filter="^k[0-9]+")
        router.policy = self.policy
        if self.kind == SHARDS:
            router.policy_number = self.nodes
            router.local_target_filter = str(index)
            return router
        pool = PoolConfig(check_period_ms=self.check_ms, quorum_size=min(self.quorum, self.nodes))
        pool.quorum_timeout_ms = self.check_ms
        pool.local_target_enabled = self.kind != FIRST
        if self.source == CLUSTER:
            pool.cluster_connection = "sim"
        elif self.source == DISCOVERY:
            pool.discovery_group = GROUP
        else:
            pool.static_connectors = [
                f"n{number}"
                for number in range(self.nodes)
                if number != index or not pool.local_target_enabled
            ]
        router.pool = pool
        if self.kind == GATE:
            router.cache = CacheConfig(persisted=True)
            router.local_target_filter = STAYS
        return router

    def acceptors(self) -> list[Host]:
        return [self.hosts[self.gate]] if self.kind == GATE else self.hosts

    # -- clients --------------------------------------------------------------------------------
    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        for host in self.acceptors():
            host.listeners[ROUTED_PORT] = "doors"
        if self.kind == GATE:
            self.homes[STAYS] = hosts[self.gate].name
        per_second = self.random.choice((1.0, 3.0))
        total = max(4, int(seconds * per_second))
        for key in self.keys:
            routing = RoutedKey(self, key, [host.name for host in self.acceptors()], ROUTED_PORT)
            self.senders.append(
                RoutedSender(
                    self.world, self.network, f"rp-{key}", routing, self.ledger, shelf(key), total,
                    per_second,
                )
            )  # fmt: skip
            self.takers.append(
                RoutedConsumer(
                    self.world, self.network, f"rc-{key}", routing, self.ledger, shelf(key)
                )
            )
        if self.everywhere:
            self._collect()

    def _collect(self) -> None:
        """Moves messages that a client left at a node to a consumer of that node."""
        for host in self.hosts:
            for key in self.keys:
                self.takers.append(
                    SimConsumer(
                        self.world, self.network, f"rx-{key}-{host.name}", host.name, self.ledger,
                        shelf(key),
                    )
                )  # fmt: skip

    def arrived(self, key: str, node: str) -> None:
        """Records that the node serves a client of that key."""
        home = self.homes.get(key, "")
        if self.kind == SHARDS:
            home = self.homes.setdefault(key, node)
        if home and home != node:
            raise Violation(f"a client of {key} is served by {node}, which belongs to {home}")

    def _routed(self) -> list[RoutedSender | RoutedConsumer]:
        clients = [*self.senders, *self.takers]
        return [each for each in clients if isinstance(each, RoutedSender | RoutedConsumer)]

    # -- end ------------------------------------------------------------------------------------
    def repair(self) -> None:
        if not self.everywhere:
            self._collect()
        super().repair()

    def left(self) -> list[str]:
        found = super().left()
        for client in self._routed():
            if not client.ready:
                found.append(f"{client.name} has found no node")
        for host in self.acceptors():
            if self.kind == SHARDS or host.node is None or host.node.routers is None:
                continue
            pool = host.node.routers.routers[ROUTER].pool
            ready = 0 if pool is None else len([each for each in pool.targets if each.ready])
            if ready != self.nodes:
                found.append(f"the router of {host.name} finds {ready} nodes ready")
        return found

    def resume(self) -> bool:
        """Reconnects every client through a router: after the faults, clients of one key must meet at one node."""
        if self.closing:
            return False
        self.closing = True
        for client in self._routed():
            client.kill()
            if isinstance(client, RoutedSender):
                client.total = client.next + CLOSING_MESSAGES
            client.start()
        return True

    def check(self) -> None:
        for key in self.ledger.confirmed:
            name, _, _ = key.partition("/")
            if name.startswith("rp-"):
                wanted = (shelf(name.removeprefix("rp-")), key)
                if wanted not in self.ledger.acknowledging:
                    raise Violation(f"confirmed message lost: {key} was never delivered from {wanted[0]}", key)
        met: dict[str, str] = {}
        for client in self._routed():
            node = met.setdefault(client.routing.key, client.target)
            if node != client.target:
                raise Violation(
                    f"{client.name} is at {client.target}, others of {client.routing.key} at {node}"
                )


def shelf(key: str) -> str:
    return f"shelf.{key}"
