"""How often and after which pauses the link to a member is tried again.

Rules of BridgeImpl.scheduleRetryConnect (Artemis 2.44): the first connection has `initial-connect-attempts` retries, a
lost one `reconnect-attempts`; pause n is retry-interval * multiplier ** n, at most max-retry-interval.
"""

from __future__ import annotations

from typing import Final, Protocol

EXPONENT_MAX: Final = 60


class RetrySettings(Protocol):
    """Of a cluster connection or a core bridge."""

    retry_interval_ms: int
    retry_interval_multiplier: float
    max_retry_interval_ms: int
    initial_connect_attempts: int
    reconnect_attempts: int


class Attempts:
    """By node id. `config` tells the limits."""

    def __init__(self, config: RetrySettings) -> None:
        self.config = config
        self.failed: dict[str, int] = {}  # since the last success
        self.connected: dict[str, bool] = {}  # those that were there at least once

    def next_pause_ms(self, node_id: str) -> int:
        """Counts one failure; -1 when the attempts are used up."""
        retries = self.failed.get(node_id, 0)
        self.failed[node_id] = retries + 1
        limit = self.config.initial_connect_attempts
        if node_id in self.connected:
            limit = self.config.reconnect_attempts
        return -1 if 0 <= limit <= retries else self.pause_ms(retries)

    def pause_ms(self, retries: int) -> int:
        """After so many failures in a row, the one before them not counted."""
        config = self.config
        try:
            growth = config.retry_interval_multiplier ** min(retries, EXPONENT_MAX)
            pause_ms = int(config.retry_interval_ms * growth) or config.retry_interval_ms
        except OverflowError:
            return config.max_retry_interval_ms
        return min(pause_ms, config.max_retry_interval_ms)

    def again(self, node_id: str) -> bool:
        """Was there ever a link to it?"""
        return node_id in self.connected

    def succeeded(self, node_id: str) -> None:
        self.failed.pop(node_id, None)
        self.connected[node_id] = True

    def forget(self, node_id: str) -> None:
        """Whatever comes later is a first connection again."""
        self.failed.pop(node_id, None)
        self.connected.pop(node_id, None)
