"""What a killed driver leaves in a folder of Parquet files: files that no commit names.

Spark's file sink commits a batch by one file in `_spark_metadata` that names the batch's files; readers that do not
know that log would read the others, too. Layout: `_spark_metadata/<batch>` holds the batch's entries,
`<batch>.compact` those of all batches up to it; the first line is the version, then one JSON object a line.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

LOG = "_spark_metadata"
VERSION = "v1"
COMPACT = ".compact"


class TornLog(Exception):
    """The log of commits cannot be read; nothing is removed then."""


def committed_files(folder: Path) -> set[Path]:
    """The files that the log names, resolved. Errors: TornLog, with file and line."""
    log = folder / LOG
    batches = {int(path.name.removesuffix(COMPACT)): path for path in log.iterdir() if is_batch(path)}
    compacted = [batch for batch, path in batches.items() if path.name.endswith(COMPACT)]
    first = max(compacted, default=0)
    missing = [batch for batch in range(first, max(batches, default=-1) + 1) if batch not in batches]
    if missing:
        raise TornLog(f"{log}: the batches {missing} are missing")
    named: set[Path] = set()
    for batch in sorted(batches):
        if batch >= first:
            named |= named_files(batches[batch])
    return named


def is_batch(path: Path) -> bool:
    """A commit, neither a checksum nor a temporary file."""
    return path.name.removesuffix(COMPACT).isdigit()


def named_files(path: Path) -> set[Path]:
    """The files one commit adds."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != VERSION:
        raise TornLog(f"{path}:1: {VERSION!r} expected")
    named: set[Path] = set()
    for number, line in enumerate(lines[1:], start=2):
        try:
            entry = json.loads(line)
            if entry["action"] == "add":
                named.add(Path(unquote(urlparse(entry["path"]).path)).resolve())
        except (ValueError, KeyError, TypeError) as error:
            raise TornLog(f"{path}:{number}: no entry of a file: {error!r}") from error
    return named


def remove_uncommitted(folder: Path) -> list[Path]:
    """Removes the Parquet files (and their checksums) of `folder` that no commit names; returns them."""
    named = committed_files(folder)
    lost = [path for path in sorted(named) if not path.exists()]
    if lost:
        raise TornLog(f"{folder}: {len(lost)} committed files are not there, the first is {lost[0]}")
    removed: list[Path] = []
    for path in sorted(folder.rglob("*.parquet")):
        if path.resolve() not in named:
            path.unlink()
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
            removed.append(path)
    return removed
