"""The limit on the usage of the journal's disk: above it all senders are blocked (FileStoreMonitor)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.settings.broker_config import BrokerConfig


class DiskLimit:
    """Compares the usage of the disk with min-disk-free, if that is set, else with max-disk-usage; -1 is no limit."""

    def __init__(self, config: BrokerConfig, memory: Memory, trace: Trace) -> None:
        self.config = config
        self.memory = memory
        self.trace = trace

    def update(self, used_fraction: float, free_bytes: int) -> None:
        """Blocks or unblocks all senders for this usage of the disk."""
        config = self.config
        if config.min_disk_free_bytes >= 0:
            full = free_bytes < config.min_disk_free_bytes
        else:
            full = 0 <= config.max_disk_usage < used_fraction * 100
        full = full or self.memory.disk_exhausted
        if full != self.memory.disk_full:
            self.memory.set_disk_full(full)
            self.trace.event(
                "disk_full" if full else "disk_has_room",
                {"used_percent": round(used_fraction * 100, 1), "free_bytes": free_bytes},
            )

    def set_exhausted(self, exhausted: bool) -> None:
        """Records whether the disk has room for no new file: then every message is refused, not only credits."""
        memory = self.memory
        if exhausted == memory.disk_exhausted:
            return
        memory.disk_exhausted = exhausted
        if exhausted:
            memory.set_disk_full(True)
        self.trace.event("disk_exhausted" if exhausted else "disk_usable_again", {})
