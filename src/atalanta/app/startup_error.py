"""The error of a start: an exit status and readable lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class StartupError(Exception):
    """The node cannot start: `status` for the process, `lines` for stderr. `files` are the files with problems."""

    def __init__(self, status: int, lines: Sequence[str], files: Sequence[Path] = ()) -> None:
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = list(lines)
        self.files = list(files)
