"""Copies of a node's lists in the console's process, so that ten thousand queues are sorted and summed here.

The pauses between two copies grow with the work that one is for the node: it is asked for about a hundredth of its
time.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Final

from atalanta.console.nodes.list_kinds import ListKind, ListRow
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.tables import summed

PAGE_ROWS: Final = 500
ROWS_MAX: Final = 200_000
INTERVAL_MIN_S: Final = 2.0
INTERVAL_MAX_S: Final = 60.0
SHARE: Final = 100  # the pause after a copy, as a multiple of the time that it took
OLD_S: Final = 120.0  # an older copy is not shown
PATIENCE_S: Final = 0.25  # a page waits so long for a new copy while it has an older one


class Snapshot:
    """A copy: its rows, when it was made (s, monotonic), and how long the node took. `total` may exceed the rows."""

    def __init__(self, rows: list[ListRow], total: int, at_s: float, cost_s: float) -> None:
        self.rows = rows
        self.total = total
        self.at_s = at_s
        self.cost_s = cost_s

    def age_s(self, now_s: float) -> float:
        return now_s - self.at_s

    def is_current(self, now_s: float) -> bool:
        """Returns whether the next copy has time."""
        return self.age_s(now_s) < min(INTERVAL_MAX_S, max(INTERVAL_MIN_S, SHARE * self.cost_s))


class NodeSnapshots:
    """The copies of the lists of nodes, by node and list."""

    def __init__(self) -> None:
        self._copies: dict[tuple[str, str], Snapshot] = {}
        self._running: dict[tuple[str, str], asyncio.Task[Snapshot]] = {}
        self._tasks: set[asyncio.Task[Snapshot]] = set()
        self._sums: dict[str, tuple[tuple[Snapshot, ...], list[ListRow]]] = {}

    async def of(self, node: ClusterNode, kind: ListKind) -> Snapshot:
        """Returns a copy that is current, or the one before while a new one is being made."""
        key = (node.place.at, kind.operation)
        now_s = time.monotonic()
        known = self._copies.get(key)
        if known is not None and known.is_current(now_s) and not node.is_lost:
            return known
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.create_task(self._copy(key, node, kind))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        if known is None or node.is_lost or known.age_s(now_s) > OLD_S:
            return await asyncio.shield(task)
        await asyncio.wait([task], timeout=PATIENCE_S)
        return task.result() if task.done() else known

    def summed(self, kind: ListKind, found: list[tuple[ClusterNode, Snapshot]]) -> list[ListRow]:
        """Returns the rows of these copies as one table; it is made once for the same copies."""
        copies = tuple(each for _, each in found)
        known = self._sums.get(kind.operation)
        if known is None or known[0] != copies:
            by_node = [(node.label, node.id, each.rows) for node, each in found]
            known = self._sums[kind.operation] = (copies, summed(kind, by_node))
        return known[1]

    def forget(self) -> None:
        """Forgets all copies: something was changed, and the next page shows it."""
        self._copies.clear()
        self._sums.clear()
        self._running.clear()

    async def close(self) -> None:
        """Ends the copies that are being made."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, Exception):
                await task

    def _ended(self, task: asyncio.Task[Snapshot]) -> None:
        self._tasks.discard(task)
        for key, running in list(self._running.items()):
            if running is task:
                del self._running[key]
        if not task.cancelled():
            task.exception()  # the next page asks again, and tells it

    async def _copy(self, key: tuple[str, str], node: ClusterNode, kind: ListKind) -> Snapshot:
        rows: list[ListRow] = []
        total, page, cost_s = 1, 1, 0.0
        while len(rows) < min(total, ROWS_MAX):
            began_s = time.monotonic()
            found, total = await node.page(kind.operation, page, PAGE_ROWS, fields=kind.fields)
            cost_s += time.monotonic() - began_s
            rows += [kind.typed(row) for row in found]
            page += 1
            if len(found) < PAGE_ROWS:
                break
            await asyncio.sleep(0)
        made = Snapshot(rows, total, time.monotonic(), cost_s)
        if self._running.get(key) is asyncio.current_task():
            self._copies[key] = made
        return made
