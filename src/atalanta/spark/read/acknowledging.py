"""Acknowledging while Spark plans the next batch: a node takes about 1 us a message for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """One action at a time in a thread of its own."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self, action: Callable[[], None]) -> None:
        """Returns at once; the one before must be settled."""
        thread = threading.Thread(target=self._run, args=(action,), daemon=True)
        thread.name = "atalanta-acknowledging"
        self._thread = thread
        thread.start()

    def settle(self) -> None:
        """Waits for the end of what was started, and raises what it met, from then on each time."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # raised by settle
            self._error = error
