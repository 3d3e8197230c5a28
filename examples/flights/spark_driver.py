"""The pipeline (pipeline.toml) as a process: what it reports, its death and its return."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.flights.airports import HERE
from examples.flights.processes import Child, Program, start_child

PIPELINE = HERE / "pipeline.toml"
# The queries of the file.
ARCHIVE = "archive"
DELAYS = "delays"
WINDOWS = "windows"
CHECKPOINTS = "checkpoints"
STOP_S = 40.0


@dataclass(frozen=True)
class Settings:
    """The variables of the file: the folder of the run, Spark's master, limits in messages, the delay in seconds."""

    out: str
    master: str
    batch_rows: int
    watermark_delay_s: int

    def variables(self) -> dict[str, str]:
        """The environment of the process."""
        return {
            "OUT": self.out,
            "MASTER": self.master,
            "BATCH_ROWS": str(self.batch_rows),
            "WATERMARK_DELAY": f"{self.watermark_delay_s} seconds",
        }


@dataclass(frozen=True)
class Batch:
    """One finished batch of a query. `watermark` in ISO form; `dropped` came too late; `ms` its duration."""

    query: str
    batch: int
    rows: int
    watermark: str | None
    dropped: int
    state_rows: int
    ms: int


class SparkDriver(Program):
    """Starts the program, again after a kill; `batches` has every batch that was reported, once."""

    def __init__(self, settings: Settings, log: Path, on_batch: Callable[[Batch], None]) -> None:
        super().__init__("the Spark program", log, STOP_S)
        self.settings = settings
        self.batches: dict[tuple[str, int], Batch] = {}
        # Rows that came too late at each query since the start of the process.
        self._late: dict[str, int] = {}
        self._on_batch = on_batch

    async def start(self) -> None:
        """Starts the process; batches follow as they come."""
        command = [sys.executable, "-m", "atalanta", "pipeline", "run", str(PIPELINE), "--json"]
        environment = self.settings.variables()
        self._late.clear()
        self._child = await start_child("spark", command, self.log, HERE.parent.parent, environment)
        self._reader = asyncio.create_task(self._read(self._child))

    def dropped_by_watermark(self) -> int:
        """Rows that came too late, all batches."""
        return sum(batch.dropped for batch in self.batches.values())

    def in_flight(self, query: str = ARCHIVE) -> int | None:
        """The batch that is planned in the query's checkpoint and not committed."""
        checkpoint = Path(self.settings.out) / CHECKPOINTS / query
        planned, committed = newest(checkpoint / "offsets"), newest(checkpoint / "commits")
        return planned if planned > committed else None

    async def _read(self, child: Child) -> None:
        output = child.process.stdout
        assert output is not None
        with self.log.open("ab") as log:
            while line := await output.readline():
                text = line.decode("utf-8", "replace")
                if text.startswith("{"):
                    self._add(self._batch(json.loads(text)))
                log.write(line)
                log.flush()

    def _batch(self, state: dict[str, Any]) -> Batch:
        """A line of `--json`: the state of a query after a batch."""
        query, late = str(state["name"]), int(state["late_rows"])
        dropped = late - self._late.get(query, 0)
        self._late[query] = late
        return Batch(
            query, state["batch"], state["rows"], state["watermark"], dropped, state["state_rows"], state["batch_ms"]
        )

    def _add(self, batch: Batch) -> None:
        self.batches[batch.query, batch.batch] = batch
        self._on_batch(batch)


def newest(folder: Path) -> int:
    """The highest batch number in a folder of the checkpoint, -1 for none."""
    if not folder.is_dir():
        return -1
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)
