"""The voter of a guard: it outlives the broker until a backup has taken over, and the guard for a time."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from atalanta.ha.register import CompareAndSet
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.guard.watch import GuardWatch
from atalanta.runtime.ha.managers.manager import Found, ManagerUnavailable
from atalanta.runtime.ha.managers.quorum_manager import QuorumManager
from atalanta.runtime.ha.managers.voter_folder import VoterFolder
from tests.broker_process import free_port
from tests.runtime.ha.guard.guarded_process import (
    EPOCH,
    SECRET,
    GuardedProcess,
    alive,
    guarded_process,
)
from tests.runtime.ha.managers.manager_contract import register
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.process
HOST = "127.0.0.1"
PASSWORD = "a password of the cluster"


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


def port_is_free(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), DEADLINE_S).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize("killed", ["child", "started"])
def test_a_backup_takes_over_by_the_voter_of_the_ended_broker(tmp_path: Path, killed: str) -> None:
    """A pair without a third machine. The guard ends when the backup says that it has done it."""
    port = free_port()

    async def run() -> None:
        with guarded_process(port, new_voter(tmp_path / "voter"), PASSWORD) as guarded:
            async with register_at(port) as manager:
                await write(manager, EPOCH)
                watch, proven = await watched(guarded)
                os.kill(guarded.child if killed == "child" else guarded.process.pid, signal.SIGKILL)
                await asyncio.wait_for(proven.wait(), DEADLINE_S)
                os.kill(guarded.guard, signal.SIGTERM)  # a service manager may end what is left of a service
                await write(manager, EPOCH + 1)
                assert alive(guarded.guard), "it waits for the backup"
                watch.close()
                status = (await asyncio.to_thread(guarded.wait))[0]
                assert status == (128 + signal.SIGKILL if killed == "child" else -signal.SIGKILL)
                assert port_is_free(port)
        with guarded_process(port, tmp_path / "voter", PASSWORD):
            async with register_at(port) as manager:
                found = await manager.read()
                assert found is not None and found.register.epoch == EPOCH + 1, "the next life knows it"

    asyncio.run(run())


def test_nobody_waits_if_nobody_watches(tmp_path: Path) -> None:
    with guarded_process(free_port(), new_voter(tmp_path / "voter"), PASSWORD) as guarded:
        guarded.tell("sys.exit(69)")
        assert guarded.process.wait(5) == 69


def test_a_further_request_to_stop_ends_the_wait(tmp_path: Path) -> None:
    async def run() -> None:
        with guarded_process(free_port(), new_voter(tmp_path / "voter"), PASSWORD) as guarded:
            watch, proven = await watched(guarded)
            guarded.do("signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))")
            guarded.process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(proven.wait(), DEADLINE_S)
            await asyncio.sleep(0.3)
            assert guarded.process.poll() is None
            guarded.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(guarded.process.wait, 5) == 0
            watch.close()

    asyncio.run(run())


def test_signals_to_stop_do_not_end_the_voter_before_the_broker(tmp_path: Path) -> None:
    """A service manager signals every process of the group; the broker may need the register to hand over."""
    port = free_port()

    async def run() -> None:
        with guarded_process(port, new_voter(tmp_path / "voter"), PASSWORD) as guarded:
            async with register_at(port) as manager:
                guard = guarded.guard
                children = Path(f"/proc/{guard}/task/{guard}/children").read_text().split()
                (voter,) = {int(word) for word in children} - {guarded.child}
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    os.kill(voter, number)
                await write(manager, EPOCH)

    asyncio.run(run())


def test_a_voter_outlives_its_guard_and_a_restart_waits_for_its_folder(tmp_path: Path) -> None:
    """A guard that was killed proves nothing: the backup waits for the lease, and needs the register then."""
    port, folder = free_port(), new_voter(tmp_path / "voter")

    async def run() -> None:
        with guarded_process(port, folder, PASSWORD, 3) as guarded:
            async with register_at(port) as manager:
                await write(manager, EPOCH)
                os.kill(guarded.guard, signal.SIGKILL)
                until(lambda: not alive(guarded.child), "the broker outlives its guard")
                with guarded_process(port, folder, PASSWORD) as restarted:
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
