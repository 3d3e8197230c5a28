"""The order of answers without a correlation id, by which old brokers answer.

Brokers before Artemis 2.7 answer everything without an id, those before 2.21 commits. The broker answers the packets of
a session in their order.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from atalanta.wire.core.packet_types import (
    ASYNC_RESPONSE_VERSION,
    COMMIT_CORRELATION_VERSION,
    NEWEST_VERSION,
)

NO_CORRELATION: Final = -1


class AnswerOrder:
    """The correlation ids of the packets of one session whose answers have none, oldest first.

    `version` is the one of the connection; of later ones nothing is kept.
    """

    def __init__(self) -> None:
        self.version: int = NEWEST_VERSION
        self._ids: deque[int] = deque()

    def sent(self, correlation: int, is_commit: bool = False) -> None:
        """Records that a packet was sent that is answered."""
        version = self.version
        if version >= COMMIT_CORRELATION_VERSION:
            return
        if version < ASYNC_RESPONSE_VERSION or is_commit or correlation == NO_CORRELATION:
            self._ids.append(correlation)

    def named(self, correlation: int) -> int:
        """Returns the correlation id that an answer is for."""
        if correlation == NO_CORRELATION and self._ids:
            return self._ids.popleft()
        return correlation

    def begin(self, version: int) -> None:
        """Starts on a new connection, on which nothing is unanswered."""
        self.version = version
        self._ids.clear()
