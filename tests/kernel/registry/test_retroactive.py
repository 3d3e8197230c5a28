"""Retroactive addresses: a queue that comes late begins with the last messages of its address."""

from __future__ import annotations

from typing import Any

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.bindings import OFF, RemoteBinding
from atalanta.kernel.settings.broker_config import BrokerConfig
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint, notifications_of
from tests.kernel.registry.retroactive_rig import (
    ADDRESS,
    ANYCAST_RING,
    DIVERT,
    MULTICAST_RING,
    PREFIX,
    bodies,
    numbers,
    repository,
    restart,
    send,
    started,
    subscribe,
)
from tests.management.management_rig import REPLIES, Desk


def test_a_late_queue_gets_the_last_messages_in_order() -> None:
    bench = started()
    send(bench, *numbers(1, 5))
    bench.settle()
    late = subscribe(bench)
    send(bench, b"new")
    bench.settle()
    assert bodies(late) == [b"3", b"4", b"5", b"new"]
    assert bodies(subscribe(bench, "later")) == [b"4", b"5", b"new"]
    assert bodies(late) == [b"3", b"4", b"5", b"new"]


def test_copies_look_as_artemis_copies_do() -> None:
    bench = started()
    send(bench, b"x", _AMQ_ROUTING_TYPE=0, colour="red")
    bench.settle()
    copy = subscribe(bench).live()[0].message
    properties = copy.properties
    assert copy.address == "prices"
    assert copy.routing_type == 0
    assert properties.get("colour") == "red"
    assert properties.get("_AMQ_ORIG_ADDRESS") == "prices"
    assert properties.get("_AMQ_ORIG_QUEUE") == DIVERT
    assert properties.get("_AMQ_ORIG_ROUTING_TYPE") == 0


def test_resources_are_named_and_made_as_in_artemis() -> None:
    bench = started()
    broker = bench.broker
    assert sorted(broker.queues) == [ANYCAST_RING, MULTICAST_RING]
    for name in broker.queues:
        spec = broker.queues[name].spec
        assert (spec.address, spec.ring_size, spec.max_consumers) == (ADDRESS, 3, 0)
    assert list(broker.diverts.by_name) == [DIVERT]
    assert broker.addresses[ADDRESS].anycast and broker.addresses[ADDRESS].multicast


@pytest.mark.parametrize(("kind", "expected"), [(0, [b"topic", b"both"]), (1, [b"queue", b"both"])])
def test_each_routing_type_has_its_own(kind: int, expected: list[bytes]) -> None:
    bench = started()
    send(bench, b"topic", _AMQ_ROUTING_TYPE=0)
    bench.queue("there", "prices", 1)
    send(bench, b"queue", _AMQ_ROUTING_TYPE=1)
    send(bench, b"both")
    bench.settle()
    assert bodies(subscribe(bench, kind=kind)) == expected


def test_a_filter_takes_what_it_takes_of_what_is_kept() -> None:
    bench = started()
    send(bench, b"old", number=1)
    for number in (2, 1, 2):
        send(bench, b"%d" % number, number=number)
    bench.settle()
    assert bodies(subscribe(bench, filter_text="number = 2")) == [b"2", b"2"]
    assert bodies(subscribe(bench, "one", filter_text="number = 1")) == [b"1"]


@pytest.mark.parametrize("kind", [{"durable": False}, {"durable": False, "temporary": True}])
def test_queues_that_do_not_last_get_copies_too(kind: dict[str, Any]) -> None:
    bench = started()
    send(bench, b"1")
    send(bench, b"2", durable=False)
    bench.settle()
    assert bodies(subscribe(bench, **kind)) == [b"1", b"2"]


def test_what_is_on_its_way_to_the_disk_is_among_it() -> None:
    bench = started()
    send(bench, *numbers(1, 5))
    bench.broker.flush(bench.now)
    late = bench.queue("late", "prices", 0)
    send(bench, b"new")
    bench.settle()
    assert bodies(late) == [b"3", b"4", b"5", b"new"]


