"""Notifications tell peers about queues and consumers."""

from __future__ import annotations

from tests.kernel.broker.notification_rig import listening, told
from tests.kernel.broker_rig import Bench, consume


def test_the_routing_name_is_the_queues_for_topics_and_the_addresses_for_anycast(bench: Bench) -> None:
    """LocalQueueBinding.getRoutingName: peers group bindings by it."""
    listening(bench)
    bench.queue("subscription", "topic", 0)
    work = bench.queue("mine", "work", 1)
    names = [
        (added["_AMQ_ClusterName"], added["_AMQ_RoutingName"], added["_AMQ_Address"])
        for added in told(bench, "BINDING_ADDED")[-2:]
    ]
    assert names == [
        ("subscriptionnode-a", "subscription", "topic"),
        ("minenode-a", "work", "work"),
    ]
    assert told(bench, "BINDING_ADDED")[-1]["_AMQ_Binding_ID"] == work.id


def test_consumers_are_announced_with_their_selector_and_their_number(bench: Bench) -> None:
    listening(bench)
    bench.queue("work")
    session = bench.session()
    consume(session, bench, "work", consumer_id=1)
    consume(session, bench, "work", "colour = 'red'", consumer_id=2)
    consume(session, bench, "work", consumer_id=3, browse=True)
    session.close_consumer(bench.now, 1)
    created = told(bench, "CONSUMER_CREATED")
    assert [(one["_AMQ_ConsumerCount"], one["_AMQ_FilterString"]) for one in created] == [
        (1, None),
        (2, "colour = 'red'"),
    ]
    closed = told(bench, "CONSUMER_CLOSED")
    assert [(one["_AMQ_ConsumerCount"], one["_AMQ_RoutingName"]) for one in closed] == [(1, "work")]
    bench.broker.queue_registry.delete(bench.now, "work", "deleted")
    assert len(told(bench, "BINDING_REMOVED")) == 1


def test_a_bridge_of_an_old_artemis_learns_of_consumers(bench: Bench) -> None:
    """Its filter, before 2.26, begins with `_AMQ_Binding_Type <> 2`, which is unknown for a missing property."""
    listening(bench)
    bench.queue("work")
    session = bench.session()
    consume(session, bench, "work", consumer_id=1)
    session.close_consumer(bench.now, 1)
    for kind in ("CONSUMER_CREATED", "CONSUMER_CLOSED"):
        (properties,) = told(bench, kind)
        assert properties["_AMQ_Binding_Type"] == 0
