"""A grouping handler that a reload adds: groups go to one queue from then on, from whatever node they are sent."""

from __future__ import annotations

import copy

from atalanta.cluster.grouping.config import LOCAL, REMOTE
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.grouping.grouping_rig import group_stored, handler, holders, pins_of, readers_at


def reload(rig: Rig, host: Host, kind: str) -> None:
    node = node_of(host)
    config = copy.copy(node.config)
    config.grouping = handler(kind) if kind else None
    node.on_reload(rig.world.now, config)
    host.flush_later()
    rig.run(0.5)


def test_groups_go_to_one_queue_from_the_reload_on_and_stay_there_over_a_restart(rig: Rig) -> None:
    hosts = rig.cluster(3, mode="STRICT")
    for host in hosts:
        reload(rig, host, LOCAL if host is hosts[0] else REMOTE)
    for number, host in enumerate(hosts * 2):
        group_stored(rig, host, "g", f"m{number}")
    rig.run(1)
    assert len(holders(hosts)) == 1
    pinned = pins_of(hosts[0])
    assert len(pinned) == 1 and len(rig.events("grouping_handler_added")) == 3
    hosts[0].crash()
    hosts[0].start()
    rig.run(1)
    reload(rig, hosts[0], LOCAL)
    assert pins_of(hosts[0]) == pinned


def test_it_waits_for_a_restart_where_groups_are_bound_and_when_it_changes(rig: Rig) -> None:
    hosts = rig.cluster(2)
    readers_at(rig, hosts[:1])
    group_stored(rig, hosts[0], "g", "m0")
    rig.run(1)
    reload(rig, hosts[0], LOCAL)
    assert node_of(hosts[0]).broker.router.grouping is None
    [line] = rig.events("grouping_handler_kept")
    assert "orders" in line and "start the node again" in line
    reload(rig, hosts[1], REMOTE)
    assert node_of(hosts[1]).broker.router.grouping is not None
    for kind in (LOCAL, ""):
        reload(rig, hosts[1], kind)
    assert len(rig.events("grouping_handler_kept")) == 3
