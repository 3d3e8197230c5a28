"""Offsets in Spark's checkpoint: one entry per node, with the incarnation of its queue.

    {"queue": "flights::archive",
     "nodes": {"<node id>": {"incarnation": "…", "from": 1200, "sequence": 1234,
                             "server": "host:port", "backups": ["host:port"],
                             "planned_at": 1767225600000}}}

`server` and `backups`, the other members of its node, are where a restart looks for a node that no topology shows.
`from` is the sequence after which the entry's own range begins. Usually the previous offset has the same value. It does
not know a new node (or incarnation), and before the first batch there is none: Spark asks for the initial offset again
when it repeats that batch after a crash. With `from` a repetition always reads the same range. `planned_at` is the time
(ms since the epoch, by the driver's clock) at which the range was planned: messages that were expired then are no rows,
whenever the batch is repeated. An offset of an earlier version has no time, and each message is a row. Spark compares
offsets as JSON texts, so that the entry of an idle queue does not change.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from atalanta.client import LostRange
from atalanta.message import dataclass
from atalanta.spark.errors import SparkSourceError

SPANS_MAX: Final = 20  # lost ranges that an error names


@dataclass(frozen=True)
class NodeOffset:
    """The position at one node: every message up to `sequence` of that incarnation is read."""

    incarnation: str
    sequence: int
    server: str
    begins_after: int | None = None
    planned_at_ms: int | None = None  # an offset of an earlier version has none
    backups: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "incarnation": self.incarnation,
            "sequence": self.sequence,
            "server": self.server,
        }
        if self.begins_after is not None:
            result["from"] = self.begins_after
        if self.backups:
            result["backups"] = [*self.backups]
        if self.planned_at_ms is not None:
            result["planned_at"] = self.planned_at_ms
        return result


@dataclass(frozen=True)
class Range:
    """A range: (start, end] of one incarnation of the queue at one node."""

    node_id: str
    incarnation: str
    server: str
    start: int
    end: int
    planned_at_ms: int | None = None
    backups: tuple[str, ...] = ()


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
                    None if entry.get("planned_at") is None else int(entry["planned_at"]),
                    tuple(str(each) for each in entry.get("backups", ())),
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


def now_ms() -> int:
    """Returns the time by the driver's clock, in ms since the epoch."""
    return time.time_ns() // 1_000_000


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
                Range(
                    node,
                    entry.incarnation,
                    entry.server,
                    entry.begins_after,
                    entry.sequence,
                    entry.planned_at_ms,
                    entry.backups,
                )
            )
    return found


def split(whole: Range, parts: int) -> list[Range]:
    """Splits the range into up to `parts` pieces of about the same length in sequences."""
    length = whole.end - whole.start
    parts = max(1, min(parts, length))
    cuts = [whole.start + length * index // parts for index in range(parts + 1)]
    return [
        replace(whole, start=low, end=high)
        for low, high in zip(cuts, cuts[1:], strict=False)
    ]


def split_all(wholes: list[Range], min_partitions: int, max_messages: int | None = None) -> list[Range]:
    """Splits ranges into at least `min_partitions` pieces if they are long enough; long ranges give more.

    No piece has more than `max_messages`.
    """
    total = sum(whole.end - whole.start for whole in wholes)
    result: list[Range] = []
    for whole in wholes:
        length = whole.end - whole.start
        share = 1 if len(wholes) >= min_partitions else -(-length * min_partitions // total)
        if max_messages is not None:
            share = max(share, -(-length // max_messages))
        result.extend(split(whole, share))
    return result
