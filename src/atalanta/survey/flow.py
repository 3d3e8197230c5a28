"""The model of a live cluster for `atalanta topology`: nodes and directed links, with rates and backlog."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import LinkView


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


@dataclass
class Flow:
    """The state of a whole cluster at one time."""

    nodes: list[FlowNode] = field(default_factory=list)
    links: list[FlowLink] = field(default_factory=list)

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def between(self, source: str, target: str) -> FlowLink | None:
        for link in self.links:
            if (link.source, link.target) == (source, target):
                return link
        return None

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
    for node in sorted(cluster.nodes, key=lambda each: each.label):
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
    return flow


def _node(node: NodeView, seconds: float) -> FlowNode:
    shown = [each for each in node.queues.values() if each.shown]
    found = FlowNode(node.node_id, node.label, node.at, node.version, node.ours)
    found.queues = len(shown)
    found.messages = sum(each.now.messages for each in shown)
    found.consumers = sum(each.now.consumers for each in shown)
    if seconds > 0:
        found.in_per_second = sum(max(0, each.now.added - each.added) for each in shown) / seconds
        found.out_per_second = (
            sum(max(0, each.now.acknowledged - each.acknowledged) for each in shown) / seconds
        )
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
