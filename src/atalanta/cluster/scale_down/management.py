"""Management of a scale-down: the request, and the progress."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.cluster.scale_down.candidates import place
from atalanta.management.resources.scale_down import ScaleDownRequests

if TYPE_CHECKING:
    from atalanta.cluster.scale_down.scale_down import ScaleDown


class Asked(ScaleDownRequests):
    """The scale-down of one node, for management."""

    def __init__(self, part: ScaleDown) -> None:
        self.part = part

    def ask(self, now: int, connector: str | None, connection: int) -> None:
        self.part.asked(now, connector, connection)

    def progress(self) -> dict[str, object]:
        """Returns the progress; see docs/guide/scale-down.md."""
        part = self.part
        target = part.target
        return {
            "phase": part.phase,
            "target": "" if target is None else target.node_id,
            "at": "" if target is None else place(target),
            "moved": part.moved,
            "left": part.left(),
            "transactions": part.broker.branches.prepared,
            "queues": dict(sorted(part.queues_left().items(), key=_by_count)[:100]),
            "why": part.why,
        }


def _by_count(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]
