"""The picture of a live cluster: nodes and directed links, with rates and backlog, and what leads out of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Final

from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.groups import PassiveView
from atalanta.survey.model.links import BridgeView, LinkView, NetworkView

UNTOLD: Final = "an untold place"  # a real Artemis does not tell where a bridge leads


@dataclass
class FlowNode:
    """A node. `reached` False: a member that others know but that did not answer, and `why` if it was asked. Rates are
    messages a second."""

    node_id: str
    label: str
    at: str
    version: str = ""
    atalanta: bool = False
    reached: bool = True
    queues: int = 0
    messages: int = 0
    consumers: int = 0
    clients: int | None = None
    """Its connections."""
    passive: list[PassiveView] = field(default_factory=list)
    """The members that would serve for it."""
    in_per_second: float | None = None
    out_per_second: float | None = None
    why: str = ""

    def rename(self, known: FlowNode) -> None:
        """Takes label and address of an earlier survey."""
        self.label, self.at = known.label, known.at


@dataclass
class FlowLink:
    """A link from `source` to `target` (node ids). `waiting` counts the messages in the store-and-forward queue."""

    source: str
    target: str
    linked: bool
    per_second: float | None = None
    waiting: int = 0
    away_since_ms: int | None = None
    may_have_arrived: int | None = None


BRIDGE: Final = "bridge"
NETWORK: Final = "network"


@dataclass
class FlowNeighbour:
    """A broker that is no member: the target of a core bridge, or a broker of Classic's kind in a network."""

    neighbour_id: str
    label: str
    at: str


@dataclass
class FlowBridge:
    """A core bridge or a bridge of a network, from the node `source` to the node or neighbour `target` (their ids).

    `kind` is `bridge` or `network`, `name` that of the bridge or connector. With `duplex` messages come back, too.
    `queue` and `waiting` are those of a core bridge; `why` says why it has no connection.
    """

    kind: str
    name: str
    source: str
    target: str
    linked: bool | None
    started: bool = True
    per_second: float | None = None
    back_per_second: float | None = None
    duplex: bool = False
    queue: str = ""
    waiting: int | None = None
    why: str = ""


@dataclass
class Flow:
    """The state of a whole cluster at one time."""

    nodes: list[FlowNode] = field(default_factory=list)
    links: list[FlowLink] = field(default_factory=list)
    neighbours: list[FlowNeighbour] = field(default_factory=list)
    bridges: list[FlowBridge] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def between(self, source: str, target: str) -> FlowLink | None:
        for link in self.links:
            if (link.source, link.target) == (source, target):
                return link
        return None

    def place(self, known_id: str) -> FlowNode | FlowNeighbour | None:
        """Returns the node or neighbour of an id."""
        for node in self.nodes:
            if node.node_id == known_id:
                return node
        return next((each for each in self.neighbours if each.neighbour_id == known_id), None)

    def pairs(self) -> list[tuple[FlowNode, FlowNode]]:
        """Returns nodes with a link in either direction, each pair once."""
        found: list[tuple[FlowNode, FlowNode]] = []
        for index, first in enumerate(self.nodes):
            for second in self.nodes[index + 1 :]:
                there = self.between(first.node_id, second.node_id)
                if there is not None or self.between(second.node_id, first.node_id) is not None:
                    found.append((first, second))
        return found


def flow_of(cluster: LiveCluster) -> Flow:
    """Returns the flow: nodes by name, then members that did not answer."""
    flow = Flow()
    nodes = sorted(cluster.nodes, key=lambda each: each.label)
    for node in nodes:
        flow.nodes.append(_node(node, cluster.seconds))
        flow.links += _links(node, cluster.seconds)
    others = {link.target: cluster.label(link.target) for link in flow.links}
    for node in cluster.nodes:
        others = {**node.members, **others}
    for node in cluster.nodes:
        others.pop(node.node_id, None)
    reasons = {failed.node_id: failed.why for failed in cluster.unreachable}
    for node_id, address in others.items():
        flow.nodes.append(FlowNode(node_id, address, address, reached=False, why=reasons.get(node_id, "")))
    for node in nodes:
        for bridge in node.bridges:
            flow.bridges.append(_core_bridge(flow, node, bridge, cluster.seconds))
        for network in node.networks:
            flow.bridges.append(_network(flow, node, network, cluster.seconds))
    return flow


