"""Which queues of an address get a message (BindingsImpl, LocalQueueBinding.getRoutingName)."""

from __future__ import annotations

from tests.kernel.bench import Bench, consume


def test_anycast_queues_of_an_address_share_its_messages() -> None:
    bench = Bench()
    first = bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    topic = bench.queue("topic", "orders", 0)
    session = bench.session()
    for number in range(4):
        session.send(bench.now, bench.message("orders", bytes([number])), number)
    bench.settle()
    assert (first.message_count, second.message_count, topic.message_count) == (2, 2, 4)
    assert first.message_count + second.message_count == 4


def test_anycast_queues_with_consumers_are_preferred_and_filters_obeyed() -> None:
    bench = Bench()
    first = bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    red = bench.queue("red", "orders", 1, "colour = 'red'")
    session = bench.session()
    consume(session, bench, "second", credits=0)
    for number in range(3):
        session.send(bench.now, bench.message("orders", bytes([number])), number)
    bench.settle()
    assert (first.message_count, second.message_count, red.message_count) == (0, 3, 0)


def test_a_fully_qualified_name_reaches_that_queue_alone() -> None:
    bench = Bench()
    first = bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    session = bench.session()
    for number in range(3):
        session.send(bench.now, bench.message("orders::second", bytes([number])), number)
    bench.settle()
    assert (first.message_count, second.message_count) == (0, 3)


def test_deleting_one_anycast_queue_leaves_the_others_bound() -> None:
    from atalanta.kernel import catalogue

    bench = Bench()
    bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    catalogue.delete_queue(bench.broker, bench.now, "first", "deleted")
    session = bench.session()
    session.send(bench.now, bench.message("orders", b"a"), 1)
    bench.settle()
    assert second.message_count == 1
    assert [queue.name for queue in bench.broker.addresses["orders"].queues()] == ["second"]
