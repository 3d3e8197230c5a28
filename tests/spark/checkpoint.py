"""The remedy of docs/guide/spark.md for a checkpoint whose driver was killed while Spark wrote its first offsets."""

from __future__ import annotations

from pathlib import Path


def drop_unfinished_offsets(checkpoint: Path) -> None:
    """Deletes the files that Spark had begun, where it has finished none: it refuses the checkpoint with them."""
    files = list((checkpoint / "offsets").glob("*")) if checkpoint.exists() else []
    if not any(path.name.isdigit() for path in files):
        for path in files:
            if ".tmp" in path.name:
                path.unlink()
