"""What `atalanta doctor` tells of leased queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atalanta.client import Fenced
from atalanta.client.blocking import connect
from atalanta.survey.findings.cluster_finding import ClusterFinding
from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.lease import LeaseView
from atalanta.survey.model.queues import ConsumerView, QueueView
from tests.cli.cluster_nodes import cluster


def leased(**values: Any) -> LiveCluster:
    """A node whose queue `orders` has messages, and is leased to a query that renewed its lease just now."""
    usual: dict[str, Any] = {
        "group": "spark", "owner": "vm/24/ab", "epoch": 3, "age_ms": 600_000, "since_renewal_ms": 10_000,
        "ends_in_ms": 290_000, "timeout_ms": 300_000, "refusals": 0, "since_refusal_ms": -1, "unacknowledged_max": 5,
    }  # fmt: skip
    node = NodeView("h1:61616", "id-a", "a")
    lease = LeaseView(**(usual | values))
    node.queues["orders"] = QueueView("orders", "orders", messages=5, oldest_ms=180_000, lease=lease)
    return LiveCluster([node])


def the(found: LiveCluster, code: str) -> ClusterFinding:
    (finding,) = [each for each in diagnosed(found, "u", "p") if each.code == code]
    return finding


def test_a_leased_queue_is_noted_with_owner_and_age() -> None:
    finding = the(leased(), "queue_leased")
    assert (finding.severity, finding.node, finding.remedy) == ("note", "a", "")
    assert finding.text == (
        "queue orders is leased to group spark of vm/24/ab (epoch 3) for 10 min, renewed 10 s ago; "
        "without a renewal it ends in 4 min"
    )


@pytest.mark.parametrize(
    ("timeout_ms", "since_ms", "silent"), [(300_000, 59_000, False), (300_000, 95_000, True), (6_000, 4_500, True)]
)
def test_a_lease_whose_owner_is_silent(timeout_ms: int, since_ms: int, silent: bool) -> None:
    found = leased(timeout_ms=timeout_ms, since_renewal_ms=since_ms, ends_in_ms=timeout_ms - since_ms)
    finding = the(found, "lease_not_renewed" if silent else "queue_leased")
    assert finding.severity == ("warning" if silent else "note")
    assert ("its owner has ended or is cut off" in finding.text) is silent
    if silent:
        assert f"not renewed for {since_ms // 1000} s" in finding.text
        assert "from its checkpoint" in finding.remedy
        assert finding.remedy.endswith("atalanta queue end-lease orders")


@pytest.mark.parametrize(
    ("since_ms", "code", "severity"),
    [(4_000, "lease_refuses_consumers", "warning"), (3_600_000, "queue_leased", "note")],
)
def test_a_lease_that_keeps_consumers_away(since_ms: int, code: str, severity: str) -> None:
    finding = the(leased(refusals=7, since_refusal_ms=since_ms), code)
    assert finding.severity == severity
    assert ". 7 times a consumer or another group was refused, the last one " in finding.text


def test_messages_of_a_leased_queue_are_not_stranded() -> None:
    """A consumer at another node would take them, but the owner of the lease reads them."""
    found = leased()
    other = NodeView("h2:61616", "id-b", "b")
    other.queues["orders"] = QueueView("orders", "orders", consumers=1)
    other.consumers.append(ConsumerView("0", "s", "orders"))
    found.nodes.append(other)
    assert "stranded" not in [each.code for each in diagnosed(found, "u", "p")]
    found.nodes[0].queues["orders"].lease = None
    assert "stranded" in [each.code for each in diagnosed(found, "u", "p")]


@pytest.mark.process
def test_a_lease_of_a_real_node(tmp_path: Path) -> None:
    with cluster(tmp_path, 1, login="") as (node,), connect(f"tcp://{node.at}") as client:
        client.logview("orders").lease("spark", "vm/24/ab", 60_000)
        for _ in range(2):
            with pytest.raises(Fenced):
                client.consumer("orders").receive(1)
        found = json.loads(node.cli("doctor", node.at, "--wait", "0", "--json", status=1))
    (finding,) = [one for one in found["findings"] if one["code"] == "lease_refuses_consumers"]
    assert (finding["queue"], finding["lease"]["owner"], finding["lease"]["refusals"]) == ("orders", "vm/24/ab", 2)
