"""No process stays, whichever way a program ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.flights.processes import all_processes, session_members, start_child
from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent.parent
# A parent with a child in a process group of its own, as Spark's Python workers are.
FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
print(child.pid, flush=True)
time.sleep(600)
"""
# A demo that is killed itself.
OWNER = """
import asyncio, sys, time
from pathlib import Path
from examples.flights.processes import start_child
async def main():
    child = await start_child("c", [sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]), Path("."))
    print(child.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""

pytestmark = pytest.mark.process


def alive(pid: int) -> bool:
    return any(number == pid and state != "Z" for number, state in all_processes())


def test_kill_ends_the_whole_session(tmp_path: Path) -> None:
    async def scenario() -> None:
        child = await start_child("family", [sys.executable, "-c", FAMILY], tmp_path / "log", tmp_path)
        assert child.process.stdout is not None
        grandchild = int(await child.process.stdout.readline())
        assert sorted(session_members(child.pid)) == sorted([child.pid, grandchild])
        assert os.getpgid(grandchild) != child.pid
        await child.kill()
        assert await child.process.stdout.read() == b""
        assert not alive(grandchild)
        assert not child.running

    asyncio.run(scenario())


def test_terminate_waits_for_a_graceful_end(tmp_path: Path) -> None:
    program = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print(1, flush=True); signal.pause()"

    async def scenario() -> int:
        child = await start_child("polite", [sys.executable, "-c", program], tmp_path / "log", tmp_path)
        assert child.process.stdout is not None
        await child.process.stdout.readline()
        status = await child.terminate(10.0)
        await child.process.stdout.read()
        return status

    assert asyncio.run(scenario()) == 7


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells children of a parent's death on Linux only")
def test_children_die_with_a_demo_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        child = int(owner.stdout.readline())
        assert alive(child)
        owner.kill()
        owner.wait()
        until(lambda: not alive(child), seconds=20)


def test_what_is_left_at_exit_is_ended(tmp_path: Path) -> None:
    program = OWNER.replace("    await asyncio.sleep(600)\n", "")
    command = [sys.executable, "-c", program, str(tmp_path / "log")]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    until(lambda: not alive(int(done.stdout)), seconds=20)
