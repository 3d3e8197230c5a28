"""Files in a folder that nodes share, perhaps over a network: written and read on a thread of their own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from atalanta.cluster.inputs import NodeInputs
from atalanta.files.regular import NotRegular, read_regular
from atalanta.runtime.driver import Driver

FILE_BYTES_MAX = 1 << 17
FILES_MAX = 10_000
NAME = re.compile(r"[\w.-]{1,200}")
UNPOST_WAIT_S = 1.0
Files = dict[str, bytes]


class SharedFolders:
    """Runs one request per key at a time. While a folder does not answer, further requests for it are skipped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
        self._loop = loop
        self._driver = driver
        self._executor: ThreadPoolExecutor | None = None
        self._asking: dict[str, Future[tuple[Files, str]]] = {}
        self._closed = False

    def post(self, key: str, folder: str, name: str, data: bytes) -> None:
        """Implements Links.post."""
        if self._closed or key in self._asking:
            return
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "atalanta-folder")
        job = self._executor.submit(exchange, Path(folder), name, data)
        self._asking[key] = job
        job.add_done_callback(lambda done: self._from_thread(key, done))

    def _from_thread(self, key: str, done: Future[tuple[Files, str]]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._answer, key, done)

    def _answer(self, key: str, done: Future[tuple[Files, str]]) -> None:
        self._asking.pop(key, None)
        if not self._closed and not done.cancelled():
            files, why = done.result()
            self._driver.post(NodeInputs.on_posted, key, files, why)

    def unpost(self, folder: str, name: str) -> None:
        """Implements Links.unpost; also deletes the file of a write in progress."""
        wait(list(self._asking.values()), UNPOST_WAIT_S)
        if NAME.fullmatch(name):
            with contextlib.suppress(OSError):
                (Path(folder) / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Drops all further answers."""
        self._closed = True
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)


def exchange(folder: Path, name: str, data: bytes) -> tuple[Files, str]:
    """Writes the file if there is `data`. Returns all files of that suffix, and an error text."""
    try:
        if data:
            folder.mkdir(parents=True, exist_ok=True)
            write(folder, name, data)
        return read(folder, Path(name).suffix), ""
    except OSError as error:
        return {}, f"{folder}: {error.strerror or error}"


def write(folder: Path, name: str, data: bytes) -> None:
    """Writes a file atomically: others read at any time."""
    if not NAME.fullmatch(name):
        raise OSError(f"{name!r} is not a file name")
    part = folder / f"{name}.{os.getpid()}.part"
    part.write_bytes(data)
    part.replace(folder / name)


def read(folder: Path, suffix: str) -> Files:
    """Reads the files by name, sorted. Too large, irregular and deleted files are skipped."""
    if not folder.is_dir():
        return {}
    found: Files = {}
    for path in sorted(folder.iterdir())[:FILES_MAX]:
        if path.suffix != suffix:
            continue
        with contextlib.suppress(FileNotFoundError, NotRegular):
            data = read_regular(path, FILE_BYTES_MAX)
            if len(data) <= FILE_BYTES_MAX:
                found[path.name] = data
    return found
