"""Findings about what a node knows of itself, on a real broker of the bench."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.disk_limit import DiskLimit
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.survey.findings.alarms import finding_of
from atalanta.survey.findings.groups import replication_findings
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.health import AlarmView
from atalanta.survey.node.health import artemis_limits
from tests.management.management_rig import Desk
from tests.survey.desk import findings


def desk_with(**values: SettingValue) -> Desk:
    settings = AddressSettingsRepository()
    settings.add("orders", values)
    desk = Desk(settings=settings)
    desk.queue("orders")
    return desk


def send(desk: Desk, count: int) -> None:
    session = desk.session()
    for number in range(count):
        session.send(desk.now, desk.message("orders", bytes(1_000)), number)
    desk.settle()


def told(desk: Desk, seconds: float = 0.0) -> list[tuple[str, str, str]]:
    """What the doctor tells of the node: severity, code and text; security is off on the bench."""
    return [
        (each.severity, each.code, each.text)
        for each in findings(desk, seconds)
        if each.code not in ("security_off", "default_cluster_password")
    ]


def test_a_healthy_node() -> None:
    desk = desk_with()
    send(desk, 3)
    assert told(desk, 1.0) == []


def test_a_full_disk() -> None:
    desk = desk_with()
    limit = DiskLimit(desk.broker.config, desk.broker.memory, desk.trace)
    desk.management.status.disk_used = 0.951
    limit.update(0.951, 1_000)
    assert told(desk) == [("error", "disk_full", "the disk is 95.1 % full (max-disk-usage is 90 %): all senders wait")]
    limit.set_exhausted(True)
    assert told(desk) == [
        ("error", "disk_exhausted", "the disk has no room for a new file: messages are refused")
    ]
    limit.set_exhausted(False)
    limit.update(0.5, 1 << 40)
    assert told(desk) == []


def test_an_address_whose_senders_wait() -> None:
    desk = desk_with(address_full_policy="BLOCK", max_size_messages=2)
    send(desk, 2)
    desk.session().request_credits("orders", 10)
    desk.settle()
    (found,) = told(desk)
    assert found == (
        "error",
        "address_blocked",
        "address orders is full (2 messages, max-size-messages is 2): 1 sender waits",
    )


def test_an_address_that_drops() -> None:
    desk = desk_with(address_full_policy="DROP", max_size_messages=2)
    send(desk, 5)
    (found,) = told(desk)
    assert found[:2] == ("error", "address_drops_messages")
    assert "has discarded 3 messages since the start of the node; it is full" in found[2]
    desk.ask("queue.orders", "removeAllMessages")
    (found,) = told(desk)
    assert (found[0], found[2]) == (
        "warning", "address orders has the policy DROP and has discarded 3 messages since the start of the node",
    )  # fmt: skip


def test_an_address_that_refuses() -> None:
    desk = desk_with(address_full_policy="FAIL", max_size_messages=2)
    send(desk, 2)
    (found,) = told(desk)
    assert found[:2] == ("error", "address_refuses_messages") and "policy FAIL" in found[2]


def test_an_address_that_an_operator_blocks() -> None:
    desk = desk_with()
    desk.ask("address.orders", "block")
    (found,) = told(desk)
    assert found == (
        "error", "address_blocked_by_operator", "an operator blocks address orders: its senders wait",
    )  # fmt: skip
    desk.ask("address.orders", "unblock")
    assert told(desk) == []


def test_paused_addresses_and_queues() -> None:
    """A queue is paused without consumers, too; the queues of a paused address are not told one by one."""
    desk = desk_with()
    send(desk, 2)
    desk.ask("queue.orders", "pause")
    assert told(desk) == [("warning", "queue_paused", "queue orders is paused: 2 messages in it wait")]
    desk.ask("address.orders", "pause")
    assert told(desk) == [
        ("warning", "address_paused", "address orders is paused: its queues give out nothing")
    ]


def test_a_full_node() -> None:
    desk = desk_with()
    send(desk, 2)
    desk.broker.memory.limit_bytes = 2_000
    assert [(severity, code) for severity, code, _ in told(desk)] == [("warning", "memory_full")]


@pytest.mark.parametrize("facts", [{}, {"level": 7}])
def test_an_alarm_of_a_later_release(facts: dict[str, object]) -> None:
    found = finding_of(NodeView("h:1", "id", "a"), AlarmView("moon_full", "x", facts))
    assert (found.severity, found.code) == ("warning", "moon_full")
    assert found.text.startswith("moon full x")


def test_a_disk_that_is_nearly_full() -> None:
    desk = desk_with()
    desk.management.status.disk_used = 0.87
    (found,) = told(desk)
    assert found == (
        "warning", "disk_nearly_full", "the disk is 87.0 % full; at 90 % (max-disk-usage) all senders wait",
    )  # fmt: skip


def test_a_real_artemis_by_its_figures() -> None:
    node = NodeView("h:1", "id", "a", disk_used_percent=95.0, disk_limit_percent=90, memory_used_percent=100)
    node.alarms = artemis_limits(node)
    found = [finding_of(node, alarm) for alarm in node.alarms]
    assert [(each.severity, each.code) for each in found] == [("error", "disk_full"), ("warning", "memory_full")]
    assert "take 100 % of global-max-size" in found[1].text
    node.policy, node.replica_sync = "Replication Primary w/quorum voting", False
    (one,) = replication_findings(LiveCluster([node]))
    assert one.code == "no_replica_in_sync"
