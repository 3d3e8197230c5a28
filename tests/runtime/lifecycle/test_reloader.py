"""Reading again: on request, on change, one at a time, and nothing happens when the files are bad."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from atalanta.node.config import NodeConfig
from atalanta.runtime.lifecycle.reloader import Reloaded, Reloader, ReloadRefused
from atalanta.runtime.process.event_loop import run
from atalanta.runtime.trace import LogTrace
from tests.waiting import reached

DEADLINE_S = 10.0


class Files:
    """The configuration is the text of one file; "bad…" cannot be used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.applied: list[str] = []
        self.reads = 0
        self.gate = threading.Event()
        self.gate.set()

    def read(self) -> Reloaded:
        self.gate.wait(DEADLINE_S)
        text = self.path.read_text()
        self.reads += 1
        if text.startswith("bad"):
            raise ReloadRefused([f"{self.path}:1: {text}", f"{self.path}:2: as well"])
        if text == "bug":
            raise ZeroDivisionError
        return Reloaded(cast(NodeConfig, text), [self.path], restart=["acceptors"], reasons="of the group")

    def apply(self, found: Reloaded) -> None:
        self.applied.append(str(found.config))


def with_reloader(
    path: Path, period_s: float, use: Callable[[Reloader, Files], Awaitable[None]]
) -> Files:
    files = Files(path)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        made = Reloader(loop, LogTrace(), files.read, files.apply, [path], period_s)
        made.start()
        await use(made, files)
        made.close()

    run(main())
    return files


def test_a_change_is_noticed_and_files_that_stay_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("one")

    async def use(reloader: Reloader, files: Files) -> None:
        await asyncio.sleep(0.1)
        assert files.reads == 0
        path.write_text("second")
        await reached(lambda: files.applied)
        path.unlink()
        fresh = tmp_path / "fresh"
        fresh.write_text("third!")
        fresh.rename(path)
        await reached(lambda: len(files.applied) == 2)

    assert with_reloader(path, 0.02, use).applied == ["second", "third!"]


def test_without_a_period_only_requests_count(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("one")

    async def use(reloader: Reloader, files: Files) -> None:
        path.write_text("second")
        await asyncio.sleep(0.1)
        assert files.reads == 0
        reloader.request("SIGHUP")
        await reached(lambda: files.applied)

    with_reloader(path, -0.001, use)


def test_a_request_is_answered_when_the_files_of_that_moment_are_applied(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    told: list[tuple[str, str]] = []

    async def use(reloader: Reloader, files: Files) -> None:
        for text in ("one", "second", "bad text"):
            path.write_text(text)
            reloader.request("management", lambda why, text=text: told.append((text, why)))  # type: ignore[misc]
            await asyncio.sleep(0)
            await reached(lambda: files.reads)
        await reached(lambda: len(told) == 3)

    with_reloader(path, -1, use)
    assert [text for text, _ in told] == ["one", "second", "bad text"]
    assert "bad text" in told[2][1]
    assert told[0][1] == ""


def test_bad_files_change_nothing_and_are_told_line_by_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broker.xml"

    async def use(reloader: Reloader, files: Files) -> None:
        for text, reads in (("bad text", 1), ("bug", 2), ("good", 3)):
            path.write_text(text)
            reloader.request("SIGHUP")
            await reached(lambda reads=reads: files.reads == reads)  # type: ignore[misc]
            await asyncio.sleep(0.02)

    with caplog.at_level("INFO"):
        assert with_reloader(path, -1, use).applied == ["good"]
    refused = [line for line in caplog.messages if line.startswith("reload_refused")]
    assert len(refused) == 2 and f"{path}:1: bad text" in refused[0]
    assert any(line.startswith("reload_bug") for line in caplog.messages)
    assert 'reload_incomplete restart_for=acceptors why="of the group"' in caplog.messages


def test_a_file_that_was_wrong_when_it_came_is_read_again_when_mended(tmp_path: Path) -> None:
    path, included = tmp_path / "broker.xml", tmp_path / "included.xml"
    path.write_text("one")
    included.write_text("bad")

    class Including(Files):
        def read(self) -> Reloaded:
            self.reads += 1
            if included.read_text() == "bad":
                raise ReloadRefused([f"{included}:1: bad"], [included])
            return Reloaded(cast(NodeConfig, path.read_text()), [path, included])

    files = Including(path)

    async def main() -> None:
        made = Reloader(
            asyncio.get_running_loop(), LogTrace(), files.read, files.apply, [path], 0.02
        )
        made.start()
        await asyncio.sleep(0.05)
        path.write_text("with it")
        await reached(lambda: files.reads == 1)
        await asyncio.sleep(0.1)
        included.write_text("mended")
        await reached(lambda: files.applied)
        made.close()

    run(main())
    assert files.applied == ["with it"]


def test_requests_during_a_reading_lead_to_one_more(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("text")

    async def use(reloader: Reloader, files: Files) -> None:
        files.gate.clear()
        reloader.request("SIGHUP")
        await asyncio.sleep(0.05)
        for _ in range(4):
            reloader.request("SIGHUP")
        files.gate.set()
        await reached(lambda: files.reads == 2)
        await asyncio.sleep(0.05)

    assert with_reloader(path, -1, use).reads == 2


def test_changes_of_a_file_follow_a_read_and_one_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("one")
    answers: list[tuple[object, str]] = []

    def refused() -> str:
        raise ReloadRefused(["this", "that"])

    def broken() -> str:
        raise ZeroDivisionError

    def change(text: str) -> str:
        assert path.read_text() != text
        path.write_text(text)
        return text

    async def use(reloader: Reloader, files: Files) -> None:
        files.gate.clear()
        reloader.request("SIGHUP")
        works = [lambda: change("two"), refused, broken, lambda: change("three")]
        for work in works:
            reloader.change(work, lambda result, why: answers.append((result, why)))
        await asyncio.sleep(0.05)
        assert answers == [] and path.read_text() == "one", "the read is not over"
        files.gate.set()
        await reached(lambda: len(answers) == len(works))

    assert with_reloader(path, -1, use).applied == ["one"]
    assert answers == [
        ("two", ""), (None, "this; that"), (None, "an internal error, see the log"), ("three", ""),
    ]  # fmt: skip
    assert any(line.startswith("reload_bug") for line in caplog.messages)
