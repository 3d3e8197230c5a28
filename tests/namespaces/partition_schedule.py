"""The partitions of a group's network: a few, one after the other, drawn from a seed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.namespaces.group import CLIENT, NAMES, GroupNetwork
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
WHILE = ("serving", "catch-up", "failback")


@dataclass(frozen=True)
class Partition:
    """`what` happens between `one` ("active" or "follower") and each of `others` for `seconds`, after `wait_s`."""

    what: str
    one: str
    with_client: bool
    alone: bool  # against both others, or against one of them
    wait_s: float
    seconds: float


@dataclass(frozen=True)
class Schedule:
    """Partitions one after the other; `during` one of WHILE, which is when the first of them begins."""

    seed: int
    during: str
    partitions: tuple[Partition, ...]

    def play(self, group: GroupNetwork) -> None:
        """Plays it. All members are in sync before and afterwards."""
        if self.during == "catch-up":
            follower = next(name for name in NAMES if name != group.until_active())
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
        active = group.active() or NAMES[0]
        followers = [name for name in NAMES if name != active]
        one = active if partition.one == "active" else followers[self.seed % 2]
        others = [name for name in NAMES if name != one][: 2 if partition.alone else 1]
        if partition.with_client:
            others.append(CLIENT)
        begin, end = FAULTS[partition.what]
        if "cable" in partition.what:
            others = others[:1]  # it is one cable
        for other in others:
            begin(group.network, one, other)
        time.sleep(partition.seconds)
        for other in others:
            end(group.network, one, other)


def drawn(seed: int) -> Schedule:
    """Returns the schedule of a seed."""
    draw = random.Random(seed)
    names = list(FAULTS)
    partitions = [
        Partition(
            what=names[(seed + at) % len(names)],
            one="active" if draw.random() < 0.7 else "follower",
            with_client=draw.random() < 0.5,
            alone=draw.random() < 0.6,
            wait_s=draw.uniform(0, 0.8),
            seconds=draw.choice((0.3, 0.8, 1.5, 3.0)),
        )
        for at in range(draw.randint(1, 2))
    ]
    return Schedule(seed, WHILE[seed % len(WHILE)] if seed % 4 == 3 else WHILE[0], tuple(partitions))
