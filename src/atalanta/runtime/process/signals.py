"""Signals: the first SIGTERM or SIGINT asks for a graceful stop, the second ends the process. SIGHUP: a reload."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Handles signals in a `with` block: `stop(name)` at the first stop signal, `hangup(name)` at each SIGHUP."""

    # False in a process with a guard: the guard counts. A terminal or a service manager may signal both processes, and
    # the guard passes its signal on, so this process may get one request twice.
    second_ends = True

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        stop: Callable[[str], None],
        hangup: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._stop = stop
        self._hangup = hangup
        self._seen = 0

    def __enter__(self) -> StopSignals:
        for number in STOP_SIGNALS:
            self._loop.add_signal_handler(number, self._on_signal, number)
        self._loop.add_signal_handler(signal.SIGHUP, self._hangup, signal.SIGHUP.name)
        return self

    def __exit__(self, *exception: object) -> None:
        for number in STOP_SIGNALS:
            self._loop.remove_signal_handler(number)
        self._loop.remove_signal_handler(signal.SIGHUP)

    def _on_signal(self, number: signal.Signals) -> None:
        self._seen += 1
        if self._seen > 1 and self.second_ends:
            # Everything confirmed is on disk: an immediate exit breaks no promise.
            os._exit(128 + number)
        self._stop(number.name)


@contextmanager
def deadly_signals() -> Iterator[None]:
    """Lets a stop signal end the process at once while the loop cannot handle it, as in a long recovery."""
    former = [(number, signal.signal(number, signal.SIG_DFL)) for number in STOP_SIGNALS]
    try:
        yield
    finally:
        for number, handler in former:
            signal.signal(number, handler)
