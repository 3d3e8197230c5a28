"""What a node says of itself: the figures of the overview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.client import ManagementFailed
from atalanta.client.management import BROKER
from atalanta.console.nodes.failures import error_text
from atalanta.console.nodes.node import ClusterNode

ATTRIBUTES: Final = (
    "Uptime", "HAPolicy", "ReplicaSync", "Clustered", "SecurityEnabled", "QueueCount", "AddressCount",
    "ConnectionCount", "SessionCount", "TotalConsumerCount", "TotalMessageCount", "TotalMessagesAdded",
    "TotalMessagesAcknowledged", "AddressMemoryUsagePercentage", "DiskStoreUsage", "MaxDiskUsage",
)  # fmt: skip


@dataclass
class NodeFigures:
    """The figures of one node; a value that it does not tell is None. `untold` says why."""

    values: dict[str, object]
    untold: list[str]

    def number(self, name: str) -> int | None:
        value = self.values.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool | None:
        value = self.values.get(name)
        return value if isinstance(value, bool) else None

    @property
    def disk_percent(self) -> float | None:
        """Returns how full the disk is: Artemis answers with a fraction."""
        value = self.values.get("DiskStoreUsage")
        return round(100 * value, 1) if isinstance(value, float | int) and not isinstance(value, bool) else None

    @property
    def role(self) -> str:
        """Returns the high-availability policy in a word or two, "" for a node by itself."""
        policy = self.text("HAPolicy")
        return "" if policy in ("", "Primary Only") else policy


async def figures_of(node: ClusterNode) -> NodeFigures:
    """Returns the figures. An attribute that is refused does not hide the others."""
    values: dict[str, object] = {}
    untold = []
    for name in ATTRIBUTES:
        try:
            values[name] = await node.get(BROKER, name)
        except ManagementFailed as error:
            untold.append(f"{name}: {error_text(error)}")
    return NodeFigures(values, untold)
