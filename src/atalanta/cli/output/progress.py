"""A progress bar on stderr, only for a terminal; stdout has the results."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Bar:
    """A progress bar: `with Bar("sent", 1000, quiet) as bar: bar.advance(1)`; without a total it counts."""

    def __init__(self, what: str, total: int | None, quiet: bool) -> None:
        self._progress: Progress | None = None
        if not quiet and sys.stderr.isatty():
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task(what, total=total)

    def advance(self, count: int) -> None:
        if self._progress is not None:
            self._progress.advance(self._task, count)

    def __enter__(self) -> Bar:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._progress is not None:
            self._progress.stop()
