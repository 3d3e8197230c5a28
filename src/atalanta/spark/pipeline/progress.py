"""The state of each query, from Spark's progress reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"


@dataclass(frozen=True)
class QueryState:
    """One query. `batch` is -1 before the first; `lag` in messages by node, after the last batch; `at` in ISO form."""

    name: str
    state: str = RUNNING
    batch: int = -1
    at: str = ""
    rows: int = 0
    total_rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: Mapping[str, int] = field(default_factory=dict)
    watermark: str | None = None
    late_rows: int = 0
    state_rows: int = 0
    error: str = ""
    remedy: str = ""

    def after(self, progress: Mapping[str, Any]) -> QueryState:
        """Returns the state after a report. Spark repeats the number of the last batch while a query is idle."""
        states = progress["stateOperators"]
        known = replace(
            self, lag=lag_of(progress), state_rows=sum(int(one["numRowsTotal"]) for one in states)
        )
        batch = int(progress["batchId"])
        if batch <= self.batch or "addBatch" not in progress["durationMs"]:
            return replace(known, rows_per_second=0.0)
        rows = int(progress["numInputRows"])
        return replace(
            known,
            batch=batch,
            at=str(progress["timestamp"]),
            rows=rows,
            total_rows=self.total_rows + rows,
            rows_per_second=float(progress["processedRowsPerSecond"] or 0.0),
            batch_ms=int(progress["durationMs"]["triggerExecution"]),
            watermark=(progress["eventTime"] or {}).get("watermark"),
            late_rows=self.late_rows + sum(int(one["numRowsDroppedByWatermark"]) for one in states),
        )


def lag_of(progress: Mapping[str, Any]) -> dict[str, int]:
    """Returns the messages at each node after the end of the batch: latestOffset against endOffset."""
    lag: dict[str, int] = {}
    for source in progress["sources"]:
        latest, end = nodes_of(source["latestOffset"]), nodes_of(source["endOffset"])
        for node, entry in latest.items():
            done = end.get(node, {})
            same = done.get("incarnation") == entry.get("incarnation")
            begin = int(done["sequence"]) if same else int(entry.get("from") or 0)
            server = str(entry.get("server", node))
            lag[server] = lag.get(server, 0) + max(0, int(entry["sequence"]) - begin)
    return lag


def nodes_of(offset: Any) -> dict[str, dict[str, Any]]:
    """Returns the entries of an offset of this source; none for other sources."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    nodes = offset.get("nodes") if isinstance(offset, Mapping) else None
    return dict(nodes) if isinstance(nodes, Mapping) else {}
