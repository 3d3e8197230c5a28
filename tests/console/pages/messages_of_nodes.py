"""Messages in the queues of the tests' nodes."""

from __future__ import annotations

from collections.abc import Sequence

from atalanta.client import Message, connect


async def fill(place: str, queue: str, messages: Sequence[Message]) -> None:
    """Sends messages to a queue at one node, which it creates if needed."""
    async with connect(f"tcp://{place}?stay=true", user="admin", password="secret") as connection:
        await connection.create_queue(queue, routing="anycast", ignore_existing=True)
        producer = await connection.producer(f"{queue}::{queue}")
        for message in messages:
            await producer.send(message)


async def count(place: str, queue: str) -> int:
    async with connect(f"tcp://{place}?stay=true", user="admin", password="secret") as connection:
        return int((await connection.query_queue(queue)).message_count)


def texts(number: int) -> list[Message]:
    return [Message(text=f"body {each}", properties={"number": each}) for each in range(number)]
