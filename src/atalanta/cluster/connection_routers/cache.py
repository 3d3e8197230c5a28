"""The targets that keys were given before (LocalCache of Artemis), optionally kept in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.connection_routers.config import CacheConfig
    from atalanta.kernel.journal.named_values import NamedValues

KEYS_MAX: Final = 100_000  # beyond it the least recently used key is removed
PREFIX: Final = "router:"  # of VALUE records: "router:<router>:<key>" -> node id


class Cache:
    """The cache of one router. `entries` maps a key to its node id and time of last use, in the order of use."""

    def __init__(self, config: CacheConfig, router: str, values: NamedValues) -> None:
        self.persisted = config.persisted
        self.timeout_ns = config.timeout_ms * 1_000_000
        self.prefix = f"{PREFIX}{router}:"
        self.values = values
        self.entries: dict[str, tuple[str, int]] = {}

    def start(self, now: int) -> None:
        for name in self.values.keys(self.prefix):
            value = self.values.get(name)
            if self.persisted and value is not None:
                node_id = value.decode("utf-8", "surrogatepass")
                self.entries[name[len(self.prefix) :]] = (node_id, now)
            else:
                self.values.forget(name)

    def get(self, now: int, key: str) -> str | None:
        known = self.entries.pop(key, None)
        if known is None:
            return None
        if 0 < self.timeout_ns <= now - known[1]:
            self._gone(key)
            return None
        self.entries[key] = (known[0], now)
        return known[0]

    def put(self, now: int, key: str, node_id: str) -> None:
        known = self.entries.pop(key, None)
        self.entries[key] = (node_id, now)
        if self.persisted and (known is None or known[0] != node_id):
            self.values.set(self.prefix + key, node_id.encode("utf-8", "surrogatepass"))
        if len(self.entries) > KEYS_MAX:
            oldest = next(iter(self.entries))
            del self.entries[oldest]
            self._gone(oldest)

    def prune(self, now: int) -> None:
        """Removes expired entries; the oldest are first."""
        while self.timeout_ns > 0 and self.entries:
            oldest = next(iter(self.entries))
            if now - self.entries[oldest][1] < self.timeout_ns:
                return
            del self.entries[oldest]
            self._gone(oldest)

    def _gone(self, key: str) -> None:
        if self.persisted:
            self.values.forget(self.prefix + key)
