"""Messages follow consumers: redistribution."""

from __future__ import annotations

import pytest

from atalanta.cluster.connection import redistribution
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.wire.core.packets.logview import LogLease
from tests.cluster.cluster_rig import Client, Rig, count, node_of, remote_consumers


def stocked(rig: Rig, number: int, **options: object) -> tuple[list[object], Client]:
    """Two nodes, `number` orders at the first, and a consumer at the second that has just come."""
    hosts = rig.cluster(2, **options)
    producer = rig.stored(hosts[0], "orders", [bytes([each]) for each in range(number)], ANYCAST)
    rig.run(0.2)
    assert count(hosts[0], "orders") == number
    return list(hosts), producer


def test_a_local_consumer_that_comes_in_time_keeps_them(rig: Rig) -> None:
    stocked(rig, 5, delay_ms=1_000)
    elsewhere = rig.consuming(rig.hosts[1], known_at=rig.hosts[0])
    here = rig.consuming(rig.hosts[0])
    rig.run(3)
    assert len(here.bodies) == 5 and elsewhere.bodies == []


def test_when_the_last_local_consumer_leaves_messages_go_on_and_also_those_that_come_later() -> (
    None
):
    rig = Rig()
    hosts = rig.cluster(2, delay_ms=0)
    here, there = rig.client(hosts[0]), rig.client(hosts[1])
    there.consume("orders")
    here.consume("orders", "colour = 'red'")
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    rig.until(lambda: remote_consumers(hosts[1], hosts[0], "orders") == 1)
    # Kept off the wire, so that they are parked here: only a local consumer takes red ones.
    rig.network.block("n0", "n1")
    rig.run(10)
    producer = rig.client(hosts[0])
    for colour in ("blue", "blue"):
        producer.publish("orders", colour.encode(), ANYCAST, colour=colour)
    rig.run(1)
    assert count(hosts[0], "orders") == 2
    rig.network.heal()
    rig.formed()
    rig.until(lambda: len(there.bodies) == 2)
    here.close()
    rig.run(1)
    assert count(hosts[0], "orders") == 0


def test_off_and_strict_never_redistribute_off_with_redistribution_does() -> None:
    for mode, moves in (("OFF", False), ("STRICT", False), ("OFF_WITH_REDISTRIBUTION", True)):
        rig = Rig()
        hosts = rig.cluster(1, delay_ms=0, mode=mode)
        producer = rig.client(hosts[0])
        producer.publish("orders", b"x", ANYCAST)
        rig.run(1)
        second = rig.node(delay_ms=0, mode=mode)
        second.start()
        rig.formed()
        consumer = rig.consuming(second)
        rig.run(3)
        assert (consumer.bodies == [b"x"]) == moves, mode


def test_redistributed_messages_are_new_ones_without_marks(rig: Rig) -> None:
    stocked(rig, 1, delay_ms=0)
    consumer = rig.consuming(rig.hosts[1])
    rig.until(lambda: len(consumer.bodies) == 1)
    names = consumer.messages[0].message.properties.names()
    assert not [name for name in names if name.startswith("_AMQ_ORIG") or name == "_AMQ_ROUTE_TO"]
    assert consumer.messages[0].delivery_count == 1


def test_a_lease_of_the_log_view_is_no_consumer_to_peers_and_keeps_messages_here(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    driver = rig.client(hosts[0])
    driver.send(
        LogLease(correlation=1, queue="orders", group="spark", owner="driver", ttl_ms=3_000)
    )
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    assert remote_consumers(hosts[1], hosts[0], "orders") == 0
    rig.sender(hosts[0], "orders", [bytes([number]) for number in range(4)], ANYCAST)
    rig.run(1)
    # A lease counts as a consumer here, so the two share; nothing that stays is moved later.
    kept = count(hosts[0], "orders")
    assert (kept, len(consumer.bodies)) == (2, 2)
    rig.run(1)
    assert count(hosts[0], "orders") == kept
    # The driver does not come back: when its lease is over, messages follow the consumer.
    rig.until(lambda: len(consumer.bodies) == 4)


def test_an_update_of_a_queue_reaches_the_peers_with_its_consumers(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    consumer = rig.consuming(hosts[1], known_at=hosts[0])
    changes = QueueChanges()
    changes.filter_text = "colour = 'red'"
    changes.non_destructive = True
    broker = node_of(hosts[1]).broker
    broker.queue_registry.update(rig.world.now, "orders", changes)
    rig.run(1)
    assert remote_consumers(hosts[0], hosts[1], "orders") == 1
    producer = rig.client(hosts[0])
    producer.publish("orders", b"1", ANYCAST, colour="red")
    producer.publish("orders", b"2", ANYCAST, colour="green")
    rig.until(lambda: consumer.bodies == [b"1"])
    rig.run(1)
    assert count(hosts[0], "orders") == 1, "the peer's queue does not take the green one any more"
    assert count(hosts[1], "orders") == 1, "and keeps what was consumed"


def test_a_non_destructive_queue_is_not_redistributed(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    changes = QueueChanges()
    changes.non_destructive = True
    node_of(hosts[0]).broker.queue_registry.update(rig.world.now, "orders", changes)
    producer = rig.client(hosts[0])
    producer.publish("orders", b"1", ANYCAST)
    rig.until(lambda: count(hosts[0], "orders") == 1)
    consumer = rig.consuming(hosts[1])
    rig.run(2)
    assert count(hosts[0], "orders") == 1 and consumer.bodies == []


def test_what_was_moved_and_is_not_yet_on_disk_does_not_hide_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redistribution, "SCAN_MAX", 3)
    monkeypatch.setattr(redistribution, "MOVES_MAX", 3)
    rig = Rig()
    stocked(rig, 12, delay_ms=0)
    consumer = rig.consuming(rig.hosts[1])
    rig.until(lambda: len(consumer.bodies) == 12, 2)
    assert consumer.bodies == [bytes([each]) for each in range(12)]
