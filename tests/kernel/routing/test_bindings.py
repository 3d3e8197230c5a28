"""Which queues of an address get a message (BindingsImpl, LocalQueueBinding.getRoutingName)."""

from __future__ import annotations

from atalanta.kernel.routing.bindings import ON_DEMAND, RemoteBinding
from atalanta.message.properties import Byte
from tests.kernel.broker_rig import Bench, consume


def test_anycast_queues_of_an_address_share_its_messages(bench: Bench) -> None:
    first = bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    topic = bench.queue("topic", "orders", 0)
    session = bench.session()
    for number in range(4):
        session.send(bench.now, bench.message("orders", bytes([number])), number)
    bench.settle()
    assert (first.message_count, second.message_count, topic.message_count) == (2, 2, 4)
    assert first.message_count + second.message_count == 4


def test_anycast_queues_with_consumers_are_preferred_and_filters_obeyed(bench: Bench) -> None:
    first = bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    red = bench.queue("red", "orders", 1, "colour = 'red'")
    session = bench.session()
    consume(session, bench, "second", credits=0)
    for number in range(3):
        session.send(bench.now, bench.message("orders", bytes([number])), number)
    bench.settle()
    assert (first.message_count, second.message_count, red.message_count) == (0, 3, 0)


def test_a_fully_qualified_name_reaches_that_queue_alone(bench: Bench) -> None:
    first = bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    session = bench.session()
    for number in range(3):
        session.send(bench.now, bench.message("orders::second", bytes([number])), number)
    bench.settle()
    assert (first.message_count, second.message_count) == (0, 3)


def test_deleting_one_anycast_queue_leaves_the_others_bound(bench: Bench) -> None:
    bench.queue("first", "orders", 1)
    second = bench.queue("second", "orders", 1)
    bench.broker.queue_registry.delete(bench.now, "first", "deleted")
    session = bench.session()
    session.send(bench.now, bench.message("orders", b"a"), 1)
    bench.settle()
    assert second.message_count == 1
    assert [queue.name for queue in bench.broker.addresses["orders"].queues()] == ["second"]


def remote(bench: Bench, name: str, address: str, routing_name: str) -> RemoteBinding:
    forward = bench.queue(f"sf.{name}", f"sf.{name}", 0)
    forward.spec.internal = True
    forward.internal = True
    forward.groupable = False
    made = RemoteBinding(
        bench.broker.bindings.take_id(), address, routing_name, name, 7, 1, forward, ON_DEMAND
    )
    bench.broker.addresses[address].add_remote(made)
    return made


def from_peer(bench: Bench, address: str, binding_id: int, routing_type: int) -> None:
    raw = binding_id.to_bytes(8, "big")
    message = bench.message(address, b"a", _AMQ_ROUTE_TO=raw, _AMQ_ROUTING_TYPE=Byte(routing_type))
    bench.broker.publisher.publish(bench.now, message, None, 0)
    bench.settle()


def test_a_peers_message_for_a_subscription_that_is_gone_reaches_no_other_one(bench: Bench) -> None:
    """The other subscriptions got their copies from the peer."""
    here = bench.queue("here", "topic", 0)
    elsewhere = remote(bench, "elsewhere", "topic", "elsewhere")
    from_peer(bench, "topic", 99, 0)
    assert here.message_count == 0
    assert elsewhere.forward.message_count == 0
    assert "route_to_unknown_binding" in [name for name, _ in bench.trace.events]


def test_a_peers_message_for_a_subscription_that_is_gone_and_another_one_is_reported(bench: Bench) -> None:
    here = bench.queue("here", "topic", 0)
    raw = here.id.to_bytes(8, "big") + (99).to_bytes(8, "big")
    message = bench.message("topic", b"a", _AMQ_ROUTE_TO=raw, _AMQ_ROUTING_TYPE=Byte(0))
    bench.broker.publisher.publish(bench.now, message, None, 0)
    bench.settle()
    assert here.message_count == 1
    assert ("route_to_unknown_binding", {"address": "topic", "bindings": "[99]"}) in bench.trace.events


def test_a_peers_message_for_an_anycast_queue_that_is_gone_finds_another_one_anywhere(bench: Bench) -> None:
    queue = bench.queue("work", "work", 1)
    bench.broker.queue_registry.delete(bench.now, "work", "deleted")
    bench.settle()
    bench.broker.address_registry.create(bench.broker.now, "work", True, False, False)
    elsewhere = remote(bench, "elsewhere", "work", "work")
    from_peer(bench, "work", queue.id, 1)
    assert elsewhere.forward.message_count == 1
    assert elsewhere.forward.live()[0].route_to == (7).to_bytes(8, "big")


def test_a_peers_message_for_one_queue_of_an_address_never_lands_in_another_one(bench: Bench) -> None:
    one = bench.queue("one", "work", 1)
    two = bench.queue("two", "work", 1)
    gone = two.id
    bench.broker.queue_registry.delete(bench.now, "two", "deleted")
    bench.settle()
    from_peer(bench, "work::two", gone, 1)
    assert one.message_count == 0, "the message went with its queue"
    two = bench.queue("two", "work", 1)
    from_peer(bench, "work::two", gone, 1)
    assert (one.message_count, two.message_count) == (0, 1), "it was made again"


def test_a_local_queue_wins_over_a_remote_one_unless_only_that_has_a_consumer(bench: Bench) -> None:
    here = bench.queue("work", "work", 1)
    away = remote(bench, "away", "work", "work")
    session = bench.session()
    for number in range(4):
        session.send(bench.now, bench.message("work", bytes([number])), number)
    bench.settle()
    assert (here.message_count, away.forward.message_count) == (4, 0)
    away.add_consumer(None, None)
    for number in range(4):
        session.send(bench.now, bench.message("work", bytes([number])), number)
    bench.settle()
    assert (here.message_count, away.forward.message_count) == (4, 4)
    away.connected = False
    session.send(bench.now, bench.message("work", b"x"), 1)
    bench.settle()
    assert (here.message_count, away.forward.message_count) == (5, 4)
    away.connected = True
    consume(session, bench, "work", credits=0)
    for number in range(4):
        session.send(bench.now, bench.message("work", bytes([number])), number)
    bench.settle()
    assert (here.message_count, away.forward.message_count) == (7, 6)
