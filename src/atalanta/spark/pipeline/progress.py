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
    """One query. `batch` is -1 before the first; `lag` in messages by server, after it; `at` in ISO form."""

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
    """Returns the messages at each server that no batch has yet, of all queues, as our sources report them."""
    lag: dict[str, int] = {}
    for source in progress["sources"]:
        latest = content_of(source["latestOffset"])
        parts = content_of(latest.get("queues")) or {"": latest}
        for part in parts.values():
            for node, entry in content_of(content_of(part).get("nodes")).items():
                figures = content_of(entry)
                if "lag" in figures:
                    server = str(figures.get("server", node))
                    lag[server] = lag.get(server, 0) + int(figures["lag"])
    return lag


def content_of(value: Any) -> Mapping[str, Any]:
    """Returns a JSON object, parsed if it is a text; an empty one for anything else, as other sources have it."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}
