"""Senders of last values, and consumers that hold what they received."""

from __future__ import annotations

from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.sessions.session import Session
from tests.kernel.broker_rig import Bench
from tests.kernel.queue.paging.paging_rig import numbers_of
from tests.kernel.queue.paging.special_paging_rig import reader, seen


def put(bench: Bench, numbers: range, values: int, durable: bool = True) -> None:
    """Message n has value n % values."""
    session = bench.session()
    for number in numbers:
        body = number.to_bytes(4, "big") + bytes(400)
        message = bench.message("orders", body, durable, key=str(number % values))
        session.send(bench.now, message, number)
        if number % 10 == 9:
            bench.settle()
    bench.settle()


def there(bench: Bench) -> list[int]:
    found = everything(bench.broker.queues["orders"])
    return numbers_of([each.message.body for each in found])


def held_by_a_consumer(bench: Bench) -> Session:
    """A consumer has 250, 550 of the same value lies in a file, and newer messages behind it."""
    put(bench, range(300), 300)
    holder = reader(bench, "key = '250'", credits=1)
    assert seen(holder) == [250]
    put(bench, range(300, 600), 300)  # every value anew
    put(bench, range(600, 700), 10_000)
    queue = bench.broker.queues["orders"]
    assert queue.delivering_count == 1 and queue.paged is not None and 550 in there(bench)
    return holder
