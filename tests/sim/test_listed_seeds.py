"""The seeds of seeds.txt, each of which once broke a promise, keep every promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.share import in_one_build
from tests.sim.rehearsals import SECONDS, rehearse_all

LISTED = Path(__file__).with_name("seeds.txt")
LISTED_AT_ONCE = 10


def listed_seeds() -> list[tuple[int, int, float]]:
    """(seed, nodes, seconds) of every line of seeds.txt."""
    found = []
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words:
            nodes = int(words[1]) if len(words) > 1 else 3
            found.append((int(words[0]), nodes, float(words[2]) if len(words) > 2 else SECONDS))
    return found


@in_one_build
@pytest.mark.parametrize("first", range(0, len(listed_seeds()), LISTED_AT_ONCE))
def test_seeds_that_once_failed(first: int) -> None:
    for seed, nodes, seconds in listed_seeds()[first : first + LISTED_AT_ONCE]:
        rehearse_all(range(seed, seed + 1), nodes, seconds)
