"""The memory that an input takes, measured on every input and for next to nothing.

Exact figures (tracemalloc) make code four times slower, so that only a sample gets them. For all the others a fence
around the process' data makes what takes far more than it may fail with MemoryError, touched or not, and the pages
that the kernel had to hand out tell which input is worth an exact look.
"""

from __future__ import annotations

import ctypes
import resource
from pathlib import Path
from types import TracebackType

STATM = Path("/proc/self/statm")
DATA_FIELD = 5
PAGE_BYTES = resource.getpagesize()
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
LARGE_BLOCK_BYTES = 128 << 10
PR_SET_THP_DISABLE = 41


def show_large_blocks() -> None:
    """Has every large block counted as fresh pages: it comes from the kernel, goes back to it, and in small pages.

    For the rest of the process. Otherwise what earlier blocks have left is used again, and a huge page counts as one.
    """
    library = ctypes.CDLL(None)
    mallopt, prctl = getattr(library, "mallopt", None), getattr(library, "prctl", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        # What is free at the end of the heap would be taken first, and without a call to the kernel.
        mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK_BYTES)
        library.malloc_trim(0)
    if prctl is not None:
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)


def pages_taken() -> int:
    """Fresh pages since the process began."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


class Fence:
    """No more than `room_bytes` beyond what is held at the last `renew`. Without /proc there is no fence."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self.up = False
        self._before = resource.getrlimit(resource.RLIMIT_DATA)

    def __enter__(self) -> Fence:
        self.up = True
        self.renew()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lift()

    def renew(self, times: int = 1) -> None:
        """The room anew, or some times as much; nothing if the fence is not up."""
        if self.up and STATM.exists():
            held = int(STATM.read_bytes().split()[DATA_FIELD]) * PAGE_BYTES
            hard = self._before[1]
            limit = held + times * self.room_bytes
            if hard == resource.RLIM_INFINITY or limit <= hard:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))

    def lift(self) -> None:
        self.up = False
        resource.setrlimit(resource.RLIMIT_DATA, self._before)
