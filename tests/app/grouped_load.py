"""A load with message groups on a replicated group of processes: one sender, three consumers, and what each got."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass

from atalanta.client import ConnectionLost, Message, connect
from tests.waiting import DEADLINE_S, reached

GROUPS = 6
CONSUMERS = 3


@dataclass
class Arrival:
    """Message `number` of `group` at a consumer, from a member's port; `done`: its acknowledgement was confirmed."""

    group: str
    number: int
    port: int
    consumer: int
    done: bool = False


class GroupedLoad:
    """The running load. Groups go on over all failovers; each generation adds new ones, which need an owner."""

    def __init__(self, url: str) -> None:
        self.sent: Counter[str] = Counter()  # confirmed messages of each group; they are numbered from 0
        self.arrivals: list[Arrival] = []
        self.closed: set[tuple[int, int]] = set()  # (port, consumer): it was closed on purpose
        self.generation = 0
        self._url = url
        self._next: Counter[str] = Counter()
        self._open = [True] * CONSUMERS
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts sender and consumers."""
        self._tasks = [asyncio.create_task(self._send())]
        self._tasks += [asyncio.create_task(self._consume(index)) for index in range(CONSUMERS)]

    async def _send(self) -> None:
        """Sends batches, each of which waits for its confirmation. No error is expected: sends are repeated."""
        async with connect(self._url) as connection, await connection.producer("orders") as producer:
            while not self._stopping:
                before = Counter(self._next)
                for index in range(2 * GROUPS):
                    prefix = "all" if index % 2 else f"new{self.generation}"
                    group = f"{prefix}-{index // 2}"
                    number = self._next[group]
                    self._next[group] += 1
                    name = f"{group} {number}"
                    await producer.send_soon(Message(name, group_id=group, duplicate_id=name))
                await producer.drain()
                self.sent.update(self._next - before)
                await asyncio.sleep(0.03)

    async def _consume(self, index: int) -> None:
        """Consumes until it is told to close. Only an acknowledgement whose connection is lost may fail."""
        async with connect(self._url + "&blockOnAcknowledge=true") as connection:
            consumer = await connection.consumer("orders")
            while self._open[index]:
                message = await consumer.receive(0.2)
                if message is None:
                    continue
                assert message.text is not None and message.group_id is not None
                assert connection.server is not None
                number = int(message.text.rpartition(" ")[2])
                arrival = Arrival(message.group_id, number, connection.server.port, index)
                self.arrivals.append(arrival)
                with contextlib.suppress(ConnectionLost):
                    await message.acknowledge()
                    arrival.done = True
            self.closed.add((connection.server.port if connection.server else 0, index))

    async def close_owner(self, group: str) -> None:
        """Closes the consumer of a group."""
        index = next(each.consumer for each in reversed(self.arrivals) if each.group == group)
        self._open[index] = False
        await self._tasks[1 + index]

    def turns(self) -> list[int]:
        """Returns the turn of each arrival: how often the service had moved, as the arrivals show."""
        found = [0]
        for before, each in itertools.pairwise(self.arrivals):
            found.append(found[-1] + (before.port != each.port))
        return found

    def owners(self) -> int:
        """Returns how many pairs of a turn and a consumer have had messages."""
        return len({(turn, each.consumer) for turn, each in zip(self.turns(), self.arrivals, strict=True)})

    def report(self) -> str:
        """Returns one line."""
        again = len(self.arrivals) - len({(each.group, each.number) for each in self.arrivals})
        return f"{self.sent.total()} confirmed messages of {len(self.sent)} groups, {again} came again unacknowledged"

    async def served(self, port: int, count: int = 60) -> None:
        """Waits until the member at `port` has delivered `count` more messages."""
        begin = len(self.arrivals)
        async with asyncio.timeout(DEADLINE_S):
            while sum(each.port == port for each in self.arrivals[begin:]) < count:
                for task in self._tasks:
                    if task.done():
                        task.result()
                await asyncio.sleep(0.01)

    async def finish(self) -> None:
        """Ends the sender, and the consumers once everything that was confirmed has arrived."""
        self._stopping = True
        await self._tasks[0]
        await reached(lambda: not self._missing())
        self._open = [False] * CONSUMERS
        await asyncio.gather(*self._tasks)

    async def cancel(self) -> None:
        """Ends all at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _missing(self) -> list[str]:
        """Returns the groups of which a confirmed message has not arrived."""
        there = {(each.group, each.number) for each in self.arrivals}
        return [f"{group} {n}" for group, count in self.sent.items() for n in range(count) if (group, n) not in there]

    def check(self) -> None:
        """Checks the groups' order, their owners, and that nothing comes after its confirmed acknowledgement."""
        by_group: dict[str, list[Arrival]] = defaultdict(list)
        for each in self.arrivals:
            by_group[each.group].append(each)
        problems = self._missing()
        for group, arrivals in by_group.items():
            problems += group_problems(group, arrivals, self.closed)
        assert not problems, "\n".join(problems[:20])


def group_problems(group: str, arrivals: list[Arrival], closed: set[tuple[int, int]]) -> list[str]:
    """Returns what is wrong with the arrivals of one group, in their order.

    Where the member or the consumer has changed, the group goes on with its first message without a confirmed
    acknowledgement. In between each message follows the one before it.
    """
    found = []
    done = -1
    for before, each in zip([None, *arrivals], arrivals, strict=False):
        if each.number <= done:
            found.append(f"{group} {each.number} came again at consumer {each.consumer}: it was acknowledged")
        if before is None:
            expected = range(1)
        elif before.port != each.port or before.consumer != each.consumer:
            # An acknowledgement without an answer may have arrived, or not.
            expected = range(done + 1, before.number + 2)
        else:
            expected = range(before.number + 1, before.number + 2)
        if each.number not in expected:
            found.append(f"{group}: {each.number} of consumer {each.consumer} is not in {expected}")
        if before is not None and before.port == each.port and before.consumer != each.consumer:
            if (before.port, before.consumer) not in closed:
                found.append(f"{group}: consumers {before.consumer} and {each.consumer} of one member have it")
        if each.done:
            done = max(done, each.number)
    return found


@contextlib.asynccontextmanager
async def grouped(url: str) -> AsyncIterator[GroupedLoad]:
    """Yields a running load, and checks it afterwards."""
    load = GroupedLoad(url)
    load.start()
    try:
        yield load
        await load.finish()
    except BaseException:
        await load.cancel()
        raise
    load.check()
