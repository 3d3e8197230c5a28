"""Limits for the messages of a queue that are under way to another broker, and their chunk size."""

from __future__ import annotations

from typing import Final

from atalanta.wire.core.large_chunks import CHUNK_BYTES

WINDOW_BYTES: Final = 1 << 20
CHUNK_BYTES_MAX: Final = 1 << 20


class SendLimits:
    """Limits of one link.

    `window_bytes`: unanswered bytes in flight. `producer_window_bytes` (-1: no flow control): bytes sent ahead of
    the peer's credit. Bodies above `large_bytes_min` (-1: none) are sent in chunks of `chunk_bytes`.
    `one_at_a_time`: one message in flight, used without duplicate detection, so that at most one message is
    repeated (ClusterManager.deployBridge: blockOnDurableSend).
    """

    def __init__(
        self,
        window_bytes: int = WINDOW_BYTES,
        producer_window_bytes: int = WINDOW_BYTES,
        large_bytes_min: int = -1,
        one_at_a_time: bool = False,
    ) -> None:
        self.window_bytes = window_bytes
        self.producer_window_bytes = producer_window_bytes
        self.large_bytes_min = large_bytes_min
        self.chunk_bytes = CHUNK_BYTES
        if large_bytes_min > 0:
            self.chunk_bytes = min(large_bytes_min, CHUNK_BYTES_MAX)
        self.one_at_a_time = one_at_a_time
