"""The model of a running cluster for operators' commands: plain data, filled by cli/cluster/survey.py.

`None` means that a broker does not report the value: Artemis reports less than Atalanta nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.cli.admin.lease_view import LeaseView

ANYCAST: Final = "ANYCAST"
FORWARD_MARK: Final = "internal.sf."


@dataclass
class QueueView:
    """A queue of one node, with the counts of the first sample; `later` has the second."""

    name: str
    address: str
    routing_type: str = ANYCAST
    filter: str | None = None
    messages: int = 0
    consumers: int = 0
    delivering: int = 0
    scheduled: int = 0
    added: int = 0
    acknowledged: int = 0
    internal: bool = False
    temporary: bool = False
    paused: bool = False
    enabled: bool = True
    exclusive: bool = False
    consumers_before_dispatch: int = 0
    oldest_ms: int | None = None  # age of its first message
    addresses: dict[str, int] = field(
        default_factory=dict
    )  # of the messages in a store-and-forward queue
    lease: LeaseView | None = None
    later: QueueView | None = None

    @property
    def waiting(self) -> int:
        """Returns the number of messages that a consumer could get now."""
        return max(0, self.messages - self.delivering - self.scheduled)

    @property
    def forwards_to(self) -> str | None:
        """Returns the node id at the end of a store-and-forward queue's name."""
        return self.name.rpartition(".")[2] if FORWARD_MARK in self.name else None

    @property
    def routing_name(self) -> str:
        """Returns the routing name: queues with one address and routing name share messages between nodes."""
        return self.address if self.routing_type == ANYCAST else self.name


@dataclass
class ConsumerView:
    """A consumer. `ready`: has credit; None if the broker does not report it."""

    id: str
    session: str
    queue: str
    filter: str | None = None
    in_transit: int = 0
    delivered: int = 0
    ready: bool | None = None
    client: str = ""
    later: ConsumerView | None = None


@dataclass
class LinkView:
    """A link from one node to another. `may_have_arrived` and similar values come only from Atalanta nodes."""

    node_id: str
    address: str = ""
    linked: bool = True
    away_since_ms: int | None = None
    waiting: int = 0
    may_have_arrived: int | None = None
    confirmed: int | None = None
    later_confirmed: int | None = None


@dataclass
class ClusterConnectionView:
    """A cluster connection of a node."""

    name: str
    address: str = ""
    load_balancing: str = ""
    max_hops: int = 1
    duplicate_detection: bool = True
    static_connectors: list[str] = field(default_factory=list)
    discovery_group: str | None = None
    links: dict[str, LinkView] = field(default_factory=dict)  # by node id
    failures: dict[str, str] = field(default_factory=dict)  # why a connector fails, by host:port

    def covers(self, address: str) -> bool:
        """Returns whether the address is shared: by prefixes; `!` excludes and wins (ClusterConnectionBridge)."""
        included: list[str] = []
        for part in self.address.split(","):
            prefix = part.strip()
            if prefix.startswith("!"):
                if address.startswith(prefix[1:]):
                    return False
            elif prefix:
                included.append(prefix)
        return not included or any(address.startswith(prefix) for prefix in included)


@dataclass
class NodeView:
    """A node that answered. `at` is its address, `members` its topology: node id -> host:port."""

    at: str
    node_id: str
    name: str = ""
    version: str = ""
    ours: bool = False
    security_enabled: bool = True
    default_cluster_password: bool = False
    members: dict[str, str] = field(default_factory=dict)
    connections: list[ClusterConnectionView] = field(default_factory=list)
    queues: dict[str, QueueView] = field(default_factory=dict)
    consumers: list[ConsumerView] = field(default_factory=list)
    redistribution_delay_ms: dict[str, int] = field(default_factory=dict)  # by address
    prepared: list[str] = field(default_factory=list)  # its prepared transactions, as base64, in both samples
    replication: dict[str, object] | None = None  # of the active node of a replicated group
    unasked: list[str] = field(default_factory=list)  # requests that it refused
    shown: str = ""  # shown instead of its name

    def recognise(self, default_cluster_password: bool) -> None:
        """Records that it is an Atalanta node, which tells whether it has the default cluster password."""
        self.ours = True
        self.default_cluster_password = default_cluster_password

    @property
    def label(self) -> str:
        return self.shown or self.name or self.at

    def linked(self) -> dict[str, LinkView]:
        """Returns the members that the node forwards to, over all its cluster connections."""
        found: dict[str, LinkView] = {}
        for connection in self.connections:
            for node_id, link in connection.links.items():
                if link.linked:
                    found[node_id] = link
        return found

    def consumers_of(self, queue: str) -> list[ConsumerView]:
        return [consumer for consumer in self.consumers if consumer.queue == queue]


@dataclass
class Unreachable:
    """A member of a topology, or a named node, that did not answer."""

    at: str
    why: str
    node_id: str | None = None
    found: str | None = None  # id of another node that answers there


@dataclass
class SharedId:
    """Another node than the one at `at` answers at `other` with the same id."""

    node_id: str
    at: str
    other: str


@dataclass
class LiveCluster:
    """The surveyed nodes. `seconds` is the time between the samples. Of nodes that share an id, `nodes` has only
    the first."""

    nodes: list[NodeView] = field(default_factory=list)
    shared: list[SharedId] = field(default_factory=list)
    unreachable: list[Unreachable] = field(default_factory=list)
    seconds: float = 0.0

    def node(self, node_id: str) -> NodeView | None:
        for node in self.nodes:
            if node.node_id == node_id:
                return node
        return None

    def tell_apart(self) -> None:
        """Labels nodes of the same name by their address (`artemis create` names every node 0.0.0.0)."""
        names = [node.name for node in self.nodes]
        for node in self.nodes:
            if names.count(node.name) > 1:
                node.shown = node.at

    def shorten(self) -> None:
        """Shortens labels for people: removes the suffix that all names share, from a dot on (`.eu.example.com`)."""
        labels = [node.label for node in self.nodes]
        if len(labels) < 2 or any(node.shown or not node.name for node in self.nodes):
            return
        words = [label.split(".")[::-1] for label in labels]
        alike = 0
        while all(len(each) > alike + 1 and each[alike] == words[0][alike] for each in words):
            alike += 1
        for node in self.nodes:
            if alike:
                node.shown = ".".join(node.name.split(".")[:-alike])

    def label(self, node_id: str) -> str:
        """Returns the label of that node."""
        node = self.node(node_id)
        if node is not None:
            return node.label
        for each in self.nodes:
            if node_id in each.members:
                return each.members[node_id]
        for each in self.nodes:
            for connection in each.connections:
                link = connection.links.get(node_id)
                if link is not None and link.address:
                    return link.address
        return node_id
