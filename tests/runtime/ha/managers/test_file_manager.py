"""The manager `file`: the contract, two writers, killed writers, and late writers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atalanta.ha.register import CompareAndSet, RegisterDamaged, encode_register
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.file_manager import VERSIONS_KEPT, FileManager
from atalanta.runtime.ha.managers.manager import Found, ManagerUnavailable
from tests.runtime.ha.managers.manager_contract import Counting, check_contract, register

# Counts in the folder until it is killed; a line for each confirmed epoch and each that it tries.
WRITER = """
import asyncio, pathlib, sys
from atalanta.ha.register import CompareAndSet
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.file_manager import FileManager
from tests.runtime.ha.managers.manager_contract import register

async def count(manager):
    while True:
        found = await manager.read()
        version, epoch = (found.version, found.register.epoch) if found else (0, 0)
        print("tries", epoch + 1, flush=True)
        answer = await manager.compare_and_set(CompareAndSet(version, register(epoch + 1)))
        if answer.outcome is Outcome.DONE:
            print("done", epoch + 1, flush=True)

asyncio.run(count(FileManager(pathlib.Path(sys.argv[1]))))
"""


def test_contract(tmp_path: Path) -> None:
    asyncio.run(check_contract(FileManager(tmp_path), FileManager(tmp_path)))


def test_two_writers_confirm_each_step_once(tmp_path: Path) -> None:
    async def count() -> Counting:
        counting = Counting()
        managers = [FileManager(tmp_path) for _ in range(2)]
        writers = [
            counting.write(each, str(at), lambda: len(counting.confirmed) >= 20)
            for at, each in enumerate(managers)
        ]
        await asyncio.gather(*writers)
        counting.check(await managers[0].read())
        return counting

    counting = asyncio.run(count())
    assert len(counting.confirmed) >= 20
    assert len(list(tmp_path.iterdir())) <= VERSIONS_KEPT + 1, "old versions are deleted"


class OverwritingManager(FileManager):
    """Planted: it gives the file its name though there is one."""

    def _link(self, path: Path, data: bytes) -> bool:
        fresh = self.folder / f"new.{os.urandom(16).hex()}"
        fresh.write_bytes(data)
        os.replace(fresh, path)
        return True


def test_writers_that_overwrite_are_found(tmp_path: Path) -> None:
    async def count() -> None:
        counting = Counting()
        end = time.monotonic() + 20
        managers = [OverwritingManager(tmp_path) for _ in range(2)]
        writers = [
            counting.write(each, str(at), lambda: time.monotonic() > end)
            for at, each in enumerate(managers)
        ]
        await asyncio.gather(*writers)

    with pytest.raises(AssertionError, match="confirmed twice|had two values"):
        asyncio.run(count())


def test_killed_writers_lose_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    tried: list[int] = []
    confirmed: list[int] = []
    for _ in range(2):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
            )
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            tried.append(int(writer.stdout.readline().split()[1]))
        time.sleep(0.3)
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            for line in writer.communicate()[0].splitlines():
                word, epoch = line.split()
                (tried if word == "tries" else confirmed).append(int(epoch))
    found = asyncio.run(FileManager(tmp_path).read())
    assert found is not None and len(set(confirmed)) == len(confirmed) > 0
    assert found.register.epoch >= max(confirmed)
    assert set(confirmed) <= set(range(1, found.register.epoch + 1)) <= set(tried)


def test_the_same_request_again_is_done(tmp_path: Path) -> None:
    """An own value is recognised: link() may succeed on a network file system and its answer get lost."""

    async def twice() -> None:
        request = CompareAndSet(0, register(1))
        for _ in range(2):
            answer = await FileManager(tmp_path).compare_and_set(request)
            assert (answer.outcome, answer.version) == (Outcome.DONE, 1)

    asyncio.run(twice())


def test_a_writer_that_slept_through_many_versions_confirms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of its version is free again, because that file was deleted. Planted: a writer that does not look."""

    async def late() -> None:
        manager = FileManager(tmp_path)
        values = [register(epoch) for epoch in range(1, VERSIONS_KEPT + 3)]
        for version, value in enumerate(values):
            assert (await manager.compare_and_set(CompareAndSet(version, value))).outcome is Outcome.DONE
        sleeper = FileManager(tmp_path)
        right, looks = sleeper._newest, [1]
        monkeypatch.setattr(sleeper, "_newest", lambda: looks.pop() if looks else right())
        answer = await sleeper.compare_and_set(CompareAndSet(1, register(2, "late")))
        assert answer.outcome is Outcome.UNKNOWN, answer
        assert await manager.read() == Found(len(values), values[-1])

    asyncio.run(late())


def test_a_missing_folder_is_no_empty_register(tmp_path: Path) -> None:
    async def missing() -> None:
        manager = FileManager(tmp_path / "not mounted")
        with pytest.raises(ManagerUnavailable, match="not mounted"):
            await manager.read()
        answer = await manager.compare_and_set(CompareAndSet(0, register(1)))
        assert answer.outcome is Outcome.UNKNOWN and "not mounted" in answer.why

    asyncio.run(missing())


def test_a_damaged_register_is_told(tmp_path: Path) -> None:
    data = encode_register(register(1))
    (tmp_path / f"register.{1:020}").write_bytes(data[:-1])
    with pytest.raises(RegisterDamaged):
        asyncio.run(FileManager(tmp_path).read())
