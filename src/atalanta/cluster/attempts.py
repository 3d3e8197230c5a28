"""How often and after which pauses a connection is tried again.

Rules of BridgeImpl.scheduleRetryConnect (Artemis 2.44): the first connection has `initial-connect-attempts` retries, a
lost one `reconnect-attempts`; pause n is retry-interval * multiplier ** n, at most max-retry-interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterConnectionConfig

EXPONENT_MAX: Final = 60


class Attempts:
    """By key of the dial. `config` tells the limits."""

    def __init__(self, config: ClusterConnectionConfig) -> None:
        self.config = config
        self.failed: dict[str, int] = {}  # since the last success
        self.connected: dict[str, bool] = {}  # those that were there at least once

    def next_pause_ms(self, key: str) -> int:
        """Counts one failure; -1 when the attempts are used up."""
        config = self.config
        retries = self.failed.get(key, 0)
        self.failed[key] = retries + 1
        limit = config.initial_connect_attempts
        if key in self.connected:
            limit = config.reconnect_attempts
        if 0 <= limit <= retries:
            return -1
        growth = config.retry_interval_multiplier ** min(retries, EXPONENT_MAX)
        pause_ms = int(config.retry_interval_ms * growth) or config.retry_interval_ms
        return min(pause_ms, config.max_retry_interval_ms)

    def succeeded(self, key: str) -> None:
        self.failed.pop(key, None)
        self.connected[key] = True

    def forget(self, key: str) -> None:
        """Whatever comes under this key later is a first connection again."""
        self.failed.pop(key, None)
        self.connected.pop(key, None)
