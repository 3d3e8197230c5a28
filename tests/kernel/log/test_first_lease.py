"""The first lease of a queue: the non-durable messages that lie there become rows like all others."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.log.first_lease import STEP_MESSAGES
from atalanta.kernel.queue.paging.paged_queue import paged_queue_of
from atalanta.kernel.queue.reference import DONE
from atalanta.kernel.settings.repository import SettingValue
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


# -- large messages -----------------------------------------------------------------------------
IN_MEMORY: dict[str, SettingValue] = {}
IN_PAGES: dict[str, SettingValue] = {"max_size_bytes": 20_000, "page_size_bytes": 8_000}


def whole(bench: LargeBench, queue: str = "orders") -> int:
    """Returns the number of rows of the queue; every one must have its body."""
    views = bench.broker.log_views
    found = views.read(queue, "", 0, 1_000, 1 << 30, None).references
    for reference in found:
        body = reference.message.large
        assert body is not None and bench.folder.contents[body.file] == b"\x01" * 1_000
    return len(found)


@pytest.mark.parametrize("values", [IN_MEMORY, IN_PAGES])
def test_large_messages_are_rows_also_after_a_power_failure(values: dict[str, SettingValue]) -> None:
    bench = LargeBench(values)
    fill(bench, 30, durable=False, synced=False)
    bench.publish("orders", head=1_000)
    epoch, endpoint = lease(bench, "orders")
    assert not endpoint.answers
    bench.settle()
    assert endpoint.answers == [7] and whole(bench) == 31
    for _ in range(2):
        bench.power_cut()
        assert whole(bench) == 31
    bench.broker.log_views.ack_through("orders", "", "g", epoch, 31, RecordingEndpoint(), 1)
    bench.settle()
    assert bench.folder.contents == {} and files(bench) == 0


def test_two_leases_at_once_share_their_large_messages() -> None:
    bench = LargeBench()
    for name in ("a", "b"):
        bench.queue(name, "flights", 0)
    for _ in range(3):
        bench.publish("flights", durable=False, synced=False)
    bench.settle()
    answers = [lease(bench, name)[1] for name in ("a", "b")]
    bench.settle()
    assert [each.answers for each in answers] == [[7], [7]]
    bench.power_cut()
    assert whole(bench, "a") == whole(bench, "b") == 3


def test_a_body_that_cannot_be_synced_does_not_hinder_the_lease() -> None:
    bench = LargeBench()
    first = bench.publish("orders", durable=False, synced=False)
    bench.publish("orders", durable=False, synced=False)
    bench.settle()
    _, endpoint = lease(bench, "orders")
    Bench.settle(bench)
    bench.large_failed(first, "input/output error")
    bench.settle()
    assert endpoint.answers == [7] and whole(bench) == 2
    assert [fields["file"] for name, fields in bench.trace.events if name == "large_message_write_failed"] == [first]


@pytest.mark.parametrize("deleted", [False, True])
def test_large_messages_may_go_while_they_are_synced(deleted: bool) -> None:
    bench = LargeBench()
    fill(bench, 2, durable=False, synced=False)
    queue = bench.broker.queues["orders"]
    _, endpoint = lease(bench, "orders")
    Bench.settle(bench)
    if deleted:
        bench.broker.queue_registry.delete(bench.now, queue.name, "by a test")
    else:
        bench.broker.store.discard(list(queue.references[:1]))
    bench.settle()
    assert bool(endpoint.errors) == deleted and endpoint.answers == ([] if deleted else [7])
    assert len(bench.folder.contents) == (0 if deleted else 1)
    assert not bench.broker.log_views.first_leases and bench.broker.large.syncs == {}
    if not deleted:
        bench.power_cut()
        assert whole(bench) == 1


def test_messages_that_become_a_page_file_during_the_first_lease_are_rows() -> None:
    bench = bench_with({"max_size_bytes": 2_000_000, "page_size_bytes": 4 << 20})
    bodies = [f"n{number}" + "x" * 900 for number in range(2 * STEP_MESSAGES)]
    send(bench, bodies, "orders")
    paged = paged_queue_of(bench.broker.queues["orders"])
    assert paged is not None and len(paged.tail) > 100
    lease(bench, "orders")
    for _ in range(2):  # the lease, and the first step
        bench.journal.durable = bench.journal.last
        bench.broker.on_durable(bench.now, bench.journal.last)
    for reference in (tail := list(paged.tail)):
        assert reference.state != DONE
    bench.broker.paging.write_tail(paged)
    for reference in tail:
        bench.broker.store.drop(reference)
    bench.settle()
    for _ in range(2):
        assert rows(bench, "orders") == bodies
        bench.restart()


@pytest.mark.parametrize("values", [IN_MEMORY, IN_PAGES])
def test_a_large_message_whose_file_is_damaged_is_lost_and_the_reader_is_told(
    values: dict[str, SettingValue]
) -> None:
    bench = LargeBench(values)
    lease(bench, "orders")
    fill(bench, 30)
    bench.folder.damage(sorted(bench.folder.contents)[20], 10)
    for _ in range(2):
        bench.power_cut()
        assert whole(bench) == 29
        views = bench.broker.log_views
        assert [lost[:2] for lost in views.lost_ranges("orders", "", 0, 30)] == [(21, 21)]
