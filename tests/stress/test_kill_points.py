"""kill -9 at every n-th change of a file, and between them: what was confirmed is there after the next start, once.

The processes are real: a fault inside of the process (tests/stress/faults.py) kills it before a call, in the middle of
a write, or behind it. `make soak` has 500 points.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.stress.faults import KILL, KILL_AFTER, Plan
from tests.stress.killed_node import START_CALLS, Points, SingleNode, spread, through
from tests.stress.node_process import Launcher

pytestmark = pytest.mark.process


def killed(launcher: Launcher, folder: Path, count: int) -> Points:
    """Kills a node at `count` calls of its life, half of them changes of files; every third one is killed in its next
    start, too."""
    plans: list[Plan] = []
    for only in ((), ("/data/",)):
        measured = SingleNode(launcher, folder / f"measured{len(only)}")
        plans += spread(measured.measure(only), count // 2, only)
        measured.close()

    def kill_start(node: SingleNode, index: int) -> None:
        if index % 3 == 0:
            node.live(Plan(at=1 + index // 3 % START_CALLS, action=KILL if index % 2 else KILL_AFTER))

    def fresh(index: int) -> SingleNode:
        shutil.rmtree(folder / f"{index - 1}", ignore_errors=True)
        return SingleNode(launcher, folder / f"{index}")

    return through(plans, fresh, kill_start)


def test_kills_at_any_call_lose_nothing(launcher: Launcher, tmp_path: Path) -> None:
    points = killed(launcher, tmp_path, 6)
    assert points.missed <= 2, points.report()


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_kills_at_500_calls_lose_nothing(launcher: Launcher, tmp_path: Path) -> None:
    points = killed(launcher, tmp_path, 500)
    print(points.report())
    assert points.missed <= 25, points.report()


def test_a_confirmation_before_the_write_is_found(launcher: Launcher, tmp_path: Path) -> None:
    """The planted fault: the node answers, then writes. On a busy machine a write may have nothing to answer for."""
    for at in range(6, 12):
        folder = tmp_path / str(at)
        folder.mkdir()
        node = SingleNode(launcher, folder)
        try:
            if node.live(Plan(at=at, only=("pwritev",), early=True)):
                node.check()
        except AssertionError as error:
            assert "is lost, it was confirmed" in str(error)
            return
        finally:
            node.close()
    pytest.fail("no life shows that a confirmed message is lost")
