"""Findings about leased queues: who has a queue for itself, and whether that one still lives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from atalanta.survey.findings.cluster_finding import NOTE, WARNING, ClusterFinding
from atalanta.survey.model.cluster import LiveCluster
from atalanta.survey.model.lease import LeaseView
from atalanta.survey.texts import duration_text

RECENT_MS: Final = 300_000  # a refusal: somebody wants the queue now


def lease_findings(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    for node in cluster.nodes:
        for queue in node.queues.values():
            if queue.lease is not None:
                yield leased(node.label, queue.name, queue.lease)


def leased(node: str, queue: str, lease: LeaseView) -> ClusterFinding:
    """Finds a lease: a warning if its owner does not renew it, or if somebody is refused because of it."""
    text = f"queue {queue} is leased to {lease.text()}"
    wanted = 0 <= lease.since_refusal_ms < RECENT_MS
    if lease.refusals > 0:
        text += (
            f". {lease.refusals:,} times a consumer or another group was refused, the last one "
            f"{duration_text(lease.since_refusal_ms)} ago"
        )
    end = f"atalanta queue end-lease {queue}"
    severity, code, remedy = NOTE, "queue_leased", ""
    if lease.silent:
        severity, code = WARNING, "lease_not_renewed"
        remedy = f"start the query of group {lease.group} again, from its checkpoint; or free the queue: {end}"
    elif wanted:
        severity, code = WARNING, "lease_refuses_consumers"
        remedy = f"a queue of its own for the query (multicast), or stop the query; if it is gone: {end}"
    return ClusterFinding(severity, code, node, text, remedy, {"queue": queue, "lease": asdict(lease)})
