"""The end of the process that plans a stream: Spark sends it SIGTERM, twice, when the query stops or has ended."""

from __future__ import annotations

import signal
import threading
from types import FrameType


def unwind_at_termination() -> None:
    """Makes SIGTERM end the process by an exception, so that Spark's loop calls `stop` of the reader."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)


def ignore_termination() -> None:
    """Lets SIGTERM no more interrupt the end: Spark closes its connection first, by which the end has begun."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _unwind:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _unwind(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the second one would interrupt `stop`
    raise SystemExit(128 + number)
