"""Subscriptions whose addresses overlap, at another member: each of them gets each message once.

A node sends one copy to a peer, with the ids of all bindings there: of two copies the peer would drop one as a repeat.
"""

from __future__ import annotations

import pytest

from atalanta.cluster.grouping.config import LOCAL, REMOTE
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.divert_config import PASS, DivertConfig
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, linked, node_of, waiting
from tests.cluster.connection.overlapping_rig import CORE, NEWS, PATTERNS, PROTOCOLS, OverlappingRig
from tests.cluster.grouping.grouping_rig import handler
from tests.cluster.pair_rig import announce


@pytest.fixture
def rig() -> OverlappingRig:
    return OverlappingRig()


def divert(host: Host) -> None:
    """Messages to `tip` go to the overlapping addresses, from now on."""
    node_of(host).broker.diverts.create(DivertConfig("tips", "tip", NEWS, PASS), False)


@pytest.mark.parametrize("address", [NEWS, "tip"])
@pytest.mark.parametrize("sender", [0, 1])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_subscribers_at_another_member_and_at_both(
    rig: OverlappingRig, protocol: str, sender: int, address: str
) -> None:
    hosts = rig.cluster(2)
    divert(hosts[sender])
    there = rig.subscribers(hosts[1], protocol)
    rig.bound(hosts[0], 3)
    rig.send(hosts[sender], protocol, "1", "2", address=address)
    rig.arrived(there, "1", "2")
    here = rig.subscribers(hosts[0], protocol)
    rig.bound(hosts[1], 6)
    rig.send(hosts[sender], protocol, "3", address=address)
    rig.arrived(there, "1", "2", "3")
    rig.arrived(here, "3")


@pytest.mark.parametrize("crashed", [0, 1])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_after_a_crash_of_either_member(rig: OverlappingRig, protocol: str, crashed: int) -> None:
    hosts = rig.cluster(2)
    there = rig.subscribers(hosts[1], protocol)
    rig.bound(hosts[0], 3)
    rig.send(hosts[0], protocol, "before")
    rig.arrived(there, "before")
    hosts[crashed].crash()
    rig.run(1)
    if crashed == 1:
        rig.send(hosts[0], protocol, "meanwhile")
        assert waiting(hosts[0], "node-1") == 1  # one copy for all of them
        hosts[0].crash()
        hosts[0].start()
    hosts[crashed].start()
    rig.formed()
    node_of(hosts[1]).validate()
    rig.until(lambda: waiting(hosts[0], "node-1") == 0)
    if crashed == 1:
        for each in there:
            each.connect(hosts[1])
    rig.send(hosts[0], protocol, "after")
    rig.arrived(there, "meanwhile" if crashed == 1 else "before", "after")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_after_a_takeover(rig: OverlappingRig, protocol: str) -> None:
    sender = rig.node()
    active = rig.node()
    rig.form()
    backup = rig.node(peers=[0], backup_of=1)
    announce(rig, active, backup)
    there = rig.subscribers(active, protocol)
    rig.bound(sender, 3)
    rig.send(sender, protocol, "before")
    rig.arrived(there, "before")
    active.crash()
    rig.run(1)
    rig.send(sender, protocol, "meanwhile")
    backup.take_over(active)
    rig.until(lambda: linked(sender) == 1 and linked(backup) == 1)
    node_of(backup).validate()
    for each in there:
        each.connect(backup)
    rig.send(sender, protocol, "after")
    rig.arrived(there, "meanwhile", "after")
    rig.send(backup, protocol, "from there")
    rig.arrived(there, "meanwhile", "after", "from there")


@pytest.mark.parametrize("group", ["", "g"])
def test_anycast_queues_of_overlapping_addresses(group: str) -> None:
    """The same names at both members: one of them gets each message, and the rest is moved to the consumers."""
    rig = Rig()
    queues = [queue(f"of {pattern}", pattern, ANYCAST) for pattern in PATTERNS]
    hosts = [
        rig.node(queues=queues, delay_ms=0, grouping=handler(LOCAL if index == 0 else REMOTE) if group else None)
        for index in range(2)
    ]
    rig.form()
    more = {"_AMQ_GROUP_ID": group} if group else {}
    readers = [rig.consuming(hosts[1], f"of {pattern}", known_at=hosts[0]) for pattern in PATTERNS]
    rig.stored(hosts[0], NEWS, [b"%d" % number for number in range(20)], ANYCAST, **more)
    rig.until(lambda: all(len(each.bodies) >= 20 for each in readers))
    rig.run(2)
    assert [each.bodies for each in readers] == [[b"%d" % number for number in range(20)]] * 3


def test_redistribution_of_overlapping_queues() -> None:
    rig = Rig()
    queues = [queue(f"of {pattern}", pattern, ANYCAST) for pattern in PATTERNS]
    hosts = rig.cluster(2, queues=queues, delay_ms=0)
    rig.stored(hosts[0], NEWS, [b"%d" % number for number in range(20)], ANYCAST)
    readers = [rig.consuming(hosts[1], f"of {pattern}") for pattern in PATTERNS]
    rig.until(lambda: all(len(each.bodies) >= 20 for each in readers))
    rig.run(2)
    assert [sorted(each.bodies) for each in readers] == [sorted(b"%d" % number for number in range(20))] * 3


def test_message_groups_of_a_handler_keep_every_subscription(rig: OverlappingRig) -> None:
    """Each subscription decides for itself, so the first message of a group waits for several decisions."""
    hosts = [rig.node(grouping=handler(LOCAL if index == 0 else REMOTE)) for index in range(2)]
    rig.form()
    there = rig.subscribers(hosts[1], CORE)
    rig.bound(hosts[0], 3)
    for host in hosts:
        rig.stored(host, NEWS, [f"{host.name} {number}".encode() for number in range(3)], MULTICAST, _AMQ_GROUP_ID="g")
    rig.arrived(there, *(f"{host.name} {number}" for host in hosts for number in range(3)))


def test_members_behind_another_one(rig: OverlappingRig) -> None:
    """The node between gets one copy for its own queues and for those of the next one, and sends one on."""

    def direct(config: object) -> None:
        config.max_hops = 2  # type: ignore[attr-defined]
        config.allow_direct_connections_only = True  # type: ignore[attr-defined]

    for peers in ([1], [0, 2], [1]):
        rig.node(peers=peers, change=direct)
    for host in rig.hosts:
        host.start()
    rig.run(5)
    between = rig.subscribers(rig.hosts[1], CORE)
    behind = rig.subscribers(rig.hosts[2], CORE)
    rig.bound(rig.hosts[0], 6)
    rig.send(rig.hosts[0], CORE, "1", "2", "3")
    rig.arrived([*between, *behind], "1", "2", "3")


def test_a_subscription_that_ends_leaves_the_others_theirs(rig: OverlappingRig) -> None:
    hosts = rig.cluster(2)
    there = rig.subscribers(hosts[1], CORE)
    rig.bound(hosts[0], 3)
    hosts[1].crash()
    rig.run(1)
    rig.send(hosts[0], CORE, "1")
    hosts[1].start()
    node = node_of(hosts[1])
    node.broker.queue_registry.delete(rig.world.now, there[1].name, "deleted")
    hosts[1].flush_later()
    left = [there[0], there[2]]
    for each in left:
        each.connect(hosts[1])
    rig.formed()
    rig.arrived(left, "1")
