"""The surveyed nodes of a cluster, and what each of them says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.survey.model.groups import PairView, PassiveView, ReplicationView
from atalanta.survey.model.health import AlarmView, EventView
from atalanta.survey.model.links import BridgeView, ClusterConnectionView, LinkView, NetworkView
from atalanta.survey.model.queues import ClusterQueue, ConsumerView, QueueView, TotalsView

# Why a member was not asked that only a topology names.
NOT_ADMITTED: Final = "its address comes from the topology alone, and nobody has agreed to log in there"


@dataclass
class NodeView:
    """A node that answered. `at` is its address, `members` its topology: node id -> host:port."""

    at: str
    node_id: str
    name: str = ""
    version: str = ""
    ours: bool = False
    """An Atalanta node."""
    security_enabled: bool = True
    default_cluster_password: bool = False
    started: bool = True
    policy: str = ""
    """Its high availability in Artemis' words: `Primary Only`, `Shared Store Primary`, `Replication Primary …`."""
    shared_store: bool = False
    epoch: int | None = None
    uptime_ms: int | None = None
    answer_ms: float | None = None
    """How long it took to answer a small question of management."""
    clients: int | None = None
    """Its connections, those of other members and of this survey too."""
    sessions: int | None = None
    disk_used_percent: float | None = None
    disk_limit_percent: int | None = None
    """Its max-disk-usage; -1 for none."""
    memory_used_percent: int | None = None
    members: dict[str, str] = field(default_factory=dict)
    backups: dict[str, str] = field(default_factory=dict)
    """host:port of the passive member of each pair, by the node id of the pair."""
    connections: list[ClusterConnectionView] = field(default_factory=list)
    bridges: list[BridgeView] = field(default_factory=list)
    networks: list[NetworkView] = field(default_factory=list)
    totals: TotalsView | None = None
    """The sums over its queues as it tells them; without them they are those of `queues`."""
    queues: dict[str, QueueView] = field(default_factory=dict)
    """Without details of an Atalanta node only its store-and-forward queues."""
    consumers: list[ConsumerView] = field(default_factory=list)
    redistribution_delay_ms: dict[str, int] = field(default_factory=dict)
    """By address."""
    prepared: list[str] = field(default_factory=list)
    """Its prepared transactions, as base64, in both samples."""
    waiting: list[str] | None = None
    """host:port of the processes that wait for its shared store; None if it does not tell."""
    replication: ReplicationView | None = None
    """The replication of an active node of a replicated group."""
    alarms: list[AlarmView] = field(default_factory=list)
    events: list[EventView] = field(default_factory=list)
    """The events of its log, the newest first; a real Artemis tells none."""
    clock_ms: int | None = None
    """The time since 1970 by its clock when it was asked."""
    asked_ms: int | None = None
    """The same instant by the clock of the survey."""
    replica_sync: bool | None = None
    """Whether a replica has everything, as a real Artemis tells it."""
    unasked: list[str] = field(default_factory=list)
    """Requests that it refused, with the reasons: what is wrong there is not seen."""
    unsupported: list[str] = field(default_factory=list)
    """Requests that its release does not know."""
    shown: str = ""
    """Shown instead of its name."""

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

    def age_ms(self, event: EventView) -> int:
        """Returns how long ago an event was, by the node's clock."""
        return 0 if self.clock_ms is None else max(0, self.clock_ms - event.time_ms)

    def pair(self) -> PairView | None:
        """Returns the pair or group that it is the active member of, as far as it is told; None for a node alone."""
        if self.replication is not None:
            return PairView(
                self.node_id,
                "replication",
                self.replication.epoch,
                [
                    PassiveView(
                        each.member,
                        each.at,
                        each.in_sync,
                        each.asynchronous,
                        each.connected,
                        each.behind,
                    )
                    for each in self.replication.replicas
                ],
            )
        at = self.backups.get(self.node_id)
        if at is None and not self.shared_store:
            return None
        kind = "shared store" if self.shared_store else ""
        if self.waiting is None:  # a backup that has left stays announced, so it may be away
            return PairView(self.node_id, kind, self.epoch, [] if at is None else [PassiveView(at, at)])
        passive = [PassiveView(place, place, connected=True) for place in self.waiting]
        if at is not None and at not in self.waiting:
            passive.append(PassiveView(at, at, connected=False))
        return PairView(self.node_id, kind, self.epoch, passive)

    def sums(self) -> TotalsView:
        """Returns the sums over its queues that are load."""
        if self.totals is not None:
            return self.totals
        shown = [each for each in self.queues.values() if each.shown]
        found = _sums(shown)
        found.later = _sums([each.now for each in shown])
        return found

    def consumers_of(self, queue: str) -> list[ConsumerView]:
        return [consumer for consumer in self.consumers if consumer.queue == queue]


def _sums(queues: list[QueueView]) -> TotalsView:
    return TotalsView(
        len(queues),
        sum(each.messages for each in queues),
        sum(each.consumers for each in queues),
        sum(each.added for each in queues),
        sum(each.acknowledged for each in queues),
    )


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

    def pairs(self) -> list[PairView]:
        """Returns the pairs and groups whose active members were asked."""
        return [pair for node in self.nodes if (pair := node.pair()) is not None]

    def passive_places(self) -> set[str]:
        """Returns host:port of the passive members of all pairs and groups: they do not answer, and need not."""
        places = {place for node in self.nodes for place in node.backups.values()}
        return places | {one.at for pair in self.pairs() for one in pair.passive if one.at is not None}

    def queues(self) -> list[ClusterQueue]:
        """Returns the queues over all nodes, by address and name; without internal ones."""
        found: dict[tuple[str, str], ClusterQueue] = {}
        for node in self.nodes:
            for queue in node.queues.values():
                if queue.shown:
                    key = (queue.address, queue.name)
                    known = found.setdefault(key, ClusterQueue(queue.name, queue.address, queue.routing_type))
                    known.by_node[node.node_id] = queue
        return [found[key] for key in sorted(found)]

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
