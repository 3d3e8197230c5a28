"""The register port of a running node: one call at a time, certain and uncertain answers, a manager that hangs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from atalanta.cluster.inputs import NodeInputs
from atalanta.ha.register import CompareAndSet, Register
from atalanta.runtime.ha.group.register_calls import RegisterCalls
from atalanta.runtime.ha.managers.file_manager import FileManager
from atalanta.runtime.ha.managers.manager import Found, ManagerAnswer, ManagerUnavailable
from tests.runtime.driven import driver_of
from tests.runtime.ha.managers.manager_contract import register


class Told(NodeInputs):
    """A node that has its inputs as words."""

    def __init__(self) -> None:
        self.story: list[str] = []
        self.driver = driver_of(self)

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        self.story.append(f"version {version} epoch {'none' if register is None else register.epoch}")

    def on_register_uncertain(self, now: int, why: str) -> None:
        self.story.append(f"uncertain: {why}")

    async def until(self, count: int) -> list[str]:
        while len(self.story) < count:
            await asyncio.sleep(0.005)
        return self.story


class HangingManager:
    """Calls wait for `go`."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.calls: list[str] = []

    async def read(self) -> Found | None:
        self.calls.append("read")
        await self.go.wait()
        return Found(7, register(3))

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        raise ManagerUnavailable("no majority")

    async def close(self) -> None:
        raise AssertionError("the manager outlives the calls of one run")


def test_calls_of_a_folder_are_answered_in_order(tmp_path: Path) -> None:
    async def play() -> list[str]:
        told = Told()
        calls = RegisterCalls(FileManager(tmp_path, "group"), told.driver)
        calls.read()
        calls.compare_and_set(CompareAndSet(0, register(1)))
        calls.compare_and_set(CompareAndSet(0, register(2)))  # a conflict: the register is read
        await told.until(3)
        await calls.close()
        return told.story

    assert asyncio.run(play()) == ["version 0 epoch none", "version 1 epoch 1", "version 1 epoch 1"]
    assert (tmp_path / "group").is_dir(), "the first write makes the folder of the group"


def test_a_folder_that_is_not_there_is_uncertain_and_not_an_empty_register(tmp_path: Path) -> None:
    async def play() -> list[str]:
        told = Told()
        calls = RegisterCalls(FileManager(tmp_path / "not mounted", "group"), told.driver)
        calls.read()
        calls.compare_and_set(CompareAndSet(0, register(1)))
        await told.until(2)
        await calls.close()
        return told.story

    story = asyncio.run(play())
    assert all(each.startswith("uncertain: the register in ") for each in story)


def test_a_manager_that_hangs_is_called_once_and_its_late_answer_counts() -> None:
    async def play() -> tuple[list[str], list[str]]:
        told = Told()
        manager = HangingManager()
        calls = RegisterCalls(manager, told.driver, 0.02)
        calls.read()
        await told.until(1)
        calls.read()
        await told.until(2)
        assert manager.calls == ["read"]
        manager.go.set()
        await told.until(3)
        calls.compare_and_set(CompareAndSet(0, register(1)))
        await told.until(4)
        await calls.close()
        return told.story, manager.calls

    story, called = asyncio.run(play())
    assert story == [
        "uncertain: the manager has not answered for 0.02 s",
        "uncertain: an earlier call of the manager has no answer yet",
        "version 7 epoch 3",
        "uncertain: no majority",
    ]
    assert called == ["read"]


def test_nothing_is_told_after_the_close() -> None:
    async def play() -> list[str]:
        told = Told()
        manager = HangingManager()
        calls = RegisterCalls(manager, told.driver)
        calls.read()
        await asyncio.sleep(0)
        await calls.close()
        manager.go.set()
        calls.read()
        await asyncio.sleep(0.01)
        return told.story

    assert asyncio.run(play()) == []