def _core_bridge(flow: Flow, node: NodeView, bridge: BridgeView, seconds: float) -> FlowBridge:
    at = bridge.to or UNTOLD
    found = FlowBridge(BRIDGE, bridge.name, node.node_id, _target(flow, node, at, ""), bridge.connected, bridge.started)
    found.queue, found.waiting, found.why = bridge.queue, bridge.waiting, bridge.why
    if seconds > 0 and bridge.later_acknowledged is not None:
        found.per_second = max(0, bridge.later_acknowledged - bridge.acknowledged) / seconds
    return found


def _network(flow: Flow, node: NodeView, network: NetworkView, seconds: float) -> FlowBridge:
    at = network.address.rpartition("://")[2]
    target = _target(flow, node, at, network.remote_name)
    found = FlowBridge(NETWORK, network.name, node.node_id, target, network.connected)
    found.duplex, found.why = network.duplex is True, network.why
    if seconds > 0 and network.later_sent is not None:
        found.per_second = max(0, network.later_sent - network.sent) / seconds
        if found.duplex and network.later_received is not None:
            found.back_per_second = max(0, network.later_received - network.received) / seconds
    return found


def _target(flow: Flow, node: NodeView, at: str, name: str) -> str:
    """Returns the id of the node at an address, else of the neighbour there, which is added once."""
    for known in flow.nodes:
        if known.at == at or node.members.get(known.node_id) == at:
            return known.node_id
    for other in flow.neighbours:
        if other.at == at and at != UNTOLD:
            other.label = name or other.label
            return other.neighbour_id
    flow.neighbours.append(FlowNeighbour(f"neighbour {len(flow.neighbours) + 1}", name or at, at))
    return flow.neighbours[-1].neighbour_id


def _node(node: NodeView, seconds: float) -> FlowNode:
    sums = node.sums()
    found = FlowNode(node.node_id, node.label, node.at, node.version, node.ours)
    found.queues, found.messages, found.consumers = sums.now.queues, sums.now.messages, sums.now.consumers
    found.clients = node.clients
    pair = node.pair()
    found.passive = [] if pair is None else pair.passive
    if seconds > 0:
        found.in_per_second = max(0, sums.now.added - sums.added) / seconds
        found.out_per_second = max(0, sums.now.acknowledged - sums.acknowledged) / seconds
    return found


def _links(node: NodeView, seconds: float) -> list[FlowLink]:
    """Returns the node's links, then members for which only messages are left here."""
    known: dict[str, LinkView] = {}
    for connection in node.connections:
        known.update(connection.links)
    waiting: dict[str, int] = {}
    for queue in node.queues.values():
        target = queue.forwards_to
        if target is not None:
            waiting[target] = waiting.get(target, 0) + queue.now.messages
    found: list[FlowLink] = []
    for node_id, link in known.items():
        made = FlowLink(node.node_id, node_id, link.linked, waiting=waiting.pop(node_id, 0))
        made.away_since_ms = link.away_since_ms
        if not link.linked:
            made.may_have_arrived = link.may_have_arrived
        if seconds > 0 and link.confirmed is not None and link.later_confirmed is not None:
            made.per_second = max(0, link.later_confirmed - link.confirmed) / seconds
        found.append(made)
    found += [FlowLink(node.node_id, each, False, waiting=n) for each, n in waiting.items() if n]
    return found


def rate(per_second: float | None) -> str:
    """Formats `12/s`; empty if unknown."""
    if per_second is None:
        return ""
    return f"{per_second:,.0f}/s" if per_second >= 10 or per_second == 0 else f"{per_second:.1f}/s"
