"""The socket of a connection to a directory, with an end for each answer: in time, and in size.

The library's own time limit is that of one `recv`: a server that sends a byte now and then, or never stops, would keep
a thread, and the logins that wait for it, for ever.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import socket

ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024


class AnswerSocket:
    """Stands for `inner`. Each answer has `seconds`, from `begin` on."""

    def __init__(self, inner: socket.socket, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds
        self._until = 0.0
        self._left = 0
        self.begin()

    def begin(self) -> None:
        """Begins with the next question."""
        self._until = time.monotonic() + self._seconds
        self._left = ANSWER_BYTES_MAX
        self._inner.settimeout(self._seconds)

    def recv(self, size: int) -> bytes:
        """Returns what has come. TimeoutError after `seconds`, OSError for an answer that is too large."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        self._inner.settimeout(seconds)
        data = self._inner.recv(size)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"the answer is larger than {ANSWER_BYTES_MAX} bytes")
        return data

    def __getattr__(self, name: str) -> Any:  # what else the library does with a socket
        return getattr(self._inner, name)
