"""The survey's places, and nodes whose answers make no sense."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from atalanta.client import Connection
from atalanta.client.management import REPLY_QUEUE_PREFIX
from atalanta.management.status import HaStatus, ReplicaStatus
from atalanta.survey.flow import flow_of
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.node.inquiry import NodeInquiry
from atalanta.survey.survey import url_of
from atalanta.survey.texts import duration_text
from tests.management.management_rig import Desk
from tests.survey.desk import inquiry_of, surveyed
from tests.survey.nonsense import NONSENSE, node


def test_names_and_times() -> None:
    assert url_of("host") == ("tcp://host:61616", "")
    assert url_of("host:1") == ("tcp://host:1", "")
    assert url_of("tcp://host?sslEnabled=true") == ("tcp://host:61616", "sslEnabled=true")
    assert url_of("tcp://[::1]:5") == ("tcp://[::1]:5", "")
    assert url_of("tcp://[::1]") == ("tcp://[::1]:61616", "")
    assert [
        duration_text(ms) for ms in (None, 5_000, 119_000, 120_000, 7_200_000, 200_000_000)
    ] == [
        "an unknown time",
        "5 s",
        "119 s",
        "2 min",
        "2 h",
        "2 days",
    ]


@pytest.mark.parametrize("answer", NONSENSE)
def test_what_a_node_could_not_be_asked_is_kept(answer: object) -> None:
    class Known:
        topology: list[Any] = []

    view = NodeView("broker2:61616", "id")
    inquiry = NodeInquiry(view, cast(Connection, Known()), node(answer), details=True, queues=True)
    asyncio.run(inquiry.fill())
    asyncio.run(inquiry.sample_again())
    assert all("\n" not in line and len(line) < 250 for line in view.unasked)
    if isinstance(answer, str) and answer != "null":
        assert any("unexpected answer" in line for line in view.unasked)


def test_what_a_node_says_of_itself() -> None:
    desk = Desk()
    desk.queue("orders")
    desk.fill("orders", 3)
    desk.management.status.disk_used = 0.25
    node = surveyed(desk, 1.0).nodes[0]
    assert (node.name, node.ours, node.policy) == (desk.broker.config.name, True, "Primary Only")
    assert (node.disk_used_percent, node.memory_used_percent, node.clients) == (25.0, 0, 0)
    assert node.queues["orders"].messages == 3 and node.queues["orders"].later is not None
    assert node.bridges == [] and node.pair() is None
    assert node.networks == [] and node.unasked == []


def test_a_group_and_its_followers() -> None:
    desk = Desk()
    replica = ReplicaStatus("b-00000002", True, False, 0, 0)
    desk.management.status.ha = HaStatus(
        "Replication Primary w/lock manager", epoch=3, replicas=(replica,), connected=("b-00000002",)
    )
    pair = surveyed(desk).nodes[0].pair()
    assert pair is not None and (pair.kind, pair.epoch) == ("replication", 3)
    (passive,) = pair.passive
    assert (passive.name, passive.in_sync, passive.connected, passive.behind) == ("b-00000002", True, True, 0)


def test_a_pair_with_a_shared_store() -> None:
    node = NodeView("h1:1", "id", shared_store=True, epoch=2, backups={"id": "h2:1"})
    pair = node.pair()
    assert pair is not None and (pair.kind, pair.passive[0].at) == ("shared store", "h2:1")


def test_a_picture_needs_no_list_of_queues() -> None:
    """The sums that a node tells are those over its queues."""
    desk = Desk()
    for name in ("orders", "$.artemis.internal.sf.test.id-b", f"{REPLY_QUEUE_PREFIX}1", "notif.1.ActiveMQServerImpl_x"):
        own = not name.startswith("orders") and "internal" not in name
        desk.queue(name, temporary=own, durable=not own, internal="internal" in name)
        desk.fill(name, 2, durable=False)
    inquiry = inquiry_of(desk, details=False)
    asyncio.run(inquiry.fill())
    desk.fill("orders", 1)
    asyncio.run(inquiry.sample_again())
    node = inquiry.node
    assert list(node.queues) == ["$.artemis.internal.sf.test.id-b"] and node.unasked == []
    full = surveyed(desk).nodes[0]
    assert full.totals is None and "orders" in full.queues
    shown, told = full.sums(), node.sums().now  # the answers of the desk count as messages, too
    assert (told.queues, told.messages, told.consumers) == (shown.queues, shown.messages, shown.consumers) == (2, 3, 0)
    flow = flow_of(LiveCluster([node], seconds=2.0)).nodes[0]
    assert (flow.messages, flow.queues) == (3, 2) and flow.in_per_second is not None and flow.in_per_second >= 0.5
