"""Which seeds have what."""

from __future__ import annotations

from collections.abc import Iterator

from atalanta.sim.scenario import Scenario
from atalanta.sim.subject import Subject


def seeds_with(subject: type[Subject], first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on whose worlds have it."""
    seed = first
    while count > 0:
        if any(type(each) is subject for each in Scenario(seed, 3, 12.0).subjects):
            yield seed
            count -= 1
        seed += 1


def seeds_where_nodes_leave(first: int, count: int) -> Iterator[int]:
    seed = first
    while count > 0:
        if Scenario(seed, 3, 12.0).shape.departures:
            yield seed
            count -= 1
        seed += 1


def seeds_with_pairs(first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on whose worlds have a node on two machines with a shared folder."""
    seed = first
    while count > 0:
        if Scenario(seed, 3, 12.0).pair is not None:
            yield seed
            count -= 1
        seed += 1
