"""The diagnosis of a surveyed cluster: all its findings."""

from __future__ import annotations

from atalanta.survey.findings.alarms import alarm_findings
from atalanta.survey.findings.bridges import forwarding_findings
from atalanta.survey.findings.cluster_finding import ClusterFinding, sorted_findings
from atalanta.survey.findings.events import event_findings
from atalanta.survey.findings.groups import replication_findings
from atalanta.survey.findings.leases import lease_findings
from atalanta.survey.findings.members import member_findings
from atalanta.survey.findings.messages import message_findings
from atalanta.survey.model.cluster import LiveCluster


def diagnosed(cluster: LiveCluster, user: str | None, password: str | None) -> list[ClusterFinding]:
    """Returns all findings, the worst first. `user` and `password` are the operator's."""
    return sorted_findings([
        *message_findings(cluster),
        *lease_findings(cluster),
        *member_findings(cluster, user, password),
        *replication_findings(cluster),
        *alarm_findings(cluster),
        *forwarding_findings(cluster),
        *event_findings(cluster),
    ])


def as_json(cluster: LiveCluster, found: list[ClusterFinding]) -> dict[str, object]:
    return {
        "nodes": [
            {
                "node_id": node.node_id,
                "name": node.name,
                "at": node.at,
                "version": node.version,
                "atalanta": node.ours,
            }
            for node in cluster.nodes
        ],
        "unreachable": [
            {"at": each.at, "why": each.why, "node_id": each.node_id}
            for each in cluster.unreachable
        ],
        "findings": [each.as_json() for each in found],
    }
