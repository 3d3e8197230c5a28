"""The build of atalanta that the suite tests, and the order of files for several workers."""

from __future__ import annotations

import os
from itertools import chain, groupby, zip_longest
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import atalanta
from atalanta.runtime.process.build import compiled_modules

TESTS = Path(__file__).parent
# Folders whose tests wait for processes, and those of which some tests take long, the longest first.
WAITING = {"app", "cli", "client", "runtime", "stress"}
EARLY = {"sim": 0, "fuzz": 1, "examples": 2}

# The same examples every time, and no deadline: the machine may be busy.
settings.register_profile("atalanta", derandomize=True, deadline=None, database=None)
settings.load_profile("atalanta")


def pytest_report_header() -> str:
    """One line above the run: where atalanta comes from and how much of it is compiled."""
    return f"atalanta: {atalanta.__file__} ({len(compiled_modules())} compiled modules)"


def pytest_sessionstart() -> None:
    """`make test` runs the suite against both builds; a mix-up would test one of them twice."""
    wanted = os.environ.get("ATALANTA_BUILD")
    if wanted is None:
        return
    found = "compiled" if compiled_modules() else "interpreted"
    if wanted != found:
        pytest.exit(f"ATALANTA_BUILD={wanted}, but {atalanta.__file__} is {found}", returncode=4)


class SuiteScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Gives a file to one worker, in the order of collection, and all of tests/spark to the same: Spark starts once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = nodeid.split("::", 1)[0]
        return "tests/spark" if file.startswith("tests/spark/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SuiteScheduling:
    """The scheduler of `-n`."""
    config.option.loadscopereorder = False
    return SuiteScheduling(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark comes first, then files that wait for processes in turn with files that compute.

    So a worker computes while another one waits, and no long file is left for the end.
    """
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    files.sort(key=lambda file: EARLY.get(folder_of(file), len(EARLY)))
    spark = [file for file in files if folder_of(file) == "spark"]
    waiting = [file for file in files if folder_of(file) in WAITING]
    computing = [file for file in files if folder_of(file) not in {"spark", *WAITING}]
    in_turn = chain.from_iterable(zip_longest(waiting, computing, fillvalue=[]))
    items[:] = chain(*spark, *in_turn)


def folder_of(file: list[pytest.Item]) -> str:
    """The folder of tests/ that these tests of one file are in."""
    return file[0].path.relative_to(TESTS).parts[0]
