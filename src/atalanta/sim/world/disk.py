"""A virtual disk: jobs take time. A crash tears the current job and loses the waiting ones.

A commit zeroes the bytes after it in its last block, as far as allowed. kernel.ports.Disk defines the results of a
crash. A commit leaves any subset of its pages, each old or new. A creation leaves a file of any length or none, a
deletion the file or none, a reused file either header under the old name, or the new one under the new name. Random
draws come from the given generator, calls from the given scheduler, so that one seed gives one result.

A disk may be full (`room_bytes`). It has the reserve of runtime/disk/reserve.py then.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Final

from atalanta.kernel import Disk

CREATE: Final = 0
COMMIT: Final = 1
DELETE: Final = 2
SET_ASIDE: Final = 3
REUSE: Final = 4

# Bytes that are written to a disk together: sectors, or pages of the page cache.
PAGE_SIZES: Final = (512, 4096)
# A commit may write up to the next multiple of this.
BLOCK_BYTES: Final = 4096
RESERVED: Final = 2  # files of the reserve
JOB_MIN_NS: Final = 50_000
BYTES_PER_MS: Final = 500_000
NO_ROOM: Final = "no space left"


class _DiskJob:
    def __init__(
        self, kind: int, name: str, offset: int, data: bytes, extra: int, new_name: str = ""
    ) -> None:
        self.kind = kind
        self.name = name
        self.offset = offset
        self.data = data
        self.new_name = new_name
        # The size of a creation, the token of a commit.
        self.extra = extra
        self.spare = False


class SimDisk(Disk):
    """The disk. `at(delay_ns, call)` schedules a call. Files survive `crash`, waiting jobs do not."""

    def __init__(
        self,
        at: Callable[[int, Callable[[], None]], None],
        generator: random.Random,
        like: SimDisk | None = None,
    ) -> None:
        """`like`: a disk of the same speed."""
        self.files: dict[str, bytearray] = {}
        # A job takes a random time up to this, and its size at BYTES_PER_MS; `slow` multiplies both.
        self.job_max_ns: int = 2_000_000 if like is None else like.job_max_ns
        self.slow: int = 1 if like is None else like.slow
        self.commits: int = 0
        self.failed: bool = False
        self.room_bytes: int = -1
        self.reserve_bytes: int = 0
        self.reserve: int = 0
        self.exhausted_ns: int = -1  # since when it has no room for a new file; -1: the reserve is complete
        self.outgrown: bool = False  # it failed by a file that is larger than one of the reserve
        self._at = at
        self._random = generator
        self._jobs: deque[_DiskJob] = deque()
        self._working = False
        self._not_made: dict[str, bool] = {}  # spare files for which there was no room
        self._fail_next = False
        self._strike: tuple[int, Callable[[], None]] | None = None  # in that many commits
        # The number of crashes and heals: calls scheduled before one are ignored.
        self._life = 0
        self._committed: Callable[[int], None] | None = None
        self._failed: Callable[[str], None] | None = None
        self._no_room: Callable[[str], None] | None = None

    def attach(
        self,
        committed: Callable[[int], None],
        failed: Callable[[str], None],
        no_room: Callable[[str], None] | None = None,
    ) -> None:
        """Sets the callbacks of the current node for completed commits, a failure, and a full disk."""
        self._committed = committed
        self._failed = failed
        self._no_room = no_room

    def used_bytes(self) -> int:
        """Returns the bytes of all files and of the reserve."""
        return sum(map(len, self.files.values())) + self.reserve * self.reserve_bytes

    def keep_reserve(self, file_bytes: int) -> None:
        """Gives the disk a reserve: RESERVED files of that size, once `fill_reserve` has made them."""
        self.reserve_bytes = file_bytes

    def set_room(self, room_bytes: int) -> None:
        """Sets the room for all files together; -1 is no limit."""
        self.room_bytes = room_bytes

    def fill_reserve(self) -> bool:
        """Makes missing files of the reserve. Returns False if there is no room for them."""
        while self.reserve < RESERVED:
            if 0 <= self.room_bytes < self.used_bytes() + self.reserve_bytes:
                return False
            self.reserve += 1
        self.exhausted_ns = -1
        return True

    def note_exhausted(self, now: int) -> None:
        """Records the time (ns) at which there was no room for a new file, unless the reserve is still incomplete."""
        if self.exhausted_ns < 0:
            self.exhausted_ns = now

    def busy(self) -> bool:
        """Returns True while a job is waiting or in progress."""
        return bool(self._jobs)

    # --- faults -----------------------------------------------------------------------------------

    def fail_next_sync(self) -> None:
        """Lets the next job fail at its end. The disk then stays failed until `crash`."""
        self._fail_next = True

    def strike_at_commit(self, commits: int, strike: Callable[[], None]) -> None:
        """Calls `strike` in the middle of a commit, `commits` (1 = the next) from now."""
        self._strike = (commits, strike)

    def heal(self) -> None:
        """Cancels planned faults and restarts the current job at full speed."""
        self.slow = 1
        self._fail_next = False
        self._strike = None
        self._life += 1
        if self._working:
            self._begin()

    def finish_jobs(self) -> None:
        """Ends the waiting jobs at once, up to a planned fault."""
        while self._jobs and not self.failed and not self._fail_next and self._strike is None:
            self._life += 1  # the end that is planned for the job does not count
            self._end(self._life)

    def crash(self) -> None:
        """Simulates a power failure: the current job is torn, waiting jobs are lost. The disk works again."""
        self._life += 1
        if self._working:
            self._tear(self._jobs[0])
        self._jobs.clear()
        self._working = False
        self._not_made.clear()
        self._fail_next = False
        self._strike = None
        self.failed = False
        self.outgrown = False

    def inherit(self, other: SimDisk) -> None:
        """Copies the files of another disk as they are now. A job in progress there is torn in the copy."""
        self.files = {name: bytearray(data) for name, data in other.files.items()}
        self.reserve_bytes = other.reserve_bytes
        if other._working:
            self._tear(other._jobs[0])

    def flip_bit(self, name: str, offset: int, bit: int = 0) -> None:
        """Simulates silent damage: one bit of a file changes."""
        self.files[name][offset] ^= 1 << bit

    def _tear(self, job: _DiskJob) -> None:
        draw = self._random
        if job.name in self._not_made and job.name not in self.files:
            return
        if job.kind == COMMIT:
            self._tear_commit(job)
        elif job.kind == CREATE:
            if draw.random() < 0.7:
                data = bytearray(draw.randint(0, job.extra))
                if draw.random() < 0.5:
                    size = min(len(data), len(job.data))
                    data[:size] = job.data[:size]
                self.files[job.name] = data
        elif draw.random() < 0.5:
            if job.kind == REUSE and draw.random() < 0.5:
                self.files[job.name][: len(job.data)] = job.data
            else:
                self._finish(job)

    def _tear_commit(self, job: _DiskJob) -> None:
        """Writes the pages of a torn commit: each is new or old, independently."""
        draw = self._random
        page = draw.choice(PAGE_SIZES)
        share = draw.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        file = self.files[job.name]
        data = self._commit_data(job)
        end = job.offset + len(data)
        begin = job.offset
        while begin < end:
            stop = min(end, (begin // page + 1) * page)
            if draw.random() < share:
                file[begin:stop] = data[begin - job.offset : stop - job.offset]
            begin = stop

    # --- the Disk port ----------------------------------------------------------------------------

    def names(self) -> list[str]:
        return sorted(self.files)

    def content(self, name: str) -> bytearray:
        """Returns the content of a file, nothing without one."""
        return self.files.get(name, bytearray())

    def size(self, name: str) -> int:
        return len(self._file(name))

    def read(self, name: str, offset: int, size: int) -> bytes:
        return bytes(self._file(name)[offset : offset + size])

    def repair(self, name: str, offset: int, data: bytes) -> None:
        if self._jobs or self.failed:
            raise OSError(f"{name}: repair while jobs are waiting, or after a failure")
        self._write(name, offset, data)

    def create(self, name: str, size: int, head: bytes) -> None:
        self._add(_DiskJob(CREATE, name, 0, head, size))

    def create_spare(self, name: str, size: int, head: bytes) -> None:
        job = _DiskJob(CREATE, name, 0, head, size)
        job.spare = True
        self._add(job)

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        self._add(_DiskJob(COMMIT, name, offset, data + more, token))

    def delete(self, name: str) -> None:
        self._add(_DiskJob(DELETE, name, 0, b"", 0))

    def set_aside(self, name: str, spare_name: str) -> None:
        self._add(_DiskJob(SET_ASIDE, name, 0, b"", 0, spare_name))

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        self._add(_DiskJob(REUSE, spare_name, 0, head, 0, name))

    # --- work -------------------------------------------------------------------------------------

    def _file(self, name: str) -> bytearray:
        file = self.files.get(name)
        if file is None:
            raise FileNotFoundError(f"{name}: no such file")
        return file

    def _write(self, name: str, offset: int, data: bytes) -> None:
        file = self._file(name)
        if offset + len(data) > len(file):
            raise OSError(f"{name}: a write beyond the end of the file")
        file[offset : offset + len(data)] = data

    def _commit_data(self, job: _DiskJob) -> bytes:
        """Returns the data of a commit with the zeros after it."""
        end = job.offset + len(job.data)
        zeros = min(-end % BLOCK_BYTES, len(self._file(job.name)) - end)
        return job.data + bytes(max(0, zeros))

    def _add(self, job: _DiskJob) -> None:
        if self.failed:
            return
        self._jobs.append(job)
        if not self._working:
            self._begin()

    def _begin(self) -> None:
        self._working = True
        job = self._jobs[0]
        size = job.extra if job.kind == CREATE else len(job.data)
        delay_ns = self._random.randint(JOB_MIN_NS, self.job_max_ns)
        delay_ns += size * 1_000_000 // BYTES_PER_MS
        life = self._life
        self._at(delay_ns * self.slow, lambda: self._end(life))
        if job.kind == COMMIT and self._strike is not None:
            left, strike = self._strike
            self._strike = (left - 1, strike) if left > 1 else None
            if left == 1:
                self._at(delay_ns * self.slow // 2, strike)

    def _end(self, life: int) -> None:
        if life != self._life:
            return
        job = self._jobs[0]
        if self._fail_next:
            self._fail(job, "the disk does not sync any more")
            return
        if job.name in self._not_made and job.name not in self.files and job.kind in (COMMIT, REUSE):
            self._fail(job, NO_ROOM)
            return
        full = job.kind == CREATE and self._is_full(job)
        reserved = full and self.reserve > 0 and job.extra <= self.reserve_bytes
        if full and not reserved and not job.spare:
            self.outgrown = self.reserve > 0
            self._fail(job, NO_ROOM)
            return
        self._jobs.popleft()
        if reserved:
            self.reserve -= 1
        if reserved or not full:
            self._finish(job)
        else:
            self._not_made[job.name] = True
        self._working = False
        if self._jobs:
            self._begin()
        if job.kind == COMMIT and self._committed is not None:
            self._committed(job.extra)
        if full and self._no_room is not None:
            self._no_room("" if reserved else job.name)

    def _is_full(self, job: _DiskJob) -> bool:
        old = len(self.files.get(job.name, b""))
        return 0 <= self.room_bytes < self.used_bytes() - old + job.extra

    def _finish(self, job: _DiskJob) -> None:
        if job.kind == CREATE:
            data = bytearray(job.extra)
            data[: len(job.data)] = job.data
            self.files[job.name] = data
        elif job.kind == COMMIT:
            self._write(job.name, job.offset, self._commit_data(job))
            self.commits += 1
        elif job.kind == DELETE:
            self.files.pop(job.name, None)
        elif job.kind == REUSE or job.name in self.files:
            self._write(job.name, 0, job.data)
            self.files[job.new_name] = self.files.pop(job.name)

    def _fail(self, job: _DiskJob, why: str) -> None:
        self._tear(job)
        self._jobs.clear()
        self._working = False
        self.failed = True
        if self._failed is not None:
            self._failed(f"{job.name}: {why}")
