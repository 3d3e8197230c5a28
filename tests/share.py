"""Which seeds and long runs each build takes where both run, one after the other.

A seed has the same course in every build (tests/sim/test_digests.py holds that to be so): what one build has run shows
nothing new in the other. The compiled build is the faster one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

from atalanta.runtime.process.build import compiled_modules

Run = TypeVar("Run")

BOTH_BUILDS = bool(os.environ.get("ATALANTA_BOTH_BUILDS"))

# The mark of tests that one build is enough for: the compiled one where both run.
in_one_build = pytest.mark.skipif(
    BOTH_BUILDS and not compiled_modules(), reason="the compiled build runs it"
)


def sampled(runs: Iterable[Run], every: int) -> list[Run]:
    """All of them; where both builds run, the interpreted one takes each `every`-th: for tables of like cases."""
    found = list(runs)
    return found[::every] if BOTH_BUILDS and not compiled_modules() else found


def share(runs: Sequence[Run]) -> list[Run]:
    """All of them if this build runs alone; else the interpreted one takes the first, the compiled one the others."""
    if not BOTH_BUILDS:
        return list(runs)
    return list(runs[1:]) if compiled_modules() else list(runs[:1])
