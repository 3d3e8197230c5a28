"""Partitions between a group and its manager, which has a machine of its own, drawn from a seed."""

from __future__ import annotations

import random

from tests.namespaces.partition_schedule import FAULTS, MANAGER_FAULTS, WHILE, Partition, Schedule

# Who is cut off from whom.
CUTS = (
    ("active", ("manager",)),
    ("follower", ("manager",)),
    ("manager", ("members",)),
    ("active", ("members",)),  # the manager reaches all
    ("active", ("members", "manager")),
)


def drawn_with_manager(seed: int) -> Schedule:
    """Returns the schedule of a seed: the cuts in turn, some while a member is killed."""
    draw = random.Random(seed)
    partitions = []
    for at in range(draw.randint(1, 2)):
        one, others = CUTS[(seed + at) % len(CUTS)]
        names = [name for name in FAULTS if one == "manager" or "cable" not in name]
        if others == ("manager",) or one == "manager":
            names += MANAGER_FAULTS
        killed = draw.choice(("", "active", "follower")) if "manager" in (one, *others) else ""
        what = draw.choice(names)
        # The longest is longer than the managers wait for an answer.
        wait_s, seconds = draw.uniform(0, 0.8), draw.choice((0.8, 2.0, 4.0, 8.0))
        partitions.append(Partition(what, one, others, wait_s, seconds, killed))
    return Schedule(seed, draw.choice(WHILE[1:]) if seed % 6 == 5 else WHILE[0], tuple(partitions))
