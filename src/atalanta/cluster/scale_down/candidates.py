"""Candidates for the target of a scale-down, and the choice among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.discovery.discovery import DiscoveryListener
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.config import ScaleDownConfig
    from atalanta.cluster.connection.cluster_connection import ClusterConnection



class TargetCandidate:
    """A member that may become the target. `node_id` is empty where only a connector is known.

    `trusted`: it has proven that it knows the cluster's password, even if the link that showed it has ended.
    """

    def __init__(self, node_id: str, transport: TransportConfiguration, trusted: bool = False) -> None:
        self.node_id = node_id
        self.transport = transport
        self._trusted = trusted

    def is_trusted(self, now: int, cluster: ClusterConnection) -> bool:
        """Returns whether it has proven that it knows the cluster's password."""
        self._trusted = self._trusted or cluster.trusts(now, self.node_id, self.transport)
        return self._trusted


class DiscoveredNodes(DiscoveryListener):
    """Listens to the discovery group of `<scale-down>` and keeps its nodes."""

    def __init__(self) -> None:
        self.nodes: dict[str, TransportConfiguration] = {}

    def discovered(self, now: int, node_id: str, connector: TransportConfiguration) -> None:
        self.nodes[node_id] = connector

    def undiscovered(self, now: int, node_id: str) -> None:
        self.nodes.pop(node_id, None)


class TargetChoice:
    """Chooses the target of a scale-down.

    `connector` is the connector that an operator named. That connector is preferred to everything in the file.
    """

    def __init__(self, config: ScaleDownConfig, cluster: ClusterConnection) -> None:
        self.config = config
        self.cluster = cluster
        self.connector: str | None = None
        self.heard: DiscoveredNodes | None = None  # while the discovery group is listened to
        self.refused: dict[str, bool] = {}  # candidates that refused or failed in this round

    @property
    def group(self) -> str | None:
        """The discovery group to listen to."""
        config = self.config
        return None if self.connector is not None or config.connectors else config.discovery_group

    def candidates(self) -> list[TargetCandidate]:
        """Returns the possible targets, the best first: linked members before others."""
        config = self.config
        names = [self.connector] if self.connector is not None else config.connectors
        if names and (config.group_name is None or self.connector is not None):
            return self._named(names)
        if self.heard is not None:
            return [
                TargetCandidate(node_id, transport)
                for node_id, transport in self.heard.nodes.items()
                if node_id != self.cluster.local.node_id and self._in_group(node_id)
            ]
        linked: list[TargetCandidate] = []
        others: list[TargetCandidate] = []
        for member in self.cluster.topology.members.values():
            if member.node_id == self.cluster.local.node_id or member.primary is None:
                continue
            if not self._in_group(member.node_id):
                continue
            there = self.cluster.is_linked(member.node_id)
            (linked if there else others).append(TargetCandidate(member.node_id, member.primary))
        return linked + others

    def next(self) -> TargetCandidate | None:
        """Returns the best candidate that was not refused in this round. None ends the round."""
        for candidate in self.candidates():
            if candidate.transport.address not in self.refused:
                return candidate
        self.refused = {}
        return None

    def refuse(self, candidate: TargetCandidate) -> None:
        """Leaves the candidate out until the next round."""
        self.refused[candidate.transport.address] = True

    def reason(self) -> str:
        """Returns the reason why there is no candidate."""
        group = self.config.group_name
        if group is not None and self.connector is None:
            return f"no other member is of the scale-down group '{group}'"
        return "no other member is known"

    def _in_group(self, node_id: str) -> bool:
        wanted = self.config.group_name
        if wanted is None:
            return True
        member = self.cluster.topology.members.get(node_id)
        return member is not None and member.scale_down_group == wanted

    def _named(self, names: list[str]) -> list[TargetCandidate]:
        own = self.cluster.settings.transport(self.cluster.config.connector)
        transports = [self.cluster.settings.transport(name) for name in names]
        return [TargetCandidate("", each) for each in transports if not each.same_target(own)]
