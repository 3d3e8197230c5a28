"""Message groups with consumers at all members: two programs, and each group in order at one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from atalanta.client import Connection, Consumer, Message, connect
from tests.broker_process import BrokerProcess
from tests.broker_xml import ORDERS, RETRIES, cluster, write_broker_xml
from tests.ports import free_port

pytestmark = pytest.mark.process

GROUPS = "abcdef"
EACH = 5
DEADLINE_S = 60
HANDLER = (
    '<grouping-handler name="groups"><type>{}</type><address>orders</address><timeout>5000</timeout>'
    "</grouping-handler>"
)

Taken = tuple[str, str]  # the group, and the text


class Pair:
    """Two nodes of a cluster that both have the queue `orders`."""

    def __init__(self, folder: Path, stack: ExitStack, balancing: str, handlers: bool) -> None:
        self.ports = [free_port(), free_port()]
        self.brokers: list[BrokerProcess] = []
        for number, port in enumerate(self.ports):
            more = f"<message-load-balancing>{balancing}</message-load-balancing>{RETRIES}"
            text = cluster(port, [self.ports[1 - number]], more) + ORDERS
            text += HANDLER.format("REMOTE" if number else "LOCAL") if handlers else ""
            self.brokers.append(BrokerProcess(write_broker_xml(folder / str(number), port, f"node-{number}", text)))
            stack.enter_context(self.brokers[-1])

    def url(self) -> str:
        servers = ",".join(f"tcp://127.0.0.1:{port}" for port in self.ports)
        return f"({servers})?reconnectAttempts=-1&retryInterval=100&blockOnAcknowledge=true"

    async def program(self, stack: list[Connection]) -> Consumer:
        """Returns the consumer of one more program, once it is at both nodes."""
        connection = await connect(self.url())
        stack.append(connection)
        while len(connection.topology) < 2:
            await asyncio.sleep(0.05)
        consumer = await connection.consumer("orders", members="all")
        while len(consumer.members) < 2:  # type: ignore[attr-defined]
            await asyncio.sleep(0.05)
        return consumer

    async def send(self, number: int, what: str) -> None:
        async with connect(f"tcp://127.0.0.1:{self.ports[number]}?stay=true") as connection:
            async with await connection.producer("orders") as producer:
                for index in range(EACH):
                    for group in GROUPS:
                        await producer.send(Message(text=f"{what}.{index}", group_id=group))


async def take(consumer: Consumer, into: list[Taken]) -> None:
    while True:
        message = await consumer.receive(5)
        if message is not None:
            into.append((str(message.group_id), str(message.text)))
            await message.acknowledge()


async def until_taken(count: int, *lists: list[Taken]) -> None:
    while sum(map(len, lists)) < count:
        await asyncio.sleep(0.02)


def owners(group: str, what: str, *lists: list[Taken]) -> list[int]:
    """Which programs took messages of the group, each once."""
    return [number for number, each in enumerate(lists) if any(one[0] == group and what in one[1] for one in each)]


def in_order(group: str, what: str, taken: list[Taken]) -> bool:
    found = [text for name, text in taken if name == group and text.startswith(what)]
    return found == [f"{what}.{index}" for index in range(EACH)]


@pytest.fixture
def pair(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(tmp_path, stack, *request.param)


@pytest.mark.parametrize("pair", [("OFF", False)], indirect=True)
def test_each_member_gives_a_group_to_one_program(pair: Pair) -> None:
    async def main() -> None:
        connections: list[Connection] = []
        first, second = [await pair.program(connections) for _ in range(2)]
        one: list[Taken] = []
        other: list[Taken] = []
        tasks = [asyncio.create_task(take(first, one)), asyncio.create_task(take(second, other))]
        for number in range(2):
            await pair.send(number, f"n{number}")
        await until_taken(2 * EACH * len(GROUPS), one, other)
        for number in range(2):
            for group in GROUPS:
                (owner,) = owners(group, f"n{number}", one, other)
                assert in_order(group, f"n{number}", (one, other)[owner])
        # The groups of a program that ends go to the other one, whole and in order.
        tasks[0].cancel()
        await connections[0].close()
        del other[:]
        for number in range(2):
            await pair.send(number, f"later{number}")
        await until_taken(2 * EACH * len(GROUPS), other)
        assert all(in_order(group, f"later{number}", other) for number in range(2) for group in GROUPS)
        tasks[1].cancel()
        await connections[1].close()

    asyncio.run(asyncio.wait_for(main(), DEADLINE_S))


@pytest.mark.parametrize("pair", [("ON_DEMAND", True)], indirect=True)
def test_with_a_grouping_handler_a_group_of_the_whole_cluster_is_one_programs(pair: Pair) -> None:
    async def main() -> None:
        connections: list[Connection] = []
        first, second = [await pair.program(connections) for _ in range(2)]
        one: list[Taken] = []
        other: list[Taken] = []
        tasks = [asyncio.create_task(take(first, one)), asyncio.create_task(take(second, other))]
        for number in range(2):
            await pair.send(number, f"n{number}")
        await until_taken(2 * EACH * len(GROUPS), one, other)
        for group in GROUPS:
            (owner,) = owners(group, "", one, other)
            assert all(in_order(group, f"n{number}", (one, other)[owner]) for number in range(2))
        for task in tasks:
            task.cancel()
        for connection in connections:
            await connection.close()

    asyncio.run(asyncio.wait_for(main(), DEADLINE_S))
