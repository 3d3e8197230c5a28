"""The build of atalanta that the suite tests, the order of files for several workers, and their open descriptors."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Generator, Iterator
from itertools import chain, groupby, zip_longest
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import atalanta
from atalanta.runtime.process.build import compiled_modules
from tests.share import TESTS, left_to_the_compiled_build

# Folders whose tests wait for processes, and those of which some tests take long, the longest first.
WAITING = {"app", "cli", "client", "runtime", "stress"}
EARLY = {"sim": 0, "fuzz": 1, "node": 2, "examples": 3}
# Their tests take seconds and share nothing: each goes to the worker that is free, else a few files would be the end of
# the run.
ONE_BY_ONE = ("tests/sim/", "tests/fuzz/")
# A file may leave that many descriptors open: Spark, which starts once, has some.
LEFT_OPEN_MAX = 20
DESCRIPTORS = Path("/proc/self/fd")

# Each test of Spark lasts seconds: the second compiler and the parallel collector of Java cost more than they bring.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

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


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out what the compiled build runs after this one."""
    return True if collection_path.name.startswith("test_") and left_to_the_compiled_build(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempts what is imported and collected from garbage collection: it stays, and would be looked at all the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def closed_descriptors(request: pytest.FixtureRequest) -> Iterator[None]:
    """A file of tests closes what it opens. Else others fail: some have few descriptors, or expect low numbers."""
    before = open_descriptors()
    yield
    if len(open_descriptors() - before) > LEFT_OPEN_MAX:
        gc.collect()
        left = sorted(open_descriptors() - before)
        assert len(left) <= LEFT_OPEN_MAX, f"{request.path} leaves open descriptors: {left}"


def open_descriptors() -> set[str]:
    """The open descriptors of this process with what they are, where the system tells them."""
    found: set[str] = set()
    for number in os.listdir(DESCRIPTORS) if DESCRIPTORS.exists() else []:
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found.add(f"{number} {os.readlink(DESCRIPTORS / number)}")
    return found


class SuiteScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Gives a file to one worker, in the order of collection, and all of tests/spark to the same: Spark starts once.
    Tests that share nothing go one by one.
    """

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ONE_BY_ONE):
            return nodeid
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
