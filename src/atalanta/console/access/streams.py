"""The open streams of events: so many for each user, and for the whole console."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

STREAMS_MAX: Final = 100
STREAMS_OF_A_USER_MAX: Final = 12


class StreamsTaken(Exception):
    """There are as many streams as may be: the page asks every few seconds instead."""


class LiveStreams:
    """The number of open streams, by user."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(self._open.values())

    @contextmanager
    def opened(self, user: str) -> Iterator[None]:
        """Counts a stream as long as it is open. Raises StreamsTaken."""
        own = self._open.get(user, 0)
        if own >= STREAMS_OF_A_USER_MAX or len(self) >= STREAMS_MAX:
            raise StreamsTaken
        self._open[user] = own + 1
        try:
            yield
        finally:
            left = self._open[user] - 1
            if left:
                self._open[user] = left
            else:
                del self._open[user]
