"""The form of a simulated network: which brokers are joined, how, and which ways its messages may take."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.networks import (
    MASTERSLAVE,
    STATIC,
    NetworkConnectorConfig,
    NetworkRetry,
    NetworkTarget,
    NetworkWay,
)
from atalanta.sim.nodes import PASSWORD, PORT, USER, Shape, machines_of
from atalanta.sim.world.world import World

SINK: Final = "sink"  # all consumers are at one node: each message has one way, if the network is a tree
HOME: Final = "home"  # at every node are consumers that stay there; messages pass few bridges
ROAM: Final = "roam"  # consumers come and go anywhere; messages may pass any number of bridges
REPLAY_DELAY_MS: Final = 500


class Joint:
    """Two brokers that are joined: by one connector with `duplex`, or by one at each end."""

    def __init__(self, ends: list[int], duplex: bool) -> None:
        self.first, self.second = ends
        self.duplex = duplex


class NetworkPlan:
    """The plan of a seed. `ttl`: bridges that a message may pass, -1 any number."""

    def __init__(self, world: World, nodes: int, shape: Shape) -> None:
        draw = world.random("networks")
        self.nodes = nodes
        self.shape = shape
        self.kind: str = draw.choice((SINK, HOME, ROAM, ROAM))
        self.sink: int = draw.randrange(nodes)
        order = draw.sample(range(nodes), nodes)
        forms = ["chain", "star", "ring"] if nodes > 2 else ["chain"]
        self.form: str = draw.choice(forms)
        pairs = [(order[0] if self.form == "star" else order[at], order[at + 1]) for at in range(nodes - 1)]
        if self.form == "ring":
            pairs.append((order[-1], order[0]))
        self.joints = [Joint(draw.sample(pair, 2), draw.random() < 0.5) for pair in pairs]
        self.ttl: int = draw.randint(1, nodes) if self.kind == HOME else -1
        self.conduit: bool = draw.random() < 0.6
        self.lower_priority: bool = draw.random() < 0.7
        self.prefetch: int = draw.choice((1, 10, 1000))
        self.inactivity_ms: int = draw.choice((2_000, 30_000))

    def is_tree(self) -> bool:
        return self.form != "ring"

    def connectors(self, index: int) -> list[NetworkConnectorConfig]:
        """Returns the connectors in the configuration of a node."""
        found = [self._connector(each.second, each.duplex) for each in self.joints if each.first == index]
        return found + [self._connector(each.first, False) for each in self.joints if self._answers(each, index)]

    def _answers(self, joint: Joint, index: int) -> bool:
        return joint.second == index and not joint.duplex

    def _connector(self, to: int, duplex: bool) -> NetworkConnectorConfig:
        params = (("wireFormat.maxInactivityDuration", str(self.inactivity_ms)),)
        targets = [NetworkTarget("tcp", machine, PORT, params) for machine in machines_of(to, self.shape)]
        retry = NetworkRetry(initial_reconnect_delay_ms=200, max_reconnect_delay_ms=1_000)
        kind = MASTERSLAVE if len(targets) > 1 else STATIC
        return NetworkConnectorConfig(
            name=f"to-{to}",
            duplex=duplex,
            user_name=USER,
            password=PASSWORD,
            way=NetworkWay(kind, [targets], retry=retry),
            consumer_ttl=self.ttl,
            message_ttl=self.ttl,
            conduit_subscriptions=self.conduit,
            decrease_network_consumer_priority=self.lower_priority,
            prefetch_size=self.prefetch,
            replay_delay_ms=REPLAY_DELAY_MS,
        )

    def way(self, source: int, target: int) -> list[int]:
        """Returns the nodes between two of a tree, both included."""
        before = {source: source}
        found = [source]
        for node in found:
            for joint in self.joints:
                if node in (joint.first, joint.second):
                    other = joint.first + joint.second - node
                    if other not in before:
                        before[other] = node
                        found.append(other)
        way = [target]
        while way[-1] != source:
            way.append(before[way[-1]])
        return way[::-1]
