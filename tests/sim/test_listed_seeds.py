"""The seeds of seeds.txt, each of which once broke a promise, keep every promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all

LISTED = Path(__file__).with_name("seeds.txt")
LISTED_AT_ONCE = 10


def listed_seeds() -> list[tuple[int, int, float, bool, bool]]:
    """(seed, nodes, seconds, grouped, networked) of every line of seeds.txt."""
    found = []
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        kinds = ("grouped" in words, "networked" in words)
        if words:
            numbers = [word for word in words if word not in ("grouped", "networked")]
            nodes = int(numbers[1]) if len(numbers) > 1 else 3
            seconds = float(numbers[2]) if len(numbers) > 2 else SECONDS
            found.append((int(numbers[0]), nodes, seconds, *kinds))
    return found


@in_one_build
@pytest.mark.parametrize("first", range(0, len(listed_seeds()), LISTED_AT_ONCE))
def test_seeds_that_once_failed(first: int) -> None:
    for seed, nodes, seconds, *kinds in listed_seeds()[first : first + LISTED_AT_ONCE]:
        rehearse_all(range(seed, seed + 1), nodes, seconds, *kinds)
