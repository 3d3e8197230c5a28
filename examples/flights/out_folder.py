"""The folder of the results."""

from __future__ import annotations

import shutil
from pathlib import Path

# Made in a folder that the demo may empty.
MARK = ".flights-demo"


def empty_folder(out: Path) -> None:
    """Removes the results of the run before. Errors: ValueError if `out` holds something else."""
    if out.exists():
        if any(out.iterdir()) and not (out / MARK).exists():
            raise ValueError(f"{out} is not empty, and no earlier run of the demo made it: choose another OUT")
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / MARK).touch()


def shown(path: Path) -> str:
    """Relative to the current folder, where it lies below."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
