"""message-load-balancing: who gets ten messages that are sent at the first of two nodes, by mode and by consumers."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Client, Rig, count, remote_consumers
from tests.cluster.shapes import numbers

MODES = ["OFF", "STRICT", "ON_DEMAND", "OFF_WITH_REDISTRIBUTION"]


def played(mode: str, delay_ms: int, here: bool, there: bool) -> tuple[list[int], list[int]]:
    """(got by the consumer, left in the queue) at the first and at the second node."""
    rig = Rig()
    hosts = rig.cluster(2, mode=mode, delay_ms=delay_ms)
    consumers: list[Client | None] = [None, None]
    for index, wanted in enumerate((here, there)):
        if wanted:
            consumer = rig.consuming(hosts[index])
            consumers[index] = consumer
    if there:
        rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    rig.run(0.5)
    rig.stored(hosts[0], "orders", [b"%d" % number for number in range(10)], ANYCAST)
    rig.run(2)
    got = [0 if each is None else len(each.bodies) for each in consumers]
    left = [count(host, "orders") for host in hosts]
    assert sum(got) + sum(left) == 10
    return got, left


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        ("OFF", [10, 0]),
        ("STRICT", [5, 5]),
        ("ON_DEMAND", [10, 0]),
        ("OFF_WITH_REDISTRIBUTION", [10, 0]),
    ],
)
def test_nobody_consumes(mode: str, left: list[int]) -> None:
    assert played(mode, 0, False, False) == ([0, 0], left)


@pytest.mark.parametrize(
    ("mode", "delay_ms", "got", "left"),
    [
        ("OFF", 0, [0, 0], [10, 0]),
        ("STRICT", 0, [0, 5], [5, 0]),  # and nothing is redistributed
        ("ON_DEMAND", -1, [0, 10], [0, 0]),
        ("OFF_WITH_REDISTRIBUTION", -1, [0, 0], [10, 0]),
        ("OFF_WITH_REDISTRIBUTION", 0, [0, 10], [0, 0]),
    ],
)
def test_only_the_other_node_consumes(
    mode: str, delay_ms: int, got: list[int], left: list[int]
) -> None:
    assert played(mode, delay_ms, False, True) == (got, left)


@pytest.mark.parametrize(
    ("mode", "got"),
    [
        ("OFF", [10, 0]),
        ("STRICT", [5, 5]),
        ("ON_DEMAND", [5, 5]),
        ("OFF_WITH_REDISTRIBUTION", [10, 0]),
    ],
)
def test_both_consume(mode: str, got: list[int]) -> None:
    assert played(mode, 0, True, True) == (got, [0, 0])


@pytest.mark.parametrize("mode", MODES)
def test_only_this_node_consumes(mode: str) -> None:
    expected = ([5, 0], [0, 5]) if mode == "STRICT" else ([10, 0], [0, 0])
    assert played(mode, 0, True, False) == expected


@pytest.mark.parametrize("mode", MODES)
def test_subscriptions_of_other_names_each_get_a_copy_in_every_mode(rig: Rig, mode: str) -> None:
    first = rig.node(queues=[queue("mine", "prices", MULTICAST)], mode=mode)
    second = rig.node(queues=[queue("yours", "prices", MULTICAST)], mode=mode)
    rig.form(first, second)
    rig.sender(first, "prices", [b"%d" % number for number in range(5)], MULTICAST)
    reader = rig.consuming(second, "yours")
    rig.until(lambda: len(reader.bodies) == 5)
    assert reader.bodies == numbers(range(5)) and count(first, "mine") == 5


@pytest.mark.parametrize("mode", MODES)
def test_without_a_queue_here_the_other_node_has_it(rig: Rig, mode: str) -> None:
    """Only what is for one of several stays with OFF: it is made here then, as a sender may."""
    first = rig.node(queues=[queue("other", "other", ANYCAST)], mode=mode)
    second = rig.node(mode=mode)
    rig.form(first, second)
    rig.sender(first, "prices", [b"%d" % number for number in range(4)], MULTICAST)
    rig.until(lambda: count(second, "archive") == 4)
