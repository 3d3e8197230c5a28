"""Virtual files of large messages: jobs take time. A crash keeps a random part of the data without sync.

kernel.ports.LargeFiles defines the results of a crash: any prefix of the bytes appended since the last sync, with or
without the content of its pages; nothing of a file without any sync; a deleted file, again.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Final

from atalanta.kernel import LargeFiles

CREATE: Final = 0
APPEND: Final = 1
SYNC: Final = 2
READ: Final = 3
DELETE: Final = 4
RENAME: Final = 5


class _FileJob:
    def __init__(self, kind: int, file: int, data: bytes, offset: int, size: int) -> None:
        self.kind = kind
        self.file = file
        self.data = data
        self.offset = offset
        self.size = size
        self.token = 0


class LargeInputs:
    """The callbacks of the current node for files of large messages."""

    def large_written(self, file: int, size: int) -> None:
        raise NotImplementedError

    def large_synced(self, file: int) -> None:
        raise NotImplementedError

    def large_failed(self, file: int, why: str) -> None:
        raise NotImplementedError

    def large_read(self, token: int, data: bytes) -> None:
        raise NotImplementedError


class SimLargeFiles(LargeFiles):
    """The files. `at(delay_ns, call)` schedules; `contents` survive `crash`. `full_at`: the maximum bytes of a file."""

    def __init__(
        self, at: Callable[[int, Callable[[], None]], None], generator: random.Random
    ) -> None:
        self.contents: dict[int, bytearray] = {}
        self.full_at: int = -1
        self.job_min_ns: int = 20_000
        self.job_max_ns: int = 500_000
        self.bytes_per_ms: int = 500_000
        self._synced: dict[int, int] = {}  # bytes that survive a crash; a missing file has none
        self._deleted: dict[int, bytes] = {}  # since the last sync of any file: a crash may restore them
        self._given_up: dict[int, bool] = {}
        self._at = at
        self._random = generator
        self._jobs: deque[_FileJob] = deque()
        self._working = False
        self._life = 0
        self._node: LargeInputs | None = None

    def attach(self, node: LargeInputs) -> None:
        """Sets the current node, which receives the results."""
        self._node = node

    def busy(self) -> bool:
        return bool(self._jobs)

    def crash(self) -> None:
        """Simulates a power failure: waiting jobs are lost, data without sync is kept or lost at random."""
        draw = self._random
        self._life += 1
        self._jobs.clear()
        self._working = False
        self._given_up.clear()
        for file in list(self.contents):
            data = self.contents[file]
            safe = self._synced.get(file, -1)
            if safe < 0 and draw.random() < 0.5:
                del self.contents[file]
                continue
            safe = max(safe, 0)
            kept = draw.randint(safe, len(data))
            del data[kept:]
            if kept > safe and draw.random() < 0.5:
                data[safe:kept] = bytes(kept - safe)
        for file, content in self._deleted.items():
            if draw.random() < 0.5:
                self.contents[file] = bytearray(content)
        self._deleted.clear()
        self._synced = {file: len(data) for file, data in self.contents.items()}

    def inherit(self, other: SimLargeFiles) -> None:
        """Copies the files of another folder as they are now, and syncs the copies."""
        self.contents = {file: bytearray(data) for file, data in other.contents.items()}
        self._synced = {file: len(data) for file, data in self.contents.items()}

    def safe(self, file: int) -> bytes | None:
        """Returns what survives a crash of the file, None if it may be lost."""
        size = self._synced.get(file)
        return None if size is None else bytes(self.contents[file][:size])

    def damage(self, file: int, size: int) -> None:
        """Makes the file shorter than recorded; deletes it if `size` < 0."""
        self._synced[file] = size
        if size < 0:
            del self.contents[file]
        else:
            del self.contents[file][size:]

    # --- the port ---------------------------------------------------------------------------------

    def files(self) -> dict[int, int]:
        return {file: len(data) for file, data in self.contents.items()}

    def create(self, file: int, will_sync: bool) -> None:
        self._add(_FileJob(CREATE, file, b"", 0, 0))

    def append(self, file: int, data: bytes) -> None:
        self._add(_FileJob(APPEND, file, data, 0, len(data)))

    def sync(self, file: int) -> None:
        self._add(_FileJob(SYNC, file, b"", 0, 0))

    def rename(self, file: int, number: int) -> None:
        self._add(_FileJob(RENAME, file, b"", number, 0))

    def read(self, file: int, offset: int, size: int, token: int) -> None:
        job = _FileJob(READ, file, b"", offset, size)
        job.token = token
        self._add(job)

    def delete(self, file: int) -> None:
        self._add(_FileJob(DELETE, file, b"", 0, 0))

    # --- jobs -------------------------------------------------------------------------------------

    def _add(self, job: _FileJob) -> None:
        self._jobs.append(job)
        if not self._working:
            self._begin()

    def _begin(self) -> None:
        self._working = True
        job = self._jobs[0]
        delay_ns = self._random.randint(self.job_min_ns, self.job_max_ns)
        delay_ns += job.size * 1_000_000 // self.bytes_per_ms
        life = self._life
        self._at(delay_ns, lambda: self._end(life))

    def _end(self, life: int) -> None:
        if life != self._life:
            return
        job = self._jobs.popleft()
        self._working = False
        answer = self._do(job)
        if self._jobs:
            self._begin()
        if answer is not None:
            answer()

    def _do(self, job: _FileJob) -> Callable[[], None] | None:
        node = self._node
        file = job.file
        if job.kind == READ:
            data = bytes(self.contents.get(file, b"")[job.offset : job.offset + job.size])
            return None if node is None else lambda: node.large_read(job.token, data)
        if job.kind == DELETE:
            self._given_up.pop(file, None)
            content = self.contents.pop(file, None)
            if content is not None and self._synced.pop(file, -1) >= 0:
                self._deleted[file] = bytes(content)
            return None
        if file in self._given_up:
            return None
        if job.kind == CREATE:
            self.contents[file] = bytearray()
            return None
        if job.kind == SYNC:
            self._synced[file] = len(self.contents[file])
            self._deleted.clear()
            return None if node is None else lambda: node.large_synced(file)
        if job.kind == RENAME:
            number = job.offset
            self.contents[number] = self.contents.pop(file)
            self._synced.pop(file, None)
            self._synced[number] = len(self.contents[number])
            self._deleted.clear()
            return None if node is None else lambda: node.large_synced(number)
        if 0 <= self.full_at < len(self.contents[file]) + job.size:
            self._given_up[file] = True
            return None if node is None else lambda: node.large_failed(file, "no space left")
        self.contents[file] += job.data
        return None if node is None else lambda: node.large_written(file, job.size)
