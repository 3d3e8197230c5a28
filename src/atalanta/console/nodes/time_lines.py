"""Time lines of two hours: rings of fixed size for the cluster, its nodes, and queues that somebody looks at."""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final

POINTS_MAX: Final = 720
STEP_S: Final = 10.0  # between two points at least, so that POINTS_MAX of them are SPAN_S
SPAN_S: Final = POINTS_MAX * STEP_S
NODES_MAX: Final = 64
QUEUES_MAX: Final = 20  # of one user; another one takes the place of the one looked at longest ago
WATCH_S: Final = 1_800.0  # so long a queue is asked for after somebody has looked at it

IN: Final = "in"
OUT: Final = "out"
MESSAGES: Final = "messages"
CONSUMERS: Final = "consumers"
ANSWER: Final = "answer_ms"
MEMORY: Final = "memory"
DISK: Final = "disk"
CLUSTER_LINES: Final = (IN, OUT, MESSAGES, CONSUMERS, ANSWER)
NODE_LINES: Final = (IN, OUT, MESSAGES, CONSUMERS, ANSWER, MEMORY, DISK)
QUEUE_LINES: Final = (IN, OUT, MESSAGES, CONSUMERS)

Figures = Mapping[str, float | int | None]
Point = tuple[float, float]


class LineGroup:
    """Lines of one thing with common times (s since 1970), POINTS_MAX points at most."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._times = array("d")
        self._values = {name: array("f") for name in self.names}
        self._oldest = 0  # the place in the ring
        self.last_s = -math.inf

    def add(self, at_s: float, figures: Figures) -> bool:
        """Adds a point to each line; a figure that nobody told is a gap. False: the last point is too young."""
        if at_s - self.last_s < STEP_S:
            return False
        self.last_s = at_s
        full = len(self._times) >= POINTS_MAX
        if full:
            self._times[self._oldest] = at_s
        else:
            self._times.append(at_s)
        for name, values in self._values.items():
            given = figures.get(name)
            value = math.nan if given is None else float(given)
            if full:
                values[self._oldest] = value
            else:
                values.append(value)
        if full:
            self._oldest = (self._oldest + 1) % POINTS_MAX
        return True

    def points(self, name: str, since_s: float) -> list[Point]:
        """Returns the points of a line from this time on, the oldest first. NaN is a gap."""
        values = self._values[name]
        order = [*range(self._oldest, len(self._times)), *range(self._oldest)]
        return [(self._times[at], values[at]) for at in order if self._times[at] >= since_s]

    def begin_s(self, now_s: float) -> float:
        """Returns the time of the oldest point that is not older than SPAN_S; `now_s` without one."""
        return min((at for at in self._times if at >= now_s - SPAN_S), default=now_s)


class QueueLines:
    """The lines of one queue over all nodes. Rates come of its counters in two samples."""

    def __init__(self) -> None:
        self.lines = LineGroup(QUEUE_LINES)
        self.looked_s = 0.0
        self._before: tuple[float, frozenset[str], int, int] | None = None

    def note(
        self, at_s: float, nodes: frozenset[str], messages: int, consumers: int, added: int, acknowledged: int
    ) -> None:
        """Adds a sample. There is no rate when other nodes have answered than before, or a counter began anew."""
        rates: dict[str, float | None] = {IN: None, OUT: None}
        before = self._before
        if before is not None and before[1] == nodes and at_s > before[0]:
            seconds = at_s - before[0]
            for name, now, then in ((IN, added, before[2]), (OUT, acknowledged, before[3])):
                rates[name] = (now - then) / seconds if now >= then else None
        if self.lines.add(at_s, {**rates, MESSAGES: messages, CONSUMERS: consumers}):
            self._before = (at_s, nodes, added, acknowledged)


class TimeLines:
    """The lines of one user: what they see with their rights, and nobody else."""

    def __init__(self) -> None:
        self.cluster = LineGroup(CLUSTER_LINES)
        self.nodes: dict[str, LineGroup] = {}
        self.queues: OrderedDict[str, QueueLines] = OrderedDict()

    def add(self, at_s: float, cluster: Figures, nodes: Mapping[str, Figures]) -> None:
        """Adds a sample of the cluster and its nodes, by node id. Nodes beyond NODES_MAX have no lines."""
        if not self.cluster.add(at_s, cluster):
            return
        for node_id, figures in nodes.items():
            group = self.nodes.get(node_id)
            if group is None and len(self.nodes) < NODES_MAX:
                group = self.nodes[node_id] = LineGroup(NODE_LINES)
            if group is not None:
                group.add(at_s, figures)
        for node_id, group in list(self.nodes.items()):
            if at_s - group.last_s > SPAN_S:
                del self.nodes[node_id]

    def watch(self, queue: str, now_s: float) -> QueueLines:
        """Returns the lines of a queue that somebody looks at; they begin now if they are new."""
        found = self.queues.pop(queue, None) or QueueLines()
        self.queues[queue] = found
        found.looked_s = now_s
        while len(self.queues) > QUEUES_MAX:
            self.queues.popitem(last=False)
        return found

    def watched(self, now_s: float) -> list[str]:
        """Returns the queues to be asked for; those that nobody has looked at for SPAN_S are forgotten."""
        for name, lines in list(self.queues.items()):
            if now_s - lines.looked_s > SPAN_S:
                del self.queues[name]
        return [name for name, lines in self.queues.items() if now_s - lines.looked_s < WATCH_S]
