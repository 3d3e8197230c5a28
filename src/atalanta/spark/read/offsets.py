"""Offsets in Spark's checkpoint: one entry per node, with the incarnation of its queue.

    {"queue": "flights::archive",
     "nodes": {"<node id>": {"incarnation": "…", "from": 1200, "sequence": 1234,
                             "server": "host:port"}}}

`server` is for people (and error texts). `from` is the sequence after which the entry's own range begins. Usually the
previous offset has the same value. It does not know a new node (or incarnation), and before the first batch there is
none: Spark asks for the initial offset again when it repeats that batch after a crash. With `from` a repetition always
reads the same range. Spark compares offsets as JSON texts, so that the entry of an idle queue does not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from atalanta.client import LostRange
from atalanta.spark.errors import SparkSourceError

SPANS_MAX: Final = 20  # lost ranges that an error names


@dataclass(frozen=True)
class NodeOffset:
    """The position at one node: every message up to `sequence` of that incarnation is read."""

    incarnation: str
    sequence: int
    server: str
    begins_after: int | None = None

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "incarnation": self.incarnation,
            "sequence": self.sequence,
            "server": self.server,
        }
        if self.begins_after is not None:
            result["from"] = self.begins_after
        return result


@dataclass(frozen=True)
class Range:
    """A range: (start, end] of one incarnation of the queue at one node."""

    node_id: str
    incarnation: str
    server: str
    start: int
    end: int


class Offset:
    """An offset, immutable by convention; entries are in the order of the node ids."""

    def __init__(self, queue: str, entries: Mapping[str, NodeOffset]) -> None:
        self.queue = queue
        self.entries: dict[str, NodeOffset] = {node: entries[node] for node in sorted(entries)}

    def to_json(self) -> dict[str, Any]:
        return {
            "queue": self.queue,
            "nodes": {node: entry.to_json() for node, entry in self.entries.items()},
        }

    @staticmethod
    def from_json(value: Mapping[str, Any], queue: str) -> Offset:
        """Parses an offset. Raises SparkSourceError if the checkpoint is not one of a query over `queue`."""
        if isinstance(value.get("queues"), dict):
            raise SparkSourceError(
                f"the checkpoint is that of a query over the queues {', '.join(value['queues'])}: name "
                "them all in option queue, and those that are not to be read in removedQueues too"
            )
        try:
            entries = {
                str(node): NodeOffset(
                    str(entry["incarnation"]),
                    int(entry["sequence"]),
                    str(entry["server"]),
                    None if entry.get("from") is None else int(entry["from"]),
                )
                for node, entry in value["nodes"].items()
            }
            stored = str(value["queue"])
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise SparkSourceError(
                f"the checkpoint holds an offset that is not one of this source: {value!r} ({error!r})"
            ) from error
        if stored != queue:
            raise SparkSourceError(
                f"the checkpoint is that of a query over queue {stored}, but the options say "
                f"{queue}: use a checkpoint of its own for each query"
            )
        return Offset(stored, entries)


def spans(lost: Sequence[LostRange]) -> str:
    """Returns lost ranges for an error text: the first ones, and the number of the others."""
    named = "; ".join(f"{part.start} to {part.end} ({part.why})" for part in lost[:SPANS_MAX])
    return named if len(lost) <= SPANS_MAX else f"{named}; and {len(lost) - SPANS_MAX} more ranges"


def ranges(start: Offset, end: Offset) -> list[Range]:
    """Returns the ranges between two offsets, in the order of the node ids, without empty ones."""
    found = []
    for node, entry in end.entries.items():
        if entry == start.entries.get(node) or entry.begins_after is None:
            continue
        if entry.sequence > entry.begins_after:
            found.append(
                Range(node, entry.incarnation, entry.server, entry.begins_after, entry.sequence)
            )
    return found


def split(whole: Range, parts: int) -> list[Range]:
    """Splits the range into up to `parts` pieces of about the same length in sequences."""
    length = whole.end - whole.start
    parts = max(1, min(parts, length))
    cuts = [whole.start + length * index // parts for index in range(parts + 1)]
    return [
        Range(whole.node_id, whole.incarnation, whole.server, low, high)
        for low, high in zip(cuts, cuts[1:], strict=False)
    ]


def split_all(wholes: list[Range], min_partitions: int) -> list[Range]:
    """Splits ranges into at least `min_partitions` pieces if they are long enough; long ranges give more."""
    if len(wholes) >= min_partitions or not wholes:
        return wholes
    total = sum(whole.end - whole.start for whole in wholes)
    result: list[Range] = []
    for whole in wholes:
        share = -(-(whole.end - whole.start) * min_partitions // total)
        result.extend(split(whole, share))
    return result
