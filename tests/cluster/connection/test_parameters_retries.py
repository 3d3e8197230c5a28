"""Time limits and attempts of a cluster connection's links."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND
from atalanta.wire.core.packets.cluster import ClusterConnect
from atalanta.wire.core.packets.connection import Ping
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, count, node_of, waiting
from tests.cluster.parameters import Change, dials, having, pauses


# -- call-timeout, call-failover-timeout ---------------------------------------------------------------
class Deaf(RawPeer):
    """Answers pings, and the login as long as it `hears`; never opens a session."""

    def keep(self) -> None:
        for conn in self.conns:
            if conn in self.framers:
                self.send(Ping(6_000), 0, conn)
        self.rig.world.at(SECOND, self.keep)

    def on_closed(self, conn: int, why: str) -> None:
        self.framers.pop(conn, None)
        super().on_closed(conn, why)


def test_call_timeout_ends_a_link_that_does_not_open(rig: Rig) -> None:
    peer = Deaf(rig, "n9")
    peer.listen()
    rig.node(peers=[9], change=having(call_timeout_ms=5_000)).start()
    peer.keep()
    rig.until(lambda: peer.got(ClusterConnect))
    start = rig.world.now
    rig.until(lambda: len(peer.got(ClusterConnect)) > 1)
    assert 5 <= (rig.world.now - start) / SECOND <= 8


@pytest.mark.parametrize(("timeout_ms", "dialled_again"), [(4_000, True), (-1, False)])
def test_call_failover_timeout_is_for_links_that_were_lost(
    rig: Rig, timeout_ms: int, dialled_again: bool
) -> None:
    """n1 dies, and something that never answers takes its place; it pings, so it is not silent."""
    hosts = rig.cluster(
        2, change=having(call_timeout_ms=60_000, call_failover_timeout_ms=timeout_ms)
    )
    hosts[1].crash()
    rig.run(1)
    peer = Deaf(rig, "n1")
    peer.listen()
    peer.keep()
    found = dials(rig, hosts[0], ".bridge.")
    rig.run(15)
    assert (len(found) > 1) == dialled_again


# -- retries ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("interval", "multiplier", "longest", "expected"),
    [
        (500, 1.0, 2_000, [500] * 6),  # the defaults
        (100, 2.0, 1_000, [200, 400, 800, 1_000, 1_000, 1_000]),
        (300, 1.5, 2_000, [450, 675, 1_010, 1_510, 2_000, 2_000]),
        (3_000, 1.0, 2_000, [2_000, 2_000]),  # max-retry-interval rules, as in BridgeImpl
        (200, 0.0, 2_000, [200, 200, 200]),  # no growth: the interval itself
    ],
)
def test_retry_interval_multiplier_and_max_retry_interval(
    rig: Rig, interval: int, multiplier: float, longest: int, expected: list[int]
) -> None:
    change = having(
        retry_interval_ms=interval,
        retry_interval_multiplier=multiplier,
        max_retry_interval_ms=longest,
    )
    hosts = rig.cluster(2, change=change)
    rig.run(3)
    found = dials(rig, hosts[1], ".bridge.")
    hosts[0].crash()
    rig.run(9)
    near = [abs(a - b) <= 20 for a, b in zip(pauses(found), expected, strict=False)]
    assert len(near) >= len(expected) - 2 and all(near), pauses(found)
    hosts[0].start()
    rig.formed()


def cut_off(rig: Rig, change: Change) -> list[Host]:
    """Three nodes; n1 and n2 hear of each other through n0, but cannot reach each other."""
    rig.network.block("n1", "n2")
    rig.network.block("n2", "n1")
    for peers in ([], [0], [0]):
        rig.node(peers=peers, change=change).start()
    rig.until(lambda: all(len(cluster_of(host).topology.members) == 3 for host in rig.hosts))
    return rig.hosts


def test_initial_connect_attempts(rig: Rig) -> None:
    hosts = cut_off(rig, having(initial_connect_attempts=3))
    found = dials(rig, hosts[1], ".bridge.")
    rig.run(30)
    assert [host for _, host in found].count("n2") <= 4
    assert rig.events("n1 cluster_gave_up node=node-2")
    assert sorted(cluster_of(hosts[1]).peers) == ["node-0"]
    assert sorted(cluster_of(hosts[0]).peers) == ["node-1", "node-2"]
    rig.network.heal()
    hosts[2].crash()
    rig.run(7)
    hosts[2].start()  # news of it: a new beginning
    rig.formed()


def test_without_a_limit_initial_attempts_go_on(rig: Rig) -> None:
    hosts = cut_off(rig, having())
    rig.run(30)
    assert not rig.events("cluster_gave_up")
    rig.network.heal()
    rig.formed()
    assert len(hosts) == 3


def test_after_reconnect_attempts_the_node_is_out_and_gets_nothing(rig: Rig) -> None:
    """Neither what is sent now nor what is redistributed; what was on its way waits for its return."""
    hosts = rig.cluster(2, change=having(reconnect_attempts=3, retry_interval_ms=100), delay_ms=0)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    found = dials(rig, hosts[0], ".bridge.")
    hosts[1].crash()
    consumer.kill()
    rig.run(8)
    assert len(found) == 3
    assert rig.events("n0 cluster_gave_up node=node-1")
    assert cluster_of(hosts[0]).peers == {}
    assert node_of(hosts[0]).broker.addresses["orders"].remotes() == []
    rig.stored(hosts[0], "orders", [b"%d" % number for number in range(4)], ANYCAST)
    assert count(hosts[0], "orders") == 4 and waiting(hosts[0], "node-1") == 0
    hosts[1].start()
    rig.formed()
    consumer.start()
    rig.until(lambda: consumer.ready)
    consumer.consume("orders")
    rig.until(lambda: len(consumer.bodies) == 4)
