"""The partitions of a group's network: a few, one after the other, drawn from a seed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.namespaces.group import CLIENT, MANAGER, GroupNetwork
from tests.namespaces.network import Namespaces

# Each takes the network and two machines; the first is the one of which the schedule speaks.
Change = Callable[[Namespaces, str, str], None]


def pull(network: Namespaces, one: str, other: str) -> None:
    network.pull(one)


def plug(network: Namespaces, one: str, other: str) -> None:
    network.plug(one)


def both(do: Change) -> Change:
    """Returns the change in both directions."""

    def change(network: Namespaces, one: str, other: str) -> None:
        do(network, one, other)
        do(network, other, one)

    return change


def turned(do: Change) -> Change:
    """Returns the change in the other direction."""
    return lambda network, one, other: do(network, other, one)


def flap(network: Namespaces, one: str, other: str) -> None:
    """The cable comes and goes; it is out in the end."""
    for _ in range(4):
        network.pull(one)
        time.sleep(0.15)
        network.plug(one)
        time.sleep(0.1)
    network.pull(one)


def flap_packets(network: Namespaces, one: str, other: str) -> None:
    """The packets between the two are lost, and are not, again and again; they are lost in the end."""
    for _ in range(4):
        both(Namespaces.lose)(network, one, other)
        time.sleep(0.15)
        both(Namespaces.carry)(network, one, other)
        time.sleep(0.1)
    both(Namespaces.lose)(network, one, other)


def lose_answers(sizes: tuple[tuple[int, int], ...]) -> tuple[Change, Change]:
    """Returns the loss of answers of the manager, by their sizes, and its end. It is `one` or `other`."""

    def ends(one: str, other: str) -> tuple[str, str]:
        return MANAGER, other if one == MANAGER else one

    return (
        lambda network, one, other: network.lose_sizes(*ends(one, other), sizes),
        lambda network, one, other: network.carry_sizes(*ends(one, other)),
    )


def lose_requests(sizes: tuple[tuple[int, int], ...]) -> tuple[Change, Change]:
    """Returns the loss of requests to the manager, by their sizes, and its end. It is `one` or `other`."""

    def ends(one: str, other: str) -> tuple[str, str]:
        return other if one == MANAGER else one, MANAGER

    return (
        lambda network, one, other: network.lose_sizes(*ends(one, other), sizes),
        lambda network, one, other: network.carry_sizes(*ends(one, other)),
    )


# Sizes of packets, with the headers of IP and TCP, where the group has two or three members. Connections are made.
WITH_CONTENT = tuple((1 << bit, 1 << bit) for bit in range(7, 16))  # 128 bytes and more
# 140 bytes from ZooKeeper, about 557 from etcd. Their answers to reads are longer.
ANSWERS_TO_WRITES = ((128, 0xFFE0), (512, 0xFF80))
# 190 to 224 bytes to ZooKeeper, and about 430 for the body of a request to etcd. A read needs 184 bytes at most.
WRITES = ((188, 0xFFFC), (192, 0xFFC0), (256, 0xFF00))

# What happens, and how it is healed.
FAULTS: dict[str, tuple[Change, Change]] = {
    "pulled cable": (pull, plug),
    "no packets either way": (both(Namespaces.lose), both(Namespaces.carry)),
    "no packets out": (Namespaces.lose, Namespaces.carry),
    "no packets in": (turned(Namespaces.lose), turned(Namespaces.carry)),
    "resets": (both(Namespaces.reset), both(Namespaces.reset_no_more)),
    "unreachable": (both(Namespaces.drop), both(Namespaces.restore)),
    "flapping cable": (flap, plug),
}
# What can happen to the connections of a manager besides.
MANAGER_FAULTS: dict[str, tuple[Change, Change]] = {
    "flapping packets": (flap_packets, both(Namespaces.carry)),
    "lost answers": lose_answers(WITH_CONTENT),
    "lost answers to writes": lose_answers(ANSWERS_TO_WRITES),
    "lost writes": lose_requests(WRITES),
}
WHILE = ("serving", "catch-up", "failback")


@dataclass(frozen=True)
class Partition:
    """`what` happens between `one` and each of `others` for `seconds`, after `wait_s`.

    Each is named by what it is when this begins: "active", "follower", "member" (another member), "members" (all other
    ones), "client", "manager". `killed` ("active", "follower", "" for none) is killed directly afterwards, and started
    when the partition is over.
    """

    what: str
    one: str
    others: tuple[str, ...]
    wait_s: float
    seconds: float
    killed: str = ""


@dataclass(frozen=True)
class Schedule:
    """Partitions one after the other; `during` one of WHILE, which is when the first of them begins."""

    seed: int
    during: str
    partitions: tuple[Partition, ...]

    def play(self, group: GroupNetwork) -> None:
        """Plays it. All members are in sync before and afterwards."""
        if self.during == "catch-up":
            follower = next(name for name in group.names if name != group.until_active())
            group.kill(follower)
            time.sleep(1.0)  # it is removed, and has something to catch up
            group.start(follower)
            time.sleep(0.6)
        elif self.during == "failback":
            active = group.until_active()
            group.kill(active)
            time.sleep(0.5)
            group.start(active)
            time.sleep(1.5)
        for each in self.partitions:
            self._play(group, each)
        group.until_synced()

    def _play(self, group: GroupNetwork, partition: Partition) -> None:
        time.sleep(partition.wait_s)
        machines = self._machines(group, partition.one)
        one = machines[partition.one][0]
        others = [name for each in partition.others for name in machines[each]]
        begin, end = {**FAULTS, **MANAGER_FAULTS}[partition.what]
        if "cable" in partition.what:
            others = others[:1]  # it is one cable
        for other in others:
            begin(group.network, one, other)
        for name in machines[partition.killed]:
            group.kill(name)
        time.sleep(partition.seconds)
        for other in others:
            end(group.network, one, other)
        for name in machines[partition.killed]:
            group.start(name)

    def _machines(self, group: GroupNetwork, one: str) -> dict[str, list[str]]:
        """Returns the machines by what they are, as seen from `one`."""
        active = group.active() or group.names[0]
        followers = [name for name in group.names if name != active]
        machines = {"active": [active], "follower": [followers[self.seed % len(followers)]], "": []}
        machines |= {"client": [CLIENT], "manager": [MANAGER]}
        members = [name for name in group.names if name != machines[one][0]]
        return machines | {"member": members[:1], "members": members}


def drawn(seed: int) -> Schedule:
    """Returns the schedule of a seed."""
    draw = random.Random(seed)
    names = list(FAULTS)
    partitions = []
    for at in range(draw.randint(1, 2)):
        one = "active" if draw.random() < 0.7 else "follower"
        client = ("client",) if draw.random() < 0.5 else ()
        others = ("members" if draw.random() < 0.6 else "member", *client)
        what = names[(seed + at) % len(names)]
        partitions.append(Partition(what, one, others, draw.uniform(0, 0.8), draw.choice((0.3, 0.8, 1.5, 3.0))))
    return Schedule(seed, WHILE[seed % len(WHILE)] if seed % 4 == 3 else WHILE[0], tuple(partitions))


def play(network: GroupNetwork, schedules: list[Schedule]) -> None:
    """Plays the schedules with one load, which is checked behind the last one."""
    with network as group, group.loaded() as load:
        for schedule in schedules:
            load.past(20)
            print(schedule)
            schedule.play(group)
            load.check()
    print(f"{len(load.confirmed)} confirmed, {len(load.deliveries)} deliveries: "
          f"{dict(Counter(each.node for each in load.deliveries))}")  # fmt: skip