def test_a_message_for_later_waits_in_the_new_queue_and_in_the_ring() -> None:
    bench = started()
    bench.broker.scheduled.start()
    due = bench.now // 1_000_000 + 5_000
    send(bench, b"later", _AMQ_SCHED_DELIVERY=due)
    send(bench, b"now")
    bench.settle()
    first = subscribe(bench)
    assert bodies(first) == [b"now"]
    assert first.scheduled_count == 1
    second = subscribe(bench, "second")
    bench.now += 6 * SECOND
    bench.broker.now = bench.now
    bench.broker.on_timer(bench.now, "kernel.scheduled")
    bench.settle()
    for queue in (first, second):
        assert sorted(bodies(queue)) == [b"later", b"now"]


def test_what_has_expired_is_not_copied() -> None:
    bench = started()
    message = bench.message("prices", b"short")
    message.expiration = bench.now // 1_000_000 + 1_000
    bench.session().send(bench.now, message, 1)
    send(bench, b"long")
    bench.settle()
    bench.now += 2 * SECOND
    assert bodies(subscribe(bench)) == [b"long"]


def test_a_ring_or_last_value_queue_stays_what_it_is() -> None:
    bench = started(count=5)
    for value in ("a", "b", "a", "c"):
        send(bench, value.encode(), key=value)
    bench.settle()
    assert bodies(subscribe(bench, last_value_key="key")) == [b"b", b"a", b"c"]
    assert bodies(subscribe(bench, "ring", ring_size=2)) == [b"a", b"c"]


def test_a_consumed_queue_that_comes_again_begins_anew() -> None:
    bench = started()
    send(bench, *numbers(1, 4), _AMQ_ROUTING_TYPE=0)
    bench.settle()
    for _ in range(2):
        subscribe(bench)
        session = bench.session()
        consume(session, bench, "late")
        bench.settle()
        assert endpoint(session).bodies() == [b"2", b"3", b"4"]
        session.acknowledge(bench.now, 0, endpoint(session).message_ids[2], False, 0)
        session.close_consumer(bench.now, 0)
        bench.settle()
        session.delete_queue(bench.now, "late")
        bench.settle()


# -- restart --------------------------------------------------------------------------------------
def test_everything_is_there_after_a_restart_and_nothing_twice() -> None:
    bench = started()
    send(bench, *numbers(1, 5))
    bench.settle()
    subscribe(bench)
    restart(bench)
    assert bodies(bench.broker.queues["late"]) == [b"3", b"4", b"5"]
    send(bench, b"6")
    bench.settle()
    assert bodies(bench.broker.queues["late"]) == [b"3", b"4", b"5", b"6"]
    assert bodies(subscribe(bench, "later")) == [b"4", b"5", b"6"]
    bench.compact(bench.journal.last)
    restart(bench)
    assert bodies(bench.broker.queues["late"]) == [b"3", b"4", b"5", b"6"]
    assert bodies(subscribe(bench, "last")) == [b"4", b"5", b"6"]
    validate(bench.broker)


@pytest.mark.parametrize("count", [5, 2_500])
def test_after_a_crash_a_queue_is_there_with_all_its_copies_or_not_at_all(count: int) -> None:
    bench = started(count=count)
    send(bench, *numbers(1, count))
    bench.settle()
    before = bench.journal.last
    bench.queue("late", "prices", 0)
    after = bench.journal.last
    assert after - before == (1 if count == 5 else 3)
    ids = bench.broker.queues["late"].id
    records = bench.journal.records
    for durable in range(before, after + 1):
        bench.journal.records = [record for record in records if record[0] <= durable]
        bench.journal.durable = durable
        bench.restart()
        if durable == after:
            assert len(bodies(bench.broker.queues["late"])) == count
        else:
            assert "late" not in bench.broker.queues
            assert durable == before or bench.broker.bindings.next_id > ids
            assert len(bench.broker.store.messages) == count  # in both rings each


def test_a_queue_that_is_gone_and_its_copies_leave_nothing() -> None:
    bench = started()
    send(bench, *numbers(1, 5))
    bench.settle()
    used = bench.broker.memory.used_bytes
    subscribe(bench)
    bench.session().delete_queue(bench.now, "late")
    bench.settle()
    assert bench.broker.memory.used_bytes == used
    validate(bench.broker)


