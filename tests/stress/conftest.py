"""Fixtures of the tests with planned faults: the launcher of the nodes, and a disk whose power can be cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stress.node_process import Launcher
from tests.stress.power import PowerDisk, why_not


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs the /proc of Linux, to tell files from sockets")
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerDisk]:
    folder = tmp_path_factory.mktemp("power")
    why = why_not(folder / "probe")
    if why:
        pytest.skip(why)
    disk = PowerDisk(folder)
    yield disk
    disk.close()
