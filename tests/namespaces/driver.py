"""A client inside a network namespace, as a process: `send URL QUEUE FIRST COUNT` or `receive URL QUEUE COUNT SECONDS`.

Prints one JSON value: how many were confirmed, or the numbers that came (acknowledged one by one).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from atalanta.client import Message, connect
from atalanta.client.blocking import connect as connect_blocking


def send(url: str, queue: str, first: str, count: str) -> int:
    """Each confirmed before the next, with a duplicate id, so that a repeat after a lost answer is none."""
    with connect_blocking(url) as connection:
        producer = connection.producer(queue)
        for number in range(int(first), int(first) + int(count)):
            message = Message(text=f"{number}", properties={"_AMQ_DUPL_ID": f"{queue}/{number}"})
            producer.send(message)
    return int(count)


def receive(url: str, queue: str, count: str, seconds: str) -> list[int]:
    """Until `count` have come, or the time is over."""
    got: list[int] = []
    end = time.monotonic() + float(seconds)

    async def run() -> None:
        async with connect(url) as connection:
            consumer = await connection.consumer(queue)
            while len(got) < int(count) and time.monotonic() < end:
                message = await consumer.receive(max(0.1, end - time.monotonic()))
                if message is not None:
                    got.append(int(message.text or "-1"))
                    await message.acknowledge()

    asyncio.run(run())
    return got


def members(url: str) -> list[str]:
    """The nodes that the broker at `url` tells of, as host:port."""

    async def run() -> list[str]:
        async with connect(url) as connection:
            await connection.query_queue("none")
            return sorted(f"{member.host}:{member.port}" for member in connection.topology)

    return asyncio.run(run())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", url, queue, first, count]:
            print(json.dumps(send(url, queue, first, count)))
        case ["receive", url, queue, count, seconds]:
            print(json.dumps(receive(url, queue, count, seconds)))
        case ["members", url]:
            print(json.dumps(members(url)))
        case _:
            sys.exit(__doc__)
