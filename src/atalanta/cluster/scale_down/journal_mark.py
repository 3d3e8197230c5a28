"""The durable record of a scale-down: its target, and the messages that stay.

The record is on disk before anything is sent to the target, and before the first DISCONNECT. While the record
exists, some messages may be at both nodes, and it is unknown which. After a crash the node therefore continues the
scale-down before it serves clients. The record is removed when everything that was sent has been answered, even if
messages are left.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from atalanta.cluster.scale_down.candidates import TargetCandidate
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues

KEY: Final = "scaledown.under-way"


class DepartureMark:
    """The record of the scale-down. `lsn` is that of its newest version, and 0 as long as there is none."""

    def __init__(self, values: NamedValues) -> None:
        self.values = values
        self.lsn: int = 0

    def write(self, target: TargetCandidate, pinned: dict[str, int]) -> None:
        """Writes the record. `pinned` maps queues to the last sequence that stays."""
        stored = {"target": _written(target), "pinned": pinned}
        self.lsn = self.values.set(KEY, json.dumps(stored).encode())

    def clear(self) -> None:
        if self.values.has(KEY):
            self.lsn = self.values.forget(KEY)

    def durable(self) -> bool:
        return self.values.journal.durable >= self.lsn

    def read(self) -> tuple[TargetCandidate, dict[str, int]] | None:
        """Returns the target and the pinned sequences of the previous run. Raises DecodeError if the record is
        invalid."""
        known = self.values.get(KEY)
        if known is None:
            return None
        try:
            stored = json.loads(known)
            return _read(stored["target"]), stored["pinned"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DecodeError(KEY, 0, f"no record of a departure ({error})") from error


def _written(candidate: TargetCandidate) -> dict[str, object]:
    transport = candidate.transport
    return {
        "node": candidate.node_id,
        "name": transport.name,
        "factory": transport.factory,
        "parameters": {key: value for key, (_, value) in transport.entries.items()},
    }


def _read(stored: dict[str, Any]) -> TargetCandidate:
    transport = TransportConfiguration(stored["name"], stored["factory"])
    for key, value in stored["parameters"].items():
        transport.put(key, value)
    return TargetCandidate(stored["node"], transport)
