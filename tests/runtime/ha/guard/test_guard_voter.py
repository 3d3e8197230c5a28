"""The voter of a guard: it outlives broker and guard for a time, and a restart waits for its folder."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from atalanta.ha.register import CompareAndSet
from atalanta.ha.voter import Outcome
from atalanta.runtime.disk.folder_lock import lock_folder
from atalanta.runtime.ha.guard.voter import BrokerLife, await_folder
from atalanta.runtime.ha.guard.watch import GuardWatch
from atalanta.runtime.ha.managers.manager import Found, ManagerUnavailable
from atalanta.runtime.ha.managers.quorum_manager import QuorumManager
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from tests.ports import free_port
from tests.runtime.ha.guard.guarded_process import (
    EPOCH,
    PROGRAM,
    SECRET,
    GuardedProcess,
    alive,
    guarded_process,
    stop,
)
from tests.runtime.ha.managers.manager_contract import register
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process
HOST = "127.0.0.1"
PASSWORD = "a password of the cluster"
STAY_S = 3.0
# The command that follows is process 1, as in a container.
UNSHARE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


def new_voter(folder: Path) -> Path:
    """A folder for the first start of a voter."""
    VoterFolder(folder, new=True).close()
    return folder


@asynccontextmanager
async def register_at(port: int) -> AsyncIterator[QuorumManager]:
    """The register that the voter at this port keeps alone; it answers inside the block."""
    manager = QuorumManager([(HOST, port)], "group", PASSWORD, os.urandom(8), 2.0)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    await manager.read()
                    break
                except ManagerUnavailable:
                    await asyncio.sleep(0.05)
        yield manager
    finally:
        await manager.close()


async def write(manager: QuorumManager, epoch: int) -> None:
    """Changes the register."""
    found = await manager.read()
    version = 0 if found is None else found.version
    wanted = register(epoch)
    answer = await manager.compare_and_set(CompareAndSet(version, wanted))
    assert answer.outcome is Outcome.DONE
    assert await manager.read() == Found(answer.version, wanted)


async def watched(guarded: GuardedProcess) -> tuple[GuardWatch, asyncio.Event]:
    """A backup that watches, and what happens at the proof."""
    proven = asyncio.Event()
    watch = GuardWatch(lambda epoch: proven.set())
    assert await watch.connect(HOST, guarded.port, SECRET, EPOCH)
    return watch, proven


def gone(process: int) -> bool:
    """Returns whether the process has ended."""
    return not alive(process)


def port_is_free(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), DEADLINE_S).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("killed", ["child", "started"])
def test_a_backup_takes_over_by_the_voter_of_the_ended_broker(tmp_path: Path, killed: str) -> None:
    """A pair without a third machine."""
    port = free_port()

    async def run() -> None:
        with guarded_process(port, new_voter(tmp_path / "voter"), PASSWORD, STAY_S) as guarded:
            async with register_at(port) as manager:
                await write(manager, EPOCH)
                watch, proven = await watched(guarded)
                voter = guarded.voter
                os.kill(guarded.child if killed == "child" else guarded.process.pid, signal.SIGKILL)
                await asyncio.wait_for(proven.wait(), DEADLINE_S)
                watch.close()
                status = await asyncio.to_thread(guarded.process.wait, DEADLINE_S)
                assert status == (128 + signal.SIGKILL if killed == "child" else -signal.SIGKILL)
                await asyncio.to_thread(until, lambda: not alive(guarded.guard), "the guard stays")
                os.kill(voter, signal.SIGTERM)  # a service manager may end what is left of a service
                await write(manager, EPOCH + 1)
                await asyncio.to_thread(until, lambda: port_is_free(port), "the voter stays")
        with guarded_process(port, tmp_path / "voter", PASSWORD):
            async with register_at(port) as manager:
                found = await manager.read()
                assert found is not None and found.register.epoch == EPOCH + 1, "the next life knows it"

    asyncio.run(run())


def test_the_voter_outlives_a_broker_that_nobody_watches(tmp_path: Path) -> None:
    """The broker was passive, or handed over: the survivor has to remove it from those in sync."""
    port = free_port()

    async def run() -> None:
        with guarded_process(port, new_voter(tmp_path / "voter"), PASSWORD, STAY_S, active=False) as guarded:
            async with register_at(port) as manager:
                stop(guarded.voter)  # somebody has stopped it
                guarded.tell("sys.exit(69)")
                assert await asyncio.to_thread(guarded.process.wait, DEADLINE_S) == 69, "it waits for nobody"
                await write(manager, EPOCH)
                await asyncio.to_thread(until, lambda: port_is_free(port), "the voter stays")

    asyncio.run(run())


def unshares() -> bool:
    """Returns whether this machine lets a test have process ids of its own."""
    found = shutil.which(UNSHARE[0])
    return found is not None and subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not unshares(), reason="no namespaces for processes here")
def test_the_voter_outlives_the_broker_for_a_time_in_a_container(tmp_path: Path) -> None:
    """The end of process 1, which was started, is the end of all: the guard waits before."""
    port = free_port()
    command = [*UNSHARE, sys.executable, "-c", PROGRAM, str(port), str(new_voter(tmp_path / "voter")), PASSWORD]

    async def run(started: subprocess.Popen[str]) -> None:
        assert started.stdin is not None and started.stderr is not None
        async with register_at(port) as manager:
            print("os.kill(os.getpid(), signal.SIGKILL)", file=started.stdin, flush=True)
            while "broker_killed" not in await asyncio.to_thread(started.stderr.readline):
                pass
            await write(manager, EPOCH)
            assert await asyncio.to_thread(started.wait, DEADLINE_S) == 128 + signal.SIGKILL
            assert port_is_free(port)

    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, text=True) as started:
        try:
            asyncio.run(asyncio.wait_for(run(started), DEADLINE_S))
        finally:
            started.kill()


def test_the_voter_of_the_living_guard_gets_the_folder_after_two_kills(tmp_path: Path) -> None:
    port, folder = free_port(), new_voter(tmp_path / "voter")

    async def run() -> None:
        with guarded_process(port, folder, PASSWORD, STAY_S) as first:
            async with register_at(port) as manager:
                await write(manager, EPOCH)
                earlier = first.voter
                os.kill(first.guard, signal.SIGKILL)
                with guarded_process(port, folder, PASSWORD, STAY_S) as second:
                    waiting = second.voter
                    os.kill(second.guard, signal.SIGKILL)
                    with guarded_process(port, folder, PASSWORD, STAY_S) as third:
                        for voter in (earlier, waiting):
                            await asyncio.to_thread(until, partial(gone, voter), "a former voter stays")
                        async with register_at(port) as later:
                            await write(later, EPOCH + 1)
                        assert not gone(third.voter)

    asyncio.run(run())


def test_a_voter_says_once_who_has_its_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = new_voter(tmp_path / "voter")
    other = lock_folder(folder)
    seen, life = os.pipe()

    with caplog.at_level(logging.INFO):
        broker = BrokerLife(seen, 0.2)
        waiting = threading.Thread(target=await_folder, args=[folder, broker, 0.0])
        waiting.start()
        until(lambda: bool(caplog.records), "nothing is said")
        os.close(life)
        waiting.join(DEADLINE_S)
    other.close()
    assert not waiting.is_alive()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("voter_folder_awaited") and f"end process {os.getpid()} if" in said


def test_signals_to_stop_do_not_end_the_voter_before_the_broker(tmp_path: Path) -> None:
    """A service manager signals every process of the group; the broker may need the register to hand over."""
    port = free_port()

    async def run() -> None:
        with guarded_process(port, new_voter(tmp_path / "voter"), PASSWORD) as guarded:
            async with register_at(port) as manager:
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    os.kill(guarded.voter, number)
                await write(manager, EPOCH)

    asyncio.run(run())


def test_a_voter_outlives_its_guard_and_a_restart_waits_for_its_folder(tmp_path: Path) -> None:
    """A guard that was killed proves nothing: the backup waits for the lease, and needs the register then."""
    port, folder = free_port(), new_voter(tmp_path / "voter")

    async def run() -> None:
        with guarded_process(port, folder, PASSWORD, STAY_S) as guarded:
            async with register_at(port) as manager:
                await write(manager, EPOCH)
                os.kill(guarded.guard, signal.SIGKILL)
                until(lambda: not alive(guarded.child), "the broker outlives its guard")
                with guarded_process(port, folder, PASSWORD, STAY_S) as restarted:
                    await write(manager, EPOCH + 1)
                    status, log = await asyncio.to_thread(guarded.wait)  # the former voter has ended
                    assert status == 128 + signal.SIGKILL
                    assert "voter_started" in log and "voter_failed" not in log
                    async with register_at(port) as later:
                        found = await later.read()
                        assert found is not None and found.register.epoch == EPOCH + 1
                    restarted.tell("sys.exit(0)")
                    assert "voter_failed" not in restarted.wait()[1]

    asyncio.run(run())
