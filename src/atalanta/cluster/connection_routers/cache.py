"""Which target a key was given before (LocalCache of Artemis); kept in the journal where that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.journal import records

if TYPE_CHECKING:
    from atalanta.cluster.connection_routers.config import CacheConfig
    from atalanta.kernel.broker.broker import Broker

KEYS_MAX: Final = 100_000  # the one that was used longest ago goes first
PREFIX: Final = "router:"  # of VALUE records: "router:<router>:<key>" -> node id


class Cache:
    """`entries`: key -> (node id, when it was last used), in the order of use."""

    def __init__(self, config: CacheConfig, router: str, broker: Broker) -> None:
        self.persisted = config.persisted
        self.timeout_ns = config.timeout_ms * 1_000_000
        self.prefix = f"{PREFIX}{router}:"
        self.broker = broker
        self.entries: dict[str, tuple[str, int]] = {}

    def start(self, now: int) -> None:
        for name, (value, _) in list(self.broker.values.items()):
            if name.startswith(self.prefix):
                if self.persisted:
                    node_id = value.decode("utf-8", "surrogatepass")
                    self.entries[name[len(self.prefix) :]] = (node_id, now)
                else:
                    self._store(name[len(self.prefix) :], None)

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
            self._store(key, node_id)
        if len(self.entries) > KEYS_MAX:
            oldest = next(iter(self.entries))
            del self.entries[oldest]
            self._gone(oldest)

    def prune(self, now: int) -> None:
        """Those whose time is over; the oldest come first."""
        while self.timeout_ns > 0 and self.entries:
            oldest = next(iter(self.entries))
            if now - self.entries[oldest][1] < self.timeout_ns:
                return
            del self.entries[oldest]
            self._gone(oldest)

    def _gone(self, key: str) -> None:
        if self.persisted:
            self._store(key, None)

    def _store(self, key: str, node_id: str | None) -> None:
        name = self.prefix + key
        value = None if node_id is None else node_id.encode("utf-8", "surrogatepass")
        lsn = self.broker.journal.append(records.VALUE, records.encode_value(name, value))
        if value is None:
            self.broker.values.pop(name, None)
        else:
            self.broker.values[name] = (value, lsn)
