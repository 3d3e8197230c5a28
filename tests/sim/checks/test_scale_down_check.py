"""What the simulator takes for a departure that lost something, or brought it in another order."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.checks.scale_down_check import check_end, check_order, order_at
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.scale_down.scale_down_rig import departure


def holding(rig: Rig, *keys: str) -> Host:
    [host] = rig.cluster(1, mode="OFF")
    client = rig.client(host)
    for key in keys:
        client.publish("orders", key.encode(), ANYCAST, key=key)
    rig.until(lambda: count(host, "orders") == len(keys))
    return host


def test_what_came_from_one_node_keeps_its_order() -> None:
    host = holding(Rig(), "a/1", "b/1", "a/2")
    assert order_at(node_of(host))["orders"] == {"a/1": 0, "b/1": 1, "a/2": 2}
    check_order(host, "n1", {"orders": {"a/0": 0, "a/1": 1, "a/2": 2}, "none": {"c": 1}})
    with pytest.raises(Violation, match="a/2 stands behind a/1 in orders of n0, but stood before it at n1"):
        check_order(host, "n1", {"orders": {"a/2": 0, "a/1": 1}})


def test_who_has_given_all_away_has_nothing() -> None:
    host = holding(Rig(), "a/1")
    part = departure(host)
    part.phase = DONE
    with pytest.raises(Violation, match=r"n0 says that it has given all away, but has \['orders=1'\]"):
        check_end(host, part)
    part.phase = FAILED
    check_end(host, part)  # nobody took it: the node goes on
    part.frozen = True
    part.why = "not done within 10 s"
    check_end(host, part)
    part.why = "1 messages could not be moved"
    with pytest.raises(Violation, match="n0 leaves with .*could not be moved"):
        check_end(host, part)
