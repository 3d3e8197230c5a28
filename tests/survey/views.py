"""Clusters as a survey shows them, made by hand, and the findings about them."""

from __future__ import annotations

import time
from typing import Any

from atalanta.survey.findings.cluster_finding import ClusterFinding
from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import ClusterConnectionView, LinkView
from atalanta.survey.model.queues import ConsumerView, QueueView

FORWARD = "$.artemis.internal.sf.test."


def two_nodes() -> LiveCluster:
    """a and b, linked both ways, in order."""
    members = {"id-a": "h1:61616", "id-b": "h2:61616"}
    nodes = []
    for name, host, other in (("a", "h1", "id-b"), ("b", "h2", "id-a")):
        connection = ClusterConnectionView("test", load_balancing="ON_DEMAND")
        connection.static_connectors = ["other"]
        connection.links[other] = LinkView(other, members[other])
        node = NodeView(f"{host}:61616", f"id-{name}", name, members=dict(members))
        node.connections.append(connection)
        nodes.append(node)
    return LiveCluster(nodes)


def put(node: NodeView, name: str, **values: Any) -> QueueView:
    queue = QueueView(name, values.pop("address", name), **values)
    node.queues[name] = queue
    return queue


def stranding() -> LiveCluster:
    """Five orders at a, a consumer at b."""
    found = two_nodes()
    put(found.nodes[0], "orders", messages=5, oldest_ms=180_000)
    put(found.nodes[1], "orders", consumers=1)
    found.nodes[1].consumers.append(ConsumerView("0", "s", "orders"))
    return found


def the(found: LiveCluster, code: str, user: str = "u", password: str = "p") -> ClusterFinding:
    (finding,) = [each for each in diagnosed(found, user, password) if each.code == code]
    return finding


def flowing() -> LiveCluster:
    """a forwards 20/s to b; c is away, 7 are parked for it at a; two seconds between the looks."""
    members = {"id-a": "h1:1", "id-b": "h2:1", "id-c": "h3:1"}
    a = NodeView("h1:1", "id-a", "a", "0.1.0", ours=True, members=dict(members))
    b = NodeView("h2:1", "id-b", "b<&>", "2.44.0", members=dict(members))
    a.connections.append(
        ClusterConnectionView(
            "test",
            links={
                "id-b": LinkView("id-b", confirmed=100, later_confirmed=140),
                "id-c": LinkView(
                    "id-c",
                    linked=False,
                    away_since_ms=int(time.time() * 1_000) - 180_000,
                    may_have_arrived=2,
                ),
            },
        )
    )
    b.connections.append(ClusterConnectionView("test", links={"id-a": LinkView("id-a")}))
    later = QueueView("orders", "orders", messages=30, consumers=2, added=150, acknowledged=90)
    a.queues["orders"] = QueueView(
        "orders", "orders", messages=50, added=100, acknowledged=20, later=later
    )
    a.queues[FORWARD + "id-c"] = QueueView(FORWARD + "id-c", "x", messages=7, internal=True)
    return LiveCluster([b, a], seconds=2.0)
