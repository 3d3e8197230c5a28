"""The allocator of the C library: what it keeps of freed memory."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

# mallopt(3): parameters of glibc's allocator.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
KEPT_BYTES = 32 << 20


def settle_allocator() -> None:
    """Lets glibc keep up to 32 MiB of freed memory, instead of returning every large buffer to the system at once.

    Each event-loop iteration reads and writes buffers of some 100 KiB: page faults for them took a tenth of the
    time. With other C libraries it has no effect.
    """
    mallopt = _c_function("mallopt")
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def trim_allocator() -> None:
    """Returns memory freed after the start to the system: source text, the text of broker.xml, buffers of the
    recovery.

    Called after the start, 3.5 MB for 0.4 ms in an empty node (bench/README.md), and after many TLS connections.
    """
    malloc_trim = _c_function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def _c_function(name: str) -> Callable[..., int] | None:
    """Returns a function of Linux' C library; None if it has none of that name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
