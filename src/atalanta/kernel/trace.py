"""The trace events of single messages, written only while the trace is switched on (`trace.on`).

A message is named by its `_AMQ_DUPL_ID`, which stays the same across the cluster, and by its id on this node.
Callers check `trace.on` first, so that a node without tracing pays one attribute access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message


def trace_message(trace: Trace, event: str, message: Message, where: str) -> None:
    """Records a trace event of a message; `event` begins with `trace_`; `where` is a queue, a peer or a reason."""
    trace.event(event, {"name": message.duplicate_id or b"", "id": message.id, "where": where})


def queue_sequences(references: list[Reference]) -> str:
    """Returns `queue#sequence` of each reference, joined by blanks; "no queue" if there is none."""
    if not references:
        return "no queue"
    return " ".join([f"{each.queue.name}#{each.sequence}" for each in references])
