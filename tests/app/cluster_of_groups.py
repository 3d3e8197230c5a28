"""Several replicated groups of `atalanta run` processes in one cluster, and a load that crosses from one to another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from atalanta.client import ConnectionLost, connect
from tests.app.group import Group, Member
from tests.app.load import Load, number_of
from tests.broker_xml import REDISTRIBUTED
from tests.ports import free_port
from tests.waiting import DEADLINE_S, reached, until

FORWARDING = "$.artemis.internal.sf."


class ClusterOfGroups:
    """`with ClusterOfGroups(tmp_path) as cluster:` has `count` groups of two, each with a register of its own."""

    def __init__(self, folder: Path, count: int = 2) -> None:
        self.groups: list[Group] = []
        ports = [[free_port(), free_port()] for _ in range(count)]
        for number in range(count):
            base = folder / f"group{number}"
            base.mkdir()
            name = f"<group-name>group{number}</group-name>"
            foreign = [port for group in ports if group is not ports[number] for port in group]
            group = Group(
                base, policy=name, backup_policy=name, own="[ha]\nlease_ms = 1000\n", more=REDISTRIBUTED,
                ports=ports[number], foreign=foreign,
            )  # fmt: skip
            self.groups.append(group)

    def __enter__(self) -> ClusterOfGroups:
        with contextlib.ExitStack() as stack:
            for group in self.groups:
                stack.enter_context(group)
                group.start()
            self._processes = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._processes.close()


def active(group: Group) -> Member:
    """Waits until one member serves, and returns it."""
    until(lambda: len(group.active()) == 1, group.primary.log)
    return group.active()[0]


class CrossingLoad:
    """Messages that are sent to one group and consumed at another. `arrived` has their numbers in order."""

    def __init__(self, load: Load, target: Group) -> None:
        self.load = load
        self.arrived: list[int] = []
        self.at: set[int] = set()  # the ports of which they came
        self.again: list[int] = []  # they came after their acknowledgement was confirmed
        self.stopping = False
        self._target = target

    async def consume(self) -> None:
        """Consumes until `stopping`. Only an acknowledgement whose connection is lost may fail."""
        done: set[int] = set()
        url = f"{self._target.url}&blockOnAcknowledge=true&stay=true"
        async with connect(url) as connection:
            consumer = await connection.consumer("orders")
            while not self.stopping:
                message = await consumer.receive(0.2)
                if message is None:
                    continue
                number = number_of(message)
                self.arrived.append(number)
                assert connection.server is not None
                self.at.add(connection.server.port)
                if number in done:
                    self.again.append(number)
                with contextlib.suppress(ConnectionLost):
                    await message.acknowledge()
                    done.add(number)

    async def past(self, count: int) -> None:
        """Waits until `count` more messages have arrived of those that are sent from now on."""
        begin = self.load.next
        await reached(lambda: sum(each >= begin for each in self.arrived) >= count)


@contextlib.asynccontextmanager
async def crossing(cluster: ClusterOfGroups) -> AsyncIterator[CrossingLoad]:
    """Yields a running load from the first group to the last one. Afterwards each confirmed message has arrived there,
    once, and no queue of the cluster has any.
    """
    source, target = cluster.groups[0], cluster.groups[-1]
    async with connect(f"{source.url}&stay=true") as connection:
        crossing = CrossingLoad(Load(connection), target)
        sending = asyncio.create_task(crossing.load.run())
        consuming = asyncio.create_task(crossing.consume())
        try:
            yield crossing
            crossing.load.stopping = True
            await sending
            await reached(lambda: set(crossing.load.confirmed) <= set(crossing.arrived))
            async with asyncio.timeout(DEADLINE_S):
                while any([any((await left(group)).values()) for group in cluster.groups]):
                    await asyncio.sleep(0.05)
            crossing.stopping = True
            await consuming
        finally:
            for each in (sending, consuming):
                each.cancel()
            await asyncio.gather(sending, consuming, return_exceptions=True)
        assert crossing.again == []
        assert crossing.at == {each.port for each in target.members}


async def left(group: Group) -> dict[str, int]:
    """Returns how many messages are in the queue and in the store-and-forward queues of a group."""
    member = await asyncio.to_thread(active, group)
    async with connect(f"tcp://127.0.0.1:{member.port}") as connection:
        management = connection.management()
        names = await management.get("broker", "QueueNames")
        assert isinstance(names, list)
        found = [str(each) for each in names if str(each).startswith(FORWARDING) or each == "orders"]
        return {name: int(str(await management.get(f"queue.{name}", "MessageCount"))) for name in found}
