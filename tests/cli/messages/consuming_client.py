"""A consumer that takes nothing and stays, while a test looks on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from atalanta.client.blocking import connect


@contextmanager
def consuming(
    at: str, queue: str, user: str | None = None, password: str | None = None
) -> Iterator[None]:
    """Its credit is there; what comes to it is not acknowledged."""
    with connect(f"tcp://{at}", user=user, password=password) as connection:
        consumer = connection.consumer(queue)
        yield
        consumer.close()
