"""A node that ends at a planned call of the fixed load, and the check of what the next start has."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from atalanta.client import ClientError
from tests.broker_xml import write_broker_xml
from tests.ports import free_port
from tests.stress.faults import KILL, KILL_AFTER, TEAR, Plan
from tests.stress.node_process import Launcher, NodeProcess
from tests.stress.workload import BUGS, Workload, core_elements

# Calls of a start with a journal that was left behind by a kill, about.
START_CALLS = 24
# Events of a disk that fails.
LARGE_REFUSED = "large_message_write_failed"
DISK_ERROR = "disk_error"
# How long one load or check may take; a busy machine takes its time.
PATIENCE_S = 60


@dataclass
class Points:
    """Which calls were hit, and how often a load ended before its point."""

    hit: Counter[str] = field(default_factory=Counter)
    missed: int = 0

    def note(self, reached: bool, call: str) -> None:
        """Records one end of a node."""
        if reached:
            self.hit[kind_of(call)] += 1
        else:
            self.missed += 1

    def report(self) -> str:
        """Returns one line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.hit.most_common())
        return f"{self.hit.total()} points hit: {kinds}; {self.missed} not reached"


def kind_of(call: str) -> str:
    """Returns a call without numbers and folders: "pwritev journal"."""
    name, _, path = call.partition(" ")
    base = path.rpartition("/")[2]
    if path.startswith("socket"):
        return f"{name} socket"
    for word in ("journal-spare", "journal-", "page-", ".msg", "reserve", "node", "complete"):
        if word in base:
            return f"{name} {word.strip('-.')}"
    return f"{name} folder"


def spread(calls: int, count: int, only: tuple[str, ...] = ()) -> list[Plan]:
    """Returns plans for `count` calls out of `calls`: killed before, in the middle, and behind them in turn."""
    actions = (KILL, TEAR, KILL_AFTER)
    return [Plan(1 + index * calls // count, actions[index % 3], only=only) for index in range(count)]


class SingleNode:
    """A node with files of its own in `folder`, the load on it, and what the load was told."""

    def __init__(self, launcher: Launcher, folder: Path, store: Path | None = None) -> None:
        self.store = folder / "data" if store is None else store
        self.store.mkdir(parents=True, exist_ok=True)
        port = free_port()
        xml = write_broker_xml(folder, port, more=core_elements(), data=self.store)
        self.process = NodeProcess(launcher, xml, self.store)
        self.url = f"tcp://127.0.0.1:{port}"
        self.load = Workload()

    def measure(self, only: tuple[str, ...] = ()) -> int:
        """Returns the number of calls of a whole life: start, load, stop. `only` is that of a plan."""
        self.process.start(Plan(only=only))
        self.process.until_ready()
        asyncio.run(self.play())
        assert self.load.finished
        assert self.process.end(signal.SIGTERM) == 0
        return self.process.calls()[0]

    def live(self, plan: Plan) -> bool:
        """Starts the node and plays the load until the plan ends it; True if it did."""
        self.process.start(plan)
        if self.process.until_printed("ready"):
            asyncio.run(self.play())
            if self.load.finished and not self.process.ended():
                self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return self.process.calls()[0] >= plan.at

    def fail(self, plan: Plan) -> int:
        """Starts the node, whose disk fails at a call, and plays the load to the end of the node.

        Returns its exit status, or 0 for a node that lives: only a large message was refused.
        """
        self.process.start(plan)
        if self.process.until_printed("ready"):
            asyncio.run(self.play())
            assert not self.load.finished, f"the load goes on\n{self.process.log()}"
            if LARGE_REFUSED in self.process.log() and DISK_ERROR not in self.process.log():
                self.process.end(signal.SIGKILL)
                return 0
        return self.process.wait()

    async def play(self) -> None:
        """Plays the load to its end, or to that of the node."""
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ClientError):
                await self.load.play(self.url)

    def check(self) -> None:
        """Starts the node again: everything confirmed is there, once, and nothing else is left behind."""
        self.process.start()
        self.process.until_ready()
        try:
            asyncio.run(self._asked())
            assert self.process.end(signal.SIGTERM) == 0
            log = self.process.log()
            assert [word for word in BUGS if word in log] == [], log
            assert [str(each) for each in self.store.rglob("*.msg")] == []
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.process.log()}") from None

    async def _asked(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.load.check(self.url)

    def close(self) -> None:
        """Ends the process."""
        self.process.close()


def through(
    plans: list[Plan], node_for: Callable[[int], SingleNode], in_between: Callable[[SingleNode, int], None]
) -> Points:
    """Runs a node of its own for each plan. `in_between` gets it when it has ended, before the check."""
    points = Points()
    for index, plan in enumerate(plans):
        node = node_for(index)
        try:
            reached = node.live(plan)
            points.note(reached, node.process.calls()[1])
            in_between(node, index)
            node.check()
        except AssertionError as error:
            raise AssertionError(f"{plan}, {node.process.calls()}: {error}") from None
        finally:
            node.close()
    return points