# -- pages ----------------------------------------------------------------------------------------
def test_what_lies_in_page_files_is_copied_from_there() -> None:
    bench = started(count=200)
    bench = Bench(bench.config, repository(count=200), True)
    bench.settings.add(ADDRESS, {"max_size_bytes": 20_000, "page_size_bytes": 20_000})
    bench.broker.resources.create(bench.now)
    for number in range(300):
        send(bench, b"%03d" % number + bytes(1_000), _AMQ_ROUTING_TYPE=0)
        bench.settle()
    assert bench.broker.queues[MULTICAST_RING].paged is not None
    late = subscribe(bench)
    assert [body[:3] for body in bodies(late)] == [b"%03d" % number for number in range(100, 300)]
    assert bench.broker.queues[MULTICAST_RING].message_count == 200


# -- clusters -------------------------------------------------------------------------------------
def test_an_address_that_only_a_peer_has_keeps_what_is_sent_to_it_here() -> None:
    bench = Bench(BrokerConfig(), repository())
    forward = bench.queue(PREFIX + "sf.peer", PREFIX + "sf.peer", 0, internal=True)
    address = Address("prices", True, True, True)
    bench.broker.address_registry.add(address)
    address.add_remote(RemoteBinding(77, "prices", "theirs", "theirsB", 5, 1, forward, OFF))
    assert address.retained is None
    send(bench, b"x", _AMQ_ROUTING_TYPE=0)
    bench.settle()
    assert bodies(subscribe(bench)) == [b"x"]
    restart(bench)
    assert bodies(subscribe(bench, "again")) == [b"x"]


def test_peers_are_not_told_of_the_rings() -> None:
    bench = Bench(BrokerConfig(), repository())
    notifications = notifications_of(bench.broker)
    bench.broker.add_observer(notifications)
    listener = bench.queue("listener", "activemq.notifications", 0, durable=False)
    bench.queue("mine", "prices", 0)
    notifications.send_queue_info(bench.now, listener, "")
    bench.settle()
    bench.broker.queue_registry.delete(bench.now, "mine", "gone")
    bench.broker.address_registry.delete(bench.broker.now, "prices")
    bench.settle()
    told = []
    for reference in listener.live():
        properties = reference.message.properties
        if str(properties.get("_AMQ_NotifType")).startswith("BINDING"):
            told.append((properties.get("_AMQ_NotifType"), properties.get("_AMQ_RoutingName")))
    added = ("BINDING_ADDED", "mine")
    assert [each for each in told if each[1] != "listener"] == [
        added,
        added,
        ("BINDING_REMOVED", "mine"),
    ]


def test_a_queue_that_goes_on_for_one_elsewhere_gets_no_copies() -> None:
    bench = started()
    send(bench, b"x")
    bench.settle()
    session = bench.session()
    session.identity.cluster = True
    session.create_queue(bench.now, QueueSpec("moved", "prices", 0))
    bench.settle()
    assert bodies(bench.broker.queues["moved"]) == []


# -- management -----------------------------------------------------------------------------------
def test_management_tells_what_is_there_for_a_retroactive_address() -> None:
    desk = Desk(BrokerConfig(), repository())
    desk.queue("late", "prices", 0)
    told = {
        resource: desk.get(resource, "RetroactiveResource")
        for resource in (
            "address.prices",
            f"address.{ADDRESS}",
            "queue.late",
            f"queue.{MULTICAST_RING}",
            f"divert.{DIVERT}",
        )
    }
    assert list(told.values()) == [False, True, False, True, True]
    listed = desk.json("broker", "listAddresses", "", 1, 100)
    assert isinstance(listed, dict)
    found = {row["name"]: row["retroactiveResource"] for row in listed["data"]}
    assert (found["prices"], found[ADDRESS]) == ("false", "true")


def test_an_operator_removes_the_address_with_its_rings() -> None:
    desk = Desk(BrokerConfig(), repository())
    desk.queue("late", "prices", 0)
    desk.ask("broker", "deleteAddress", "prices", True)
    assert list(desk.broker.queues) == [REPLIES]
    assert not desk.broker.diverts.by_name


def test_nobody_consumes_from_a_ring_and_a_filled_one_can_be_emptied() -> None:
    desk = Desk(BrokerConfig(), repository())
    desk.broker.address_registry.create(desk.broker.now, "prices", True, True, False)
    send(desk, *numbers(1, 3))
    desk.settle()
    with pytest.raises(BrokerError):
        consume(desk.session(), desk, MULTICAST_RING)
    desk.ask(f"queue.{MULTICAST_RING}", "removeAllMessages")
    assert bodies(subscribe(desk)) == []
