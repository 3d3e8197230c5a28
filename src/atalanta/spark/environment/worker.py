"""The settings of a Python worker of Spark, which runs many tasks, one after the other."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from typing import Final

# Parameters of mallopt in glibc's malloc.h.
M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
KEPT_BYTES: Final = 32 << 20  # the most that glibc takes for M_MMAP_THRESHOLD

# The process that has its settings.
_settled_in = 0


def settle_worker() -> None:
    """Excludes imported objects from garbage collection, and keeps freed memory in the process.

    Spark's workers collect after every task, which takes 40 ms. The buffers of each chunk have some MiB: without the
    setting glibc gives them back to the system and gets new pages for the next chunk, a third of a task's CPU.

    This happens once per process, after all imports. A forked process has its own tasks and does it again.
    """
    global _settled_in
    if _settled_in == os.getpid():
        return
    _settled_in = os.getpid()
    gc.freeze()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
