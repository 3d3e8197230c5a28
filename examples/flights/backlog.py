"""What waits in the queues of the nodes, and what the nodes forwarded to each other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from atalanta.client import Connection, connect
from examples.flights.airports import (
    AIRPORTS,
    ALERTS_AIRPORT,
    ALERTS_QUEUE,
    ARCHIVE_QUEUE,
    DELAYS_QUEUE,
    OPERATOR_LOGIN,
    WINDOWS_QUEUE,
    Airport,
)

LOOK_S = 0.25


@dataclass(frozen=True)
class Depth:
    """`messages` that wait in `queue` at the node of `airport`."""

    airport: str
    queue: str
    messages: int


def queues_of(airport: Airport) -> list[str]:
    """The demo's queues at a node."""
    shared = [ARCHIVE_QUEUE, DELAYS_QUEUE, WINDOWS_QUEUE]
    return [*shared, ALERTS_QUEUE] if airport == ALERTS_AIRPORT else shared


async def depths(airport: Airport) -> list[Depth]:
    """Of every queue of the demo at one node."""
    async with operator(airport) as connection:
        return [
            Depth(airport.code, queue, (await connection.query_queue(queue)).message_count)
            for queue in queues_of(airport)
        ]


def operator(airport: Airport) -> Connection:
    """A connection of the user who may look at everything."""
    return connect(
        f"{airport.server}?stay=true&reconnectAttempts=20&initialConnectAttempts=20&retryInterval=250",
        user=OPERATOR_LOGIN.user,
        password=OPERATOR_LOGIN.password,
    )


async def until_empty(queues: list[str]) -> None:
    """Returns when the named queues are empty at every node."""
    while True:
        nodes = await asyncio.gather(*(depths(airport) for airport in AIRPORTS))
        if not any(depth.messages for node in nodes for depth in node if depth.queue in queues):
            return
        await asyncio.sleep(LOOK_S)
