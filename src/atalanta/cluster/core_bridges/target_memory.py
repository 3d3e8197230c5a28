"""The durable record of the node to which a core bridge followed its target when the target scaled down.

The messages that were sent last may be safe at that node without an answer. Only that node can recognize them, so
the bridge reconnects there first, also after a crash. The record is on disk before anything is sent to another node
than before. The record is valid as long as the bridge's configured targets are unchanged. In Artemis a bridge begins
with its connectors again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from atalanta.cluster.core_bridges.targets import is_valid_endpoint
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.cluster.core_bridges.targets import CoreBridgeTargets
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Trace

KEY_PREFIX: Final = "followed."


class TargetMemory:
    """The record of one bridge. `lsn` is that of its newest version, and 0 as long as this run has written none."""

    def __init__(self, values: NamedValues, trace: Trace, targets: CoreBridgeTargets, bridge: str) -> None:
        self.values = values
        self.trace = trace
        self.targets = targets
        self.key = KEY_PREFIX + bridge
        self.lsn: int = 0

    def recall(self) -> None:
        """Reads the node to begin with, before the first attempt."""
        known = self.values.get(self.key)
        if known is None:
            return
        try:
            stored = json.loads(known)
            transports = [_transport(each) for each in stored["transports"]]
            if stored["from"] == self.targets.configured() and all(map(is_valid_endpoint, transports)):
                self.targets.follow(stored["node"], transports)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.trace.event(
                "core_bridge_memory_unreadable", {"bridge": self.key[len(KEY_PREFIX) :], "why": str(error)}
            )

    def connected(self) -> None:
        """Records the node if the bridge followed its target there; else removes the record."""
        targets = self.targets
        if not targets.followed:
            self.forget()
            return
        stored = {
            "from": targets.configured(),
            "node": targets.followed,
            "transports": [
                {
                    "name": each.name,
                    "parameters": {key: value for key, (_, value) in each.entries.items()},
                }
                for each in targets.node
            ],
        }
        value = json.dumps(stored).encode()
        known = self.values.get(self.key)
        if known != value:
            self.lsn = self.values.set(self.key, value)

    def durable(self) -> bool:
        return self.values.journal.durable >= self.lsn

    def forget(self) -> None:
        if self.values.has(self.key):
            self.lsn = self.values.forget(self.key)


def _transport(stored: dict[str, object]) -> TransportConfiguration:
    made = TransportConfiguration(str(stored["name"]))
    parameters = stored["parameters"]
    if not isinstance(parameters, dict):
        raise ValueError("parameters are not an object")
    for key, value in parameters.items():
        made.put(key, value)
    return made
