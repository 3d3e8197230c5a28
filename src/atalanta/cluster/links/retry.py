"""Retry rules of the link to a member: the number of attempts and the pauses between them.

Rules of BridgeImpl.scheduleRetryConnect (Artemis 2.44): the first connection has `initial-connect-attempts`
retries, a lost one `reconnect-attempts`. Pause n is retry-interval * multiplier ** n, at most max-retry-interval.
"""

from __future__ import annotations

from typing import Final, Protocol

EXPONENT_MAX: Final = 60
HOPELESS_PAUSE_MAX_MS: Final = 30_000


class RetrySettings(Protocol):
    """Retry settings of a cluster connection or a core bridge."""

    retry_interval_ms: int
    retry_interval_multiplier: float
    max_retry_interval_ms: int
    initial_connect_attempts: int
    reconnect_attempts: int


class Attempts:
    """Counts of attempts, by node id. `config` has the limits."""

    def __init__(self, config: RetrySettings) -> None:
        self.config = config
        self.failed: dict[str, int] = {}  # since the last success
        self.connected: dict[str, bool] = {}  # members that were connected at least once

    def next_pause_ms(self, node_id: str, hopeless: bool = False) -> int:
        """Counts one failure. Returns the pause before the next attempt, -1 when the attempts are used up."""
        retries = self.failed.get(node_id, 0)
        self.failed[node_id] = retries + 1
        limit = self.config.initial_connect_attempts
        if node_id in self.connected:
            limit = self.config.reconnect_attempts
        return -1 if 0 <= limit <= retries else self.pause_ms(retries, hopeless)

    def pause_ms(self, retries: int, hopeless: bool = False) -> int:
        """Returns the pause after a failure, when `retries` failures in a row came before it.

        `hopeless`: the peer refuses this node, so an operator must act, or it was never reached. Then the pause is
        doubled up to 30 s.
        """
        config = self.config
        if hopeless:
            doubled = config.retry_interval_ms << min(retries, 16)
            return max(self.pause_ms(retries), min(doubled, HOPELESS_PAUSE_MAX_MS))
        try:
            growth = config.retry_interval_multiplier ** min(retries, EXPONENT_MAX)
            pause_ms = int(config.retry_interval_ms * growth) or config.retry_interval_ms
        except OverflowError:
            return config.max_retry_interval_ms
        return min(pause_ms, config.max_retry_interval_ms)

    def failures(self, node_id: str) -> int:
        """Returns the number of failures since the last success, the loss of an open link included."""
        return self.failed.get(node_id, 0)

    def again(self, node_id: str) -> bool:
        """Returns whether there was ever a link to that member."""
        return node_id in self.connected

    def succeeded(self, node_id: str) -> None:
        self.failed.pop(node_id, None)
        self.connected[node_id] = True

    def forget(self, node_id: str) -> None:
        """Forgets a member. Its next connection counts as the first one."""
        self.failed.pop(node_id, None)
        self.connected.pop(node_id, None)
