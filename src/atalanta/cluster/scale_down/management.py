"""Management of a scale-down: operations `scaleDown` and `scaleDownProgress` of the resource `broker`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.management.request.call import Call, Operations, Parameters, optional_text
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.scale_down import ScaleDown


class ScaleDownOperations:
    """The scale-down of one node, for management."""

    def __init__(self, part: ScaleDown) -> None:
        self.part = part
        self.operations: Operations = {
            "scaleDown": [("S", self.scale_down)],
            "scaleDownProgress": [("", self.progress)],
        }

    def scale_down(self, call: Call, given: Parameters) -> object:
        """Starts the scale-down to the given connector. The answer comes at once; Artemis ends before it answers.

        The caller's connection stays open until the end, for `scaleDownProgress`.
        """
        call.command.begin_change()
        self.part.asked(call.now, optional_text(given, 0), call.connection)
        return None

    def progress(self, call: Call, given: Parameters) -> object:
        """Returns the progress as JSON, see docs/guide/scale-down.md."""
        part = self.part
        target = part.target
        return encode_json(
            {
                "phase": part.phase,
                "target": "" if target is None else target.node_id,
                "at": "" if target is None else target.transport.address,
                "moved": part.moved,
                "left": part.left(),
                "transactions": part.broker.branches.prepared,
                "queues": dict(sorted(part.queues_left().items(), key=_by_count)[:100]),
                "why": part.why,
            }
        )


def _by_count(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]
