"""The first lease of a queue: the non-durable messages that lie there become rows like all others."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.log.first_lease import STEP_MESSAGES
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, consume
from tests.kernel.broker_rig import endpoint as endpoint_of
from tests.kernel.memory.large_rig import LargeBench, fill
from tests.kernel.queue.paging.paging_rig import SMALL, bench_with, files

TTL = 60 * SECOND


def send(bench: Bench, bodies: list[str], address: str = "flights") -> None:
    """Bodies that begin with "d" are durable."""
    session = bench.session()
    for number, body in enumerate(bodies):
        message = bench.message(address, body.encode(), durable=body.startswith("d"))
        session.send(bench.now, message, number)
    bench.settle()


def lease(bench: Bench, queue: str = "archive", epoch: int = 0) -> tuple[int, RecordingEndpoint]:
    endpoint = RecordingEndpoint()
    held = bench.broker.log_views.lease(bench.now, queue, "g", "me", TTL, epoch, endpoint, 7)
    return held.epoch, endpoint


def rows(bench: Bench, queue: str = "archive") -> list[str]:
    views = bench.broker.log_views
    position = views.position(queue)
    start = position.first - 1
    found: list[str] = []
    while start < position.last:
        chunk = views.read(queue, "", start, position.last, 0, None)
        found.extend(each.message.body.decode() for each in chunk.references)
        start = chunk.next
    return found


@pytest.mark.parametrize("bodies", [["n0", "n1"], ["n0", "d1", "n2", "d3"], ["d0", "n1"]])
def test_messages_that_lie_there_are_rows_also_after_a_restart(bench: Bench, bodies: list[str]) -> None:
    bench.queue("archive", "flights", 0)
    send(bench, bodies)
    epoch, endpoint = lease(bench)
    bench.settle()
    assert endpoint.answers == [7]
    assert rows(bench) == bodies
    invariants.validate(bench.broker)
    bench.restart()
    assert rows(bench) == bodies
    bench.compact(bench.journal.last)
    bench.restart()
    assert rows(bench) == bodies
    invariants.validate(bench.broker)
    views = bench.broker.log_views
    end = len(bodies)
    assert views.ack_through("archive", "", "g", epoch, end, RecordingEndpoint(), 1) == end
    bench.settle()
    bench.restart()
    assert rows(bench) == [] and bench.broker.store.messages == {}


def test_the_lease_is_granted_when_all_are_durable(bench: Bench) -> None:
    queue = bench.queue("archive", "flights", 0)
    bodies = [f"n{number}" for number in range(3 * STEP_MESSAGES + 5)]
    send(bench, bodies)
    _, first = lease(bench)
    _, second = lease(bench)
    steps = 0
    while not first.answers:
        durable = sum(each.durable for each in queue.references)
        assert durable <= STEP_MESSAGES * steps
        bench.journal.durable = bench.journal.last
        bench.broker.on_durable(bench.now, bench.journal.last)
        steps += 1
    assert steps >= 4 and not bench.broker.log_views.first_leases
    bench.settle()
    assert first.answers == second.answers == [7]
    assert rows(bench) == bodies


def test_a_message_of_two_queues_lies_in_both_leased_ones(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.queue(name, "flights", 0)
    send(bench, ["n0", "d1"])
    for name in ("a", "b"):
        lease(bench, name)
        bench.settle()
    bench.restart()
    assert [rows(bench, name) for name in ("a", "b")] == [["n0", "d1"]] * 2
    assert bench.broker.queues["c"].message_count == 1


def test_a_restart_before_the_lease_is_granted_leaves_only_rows(bench: Bench) -> None:
    bench.queue("archive", "flights", 0)
    send(bench, ["n0", "d1"])
    lease(bench)
    bench.restart()
    send(bench, ["n2"])
    lease(bench)
    bench.settle()
    found = rows(bench)
    bench.restart()
    assert rows(bench) == found and found[-2:] == ["d1", "n2"]


@pytest.mark.parametrize("taken", [0, 3, 120])
@pytest.mark.parametrize("kinds", ["n", "nd"])
def test_messages_in_page_files_are_rows_also_after_restarts(kinds: str, taken: int) -> None:
    """Some were taken by a consumer before; some of the others it has read into memory."""
    bench = bench_with(SMALL)
    bodies = [f"{kinds[number % len(kinds)]}{number}" + "x" * 900 for number in range(300)]
    send(bench, bodies, "orders")
    consumer = bench.session()
    consume(consumer, bench, "orders")
    while len(endpoint_of(consumer).message_ids) < taken:
        bench.settle()
    for message_id in endpoint_of(consumer).message_ids[:taken]:
        consumer.acknowledge(bench.now, 0, message_id, True, 0)
    consumer.close_consumer(bench.now, 0)
    bench.settle()
    left = bodies[taken:]
    epoch, endpoint = lease(bench, "orders")
    bench.settle()
    assert endpoint.answers == [7] and rows(bench, "orders") == left
    send(bench, ["n300"], "orders")
    left.append("n300")
    for step in range(3):
        invariants.validate(bench.broker)
        if step == 1:
            bench.compact(bench.journal.last)
        bench.restart()
        assert rows(bench, "orders") == left
    views = bench.broker.log_views
    views.ack_through("orders", "", "g", epoch, 301, RecordingEndpoint(), 1)
    bench.settle()
    assert bench.broker.queues["orders"].message_count == 0 and files(bench) == 0


def test_messages_of_page_files_that_a_restart_has_lost_stay_lost() -> None:
    bench = bench_with(SMALL)
    bodies = [("n" if number % 2 else "d") + f"{number}" + "x" * 900 for number in range(300)]
    send(bench, bodies, "orders")
    bench.restart()
    lease(bench, "orders")
    bench.settle()
    for _ in range(2):
        assert rows(bench, "orders") == [body for body in bodies if body.startswith("d")]
        invariants.validate(bench.broker)
        bench.restart()


def test_large_non_durable_messages_in_page_files_refuse_the_lease() -> None:
    bench = LargeBench({"max_size_bytes": 20_000, "page_size_bytes": 8_000})
    fill(bench, 30, durable=False)
    with pytest.raises(BrokerError, match="large non-durable messages in page files"):
        lease(bench, "orders")
    assert not bench.broker.queues["orders"].leased and not bench.broker.log_views.first_leases
