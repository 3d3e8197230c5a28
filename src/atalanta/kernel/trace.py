"""The story of single messages: told to the trace only while somebody listens (`trace.on`).

A message is named by its `_AMQ_DUPL_ID`, which stays the same on its whole way through a cluster, and by its id on this
node. Callers ask `trace.on` first, so that a silent run pays one attribute look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message


def tell(trace: Trace, event: str, message: Message, where: str) -> None:
    """`event` begins with `story_`; `where` is a queue, a peer or a reason."""
    trace.event(event, {"name": message.duplicate_id or b"", "id": message.id, "where": where})


def places(references: list[Reference]) -> str:
    """`queue#sequence` of each, joined by blanks; "nowhere" when there is none."""
    if not references:
        return "nowhere"
    return " ".join([f"{each.queue.name}#{each.sequence}" for each in references])
