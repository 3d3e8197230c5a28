"""The captured conversations beside this file, as frames."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

VECTORS = Path(__file__).resolve().parent / "vectors"


@dataclass(frozen=True)
class GoldenFrame:
    """One captured frame; `place` is its file and line, `sender` "client" or "server"."""

    place: str
    connection: int
    sender: str
    type: int
    channel: int
    data: bytes

    @property
    def payload(self) -> bytes:
        return self.data[13:]


@cache
def golden_frames() -> tuple[GoldenFrame, ...]:
    """Every frame of every conversation, in order; handshakes are left out."""
    return tuple(frame for path in sorted(VECTORS.glob("*.jsonl.gz")) for frame in _read(path))


def _read(path: Path) -> Iterator[GoldenFrame]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            entry = json.loads(line)
            if "frame" in entry:
                yield GoldenFrame(
                    f"{path.name}:{number}",
                    entry["connection"],
                    entry["from"],
                    entry["type"],
                    entry["channel"],
                    bytes.fromhex(entry["frame"]),
                )


@cache
def old_frames() -> tuple[GoldenFrame, ...]:
    """Every frame between artemis-jms-client 1.4.0 (version 128) and a real Artemis 2.44, in order."""
    return tuple(_read(VECTORS / "old" / "core-client-1.4.0.jsonl.gz"))


@cache
def one_of_each_type(old: bool = False) -> tuple[GoldenFrame, ...]:
    """The shortest captured frame of each packet type; with `old` of version 128."""
    shortest: dict[int, GoldenFrame] = {}
    for frame in old_frames() if old else golden_frames():
        known = shortest.get(frame.type)
        if known is None or len(frame.data) < len(known.data):
            shortest[frame.type] = frame
    return tuple(shortest.values())
