"""The lease that the sources of one query share.

A self-join reads one loaded stream through two sources, and Spark plans each in a process of its own. They lease each
queue together: one epoch, and a message is acknowledged when all of them have it. A source of several queues has one
share for all of them; the incarnations tell their leases apart. The processes are children of one JVM and agree through
a small file in Spark's local folder. Spark makes every source of a query before it asks one for an offset, so that the
file is complete by then.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from atalanta.spark.errors import LeaseTaken

TWO_QUERIES: Final = (
    "another query reads the same loaded stream with the same group, so this one stops. Load the stream for each "
    "query, with a group and a queue of its own"
)
Position = tuple[str, int]  # incarnation and sequence


class SharedLease:
    """The share of one source. `load` names the loaded stream; "" is a source that shares nothing."""

    def __init__(self, load: str) -> None:
        self.load = load
        self.me = uuid.uuid4().hex
        self.run = ""
        self.begun = False
        self.alone = True
        self.steps = 0

    def join(self) -> None:
        """Adds this source to the query that is being started."""
        if not self.load or self.run:
            return
        with self._state() as state:
            if not state or state["begun"]:
                state.clear()
                state.update(run=uuid.uuid4().hex, begun=False, epochs={}, sources={})
            state["sources"][self.me] = {"acked": {}, "steps": 0, "kept": {}}
            self.run = state["run"]

    def begin(self) -> None:
        """Ends the start of the query: no further source joins it."""
        if self.begun:
            return
        self.begun = True
        self.join()
        if self.run:
            with self._state() as state:
                self._check(state)
                state["begun"] = True
                self.alone = len(state["sources"]) == 1

    def step(self) -> None:
        """Counts a plan. LeaseTaken if the sources do not plan in turns: two queries use the loaded stream."""
        if self.alone:
            return
        self.steps += 1
        with self._state() as state:
            self._check(state)
            sources = state["sources"]
            sources[self.me]["steps"] = self.steps
            if any(abs(one["steps"] - self.steps) > 1 for one in sources.values()):
                raise LeaseTaken(TWO_QUERIES)

    @contextmanager
    def epochs(self) -> Iterator[dict[str, tuple[int, bool]]]:
        """Yields the epochs that any of the sources has taken, by `key_of`; the caller adds to them.

        With each stands whether the group had begun before.
        """
        if self.alone:
            yield {}
            return
        with self._state() as state:
            self._check(state)
            yield state["epochs"]

    def acknowledge(self, node_id: str, reached: Position) -> int | None:
        """Records that this source is done with a node up to `reached`. Returns the sequence that all sources reached.

        None if one of them has no position there yet.
        """
        if self.alone:
            return reached[1]
        incarnation, sequence = reached
        with self._state() as state:
            self._check(state)
            key = key_of(node_id, incarnation)
            sources = state["sources"]
            sources[self.me]["acked"][key] = sequence
            reaches = [one["acked"].get(key) for one in sources.values()]
        return None if None in reaches else min(reaches)

    def end(self, queue: str, kept: set[str]) -> set[str] | None:
        """Ends this source's part in a queue, of which it needs the leases of the nodes `kept`.

        Returns the kept nodes of all sources; None as long as another source has not ended.
        """
        if self.alone:
            return kept
        with self._state() as state:
            if state.get("run") != self.run:
                return None
            sources: Mapping[str, Any] = state["sources"]
            sources[self.me]["kept"][queue] = sorted(kept)
            lists = [one["kept"].get(queue) for one in sources.values()]
        return None if None in lists else {node for nodes in lists for node in nodes}

    # Private: the file.
    def _check(self, state: Mapping[str, Any]) -> None:
        if state.get("run") != self.run:
            raise LeaseTaken(TWO_QUERIES)

    @contextmanager
    def _state(self) -> Iterator[dict[str, Any]]:
        """Yields the content of the file, and stores it; only one process at a time."""
        base = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
        folder = Path(base if os.path.isdir(base) else tempfile.gettempdir())
        path = folder / f"atalanta-{self.load}.json"
        with path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = json.loads(path.read_text("utf-8")) if path.exists() else {}
            yield state
            draft = path.with_suffix(".new")
            draft.write_text(json.dumps(state), encoding="utf-8")
            draft.replace(path)


def key_of(node_id: str, incarnation: str) -> str:
    return f"{node_id}/{incarnation}"
