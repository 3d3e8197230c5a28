"""Which tests, seeds and long runs each build takes where both run, one after the other.

A seed has the same course in every build (tests/sim/test_digests.py holds that to be so): what one build has run shows
nothing new in the other. The compiled build is the faster one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from atalanta.runtime.process.build import compiled_modules

Run = TypeVar("Run")

TESTS = Path(__file__).parent
BOTH_BUILDS = bool(os.environ.get("ATALANTA_BOTH_BUILDS"))
# Whether another run of these tests comes, with the compiled build.
COMPILED_FOLLOWS = BOTH_BUILDS and not compiled_modules()
# Folders whose tests are for one build, but for files that share their runs: those have random plays and tables, which
# pass what the others do. Those of `app` start hundreds of processes. `make quick` runs all others interpreted.
IN_ONE_BUILD = ("app", "kernel", "management", "message", "store", "wire")

# The mark of tests that one build is enough for: the compiled one where both run.
in_one_build = pytest.mark.skipif(COMPILED_FOLLOWS, reason="the compiled build runs it")


def shares(file: Path) -> bool:
    """Whether a file of tests says itself which of its runs each build takes."""
    return "from tests.share import" in file.read_text(encoding="utf-8")


def left_to_the_compiled_build(file: Path) -> bool:
    """Whether this run leaves a file of tests out."""
    return COMPILED_FOLLOWS and file.relative_to(TESTS).parts[0] in IN_ONE_BUILD and not shares(file)


def sampled(runs: Iterable[Run], every: int) -> list[Run]:
    """All of them; where both builds run, the interpreted one takes each `every`-th: for tables of like cases."""
    found = list(runs)
    return found[::every] if COMPILED_FOLLOWS else found


def share(runs: Sequence[Run]) -> list[Run]:
    """All of them if this build runs alone; else the interpreted one takes the first, the compiled one the others."""
    if not BOTH_BUILDS:
        return list(runs)
    return list(runs[:1]) if COMPILED_FOLLOWS else list(runs[1:])
