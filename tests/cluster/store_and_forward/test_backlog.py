"""Messages that come back from parking go to the end of a queue that has messages of its own, and exactly once."""

from __future__ import annotations

import pytest

from atalanta.cluster.store_and_forward import parked_messages
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import Rig, cluster_of, count, queue_of, remote_consumers, waiting
from tests.cluster.store_and_forward.parked_rig import TIMEOUT, Parked, numbers


def newer(play: Parked, first: int, end: int, **properties: object) -> None:
    """Sent while the member is away, and nobody takes them."""
    before = count(play.hosts[0], "orders")
    for body in numbers(first, end):
        play.publish(body, **properties)
    play.rig.until(lambda: count(play.hosts[0], "orders") == before + end - first)


@pytest.mark.parametrize("restart", [False, True])
def test_it_comes_behind_what_is_there(restart: bool) -> None:
    play = Parked(colour="red")
    play.crash_far()
    newer(play, 5, 10, colour="blue")
    picky = play.rig.client(play.hosts[0])
    picky.on_packet = lambda packet: None  # type: ignore[method-assign]
    picky.consume("orders", "colour = 'red'")
    play.rig.run(TIMEOUT + 1)
    assert waiting(play.hosts[0], "node-1") == 0
    if restart:
        play.hosts[0].crash()
        play.hosts[0].start()
    else:
        picky.close()
    near = play.consumer(play.hosts[0])
    play.rig.run(1)
    assert near.bodies == numbers(5, 10) + numbers(0, 5)


@pytest.mark.parametrize("seconds", [0, 0.5, 1, 3])
@pytest.mark.parametrize("near_first", [False, True])
def test_it_comes_once_though_both_nodes_crash(near_first: bool, seconds: float) -> None:
    """The member while messages are parked for it, this node while they come back; then both are there again."""
    play = Parked(unsent=0)
    near, far = play.hosts
    for body in numbers(0, 60):
        play.publish(body)
    play.rig.until(lambda: waiting(near, "node-1") == 60)
    cluster_of(near).parked.moves_max = 2
    near.late, near.late_by_ns = parked_messages.PARKED, 100_000_000
    play.crash_far()
    before = play.consumer(near)
    play.rig.until(lambda: 10 < len(before.bodies), TIMEOUT + 5)
    taken = list(before.bodies)
    near.crash()
    play.rig.run(seconds)
    for host in (near, far) if near_first else (far, near):
        host.start()
        play.rig.run(seconds)
    play.rig.formed()
    last = [play.consumer(near), play.consumer(far)]
    play.rig.until(lambda: waiting(near, "node-1") == 0, TIMEOUT + 20)
    play.rig.run(5)
    found = [body for each in last for body in each.bodies]
    again = [body for body in found if body in taken]
    assert len(found) == len(set(found))
    assert sorted({*taken, *found}) == numbers(0, 60)
    assert len(again) <= 10, "those whose acknowledgement was lost in the crash"


def test_what_two_members_do_not_get_comes_back_from_both() -> None:
    play = Parked(3, unsent=0)
    play.consumer(play.hosts[2])
    play.rig.until(lambda: remote_consumers(play.hosts[0], play.hosts[2], "orders") == 1)
    play.rig.network.block("n0", "n2")
    for body in numbers(0, 20):
        play.publish(body)
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 10)
    play.rig.until(lambda: waiting(play.hosts[0], "node-2") == 10)
    play.hosts[2].crash()
    play.crash_far()
    newer(play, 20, 25)
    play.rig.run(TIMEOUT + 1)
    near = play.consumer(play.hosts[0])
    play.rig.run(1)
    assert sorted(near.bodies) == numbers(0, 25)


def test_higher_priorities_go_first() -> None:
    play = Parked(unsent=0)
    rig = play.rig
    send_by_priority(play, 0, 6)
    rig.until(lambda: waiting(play.hosts[0], "node-1") == 6)
    play.crash_far()
    rig.run(1)
    send_by_priority(play, 6, 12)
    rig.until(lambda: count(play.hosts[0], "orders") == 6)
    slow = rig.client(play.hosts[0])
    slow.on_packet = lambda packet: None  # type: ignore[method-assign]
    slow.send(CreateConsumer(0, "orders", None, False, True, 0))
    rig.run(TIMEOUT + 1)
    near = play.consumer(play.hosts[0])
    rig.run(1)
    assert near.bodies == [bytes([each]) for each in (7, 9, 11, 1, 3, 5, 6, 8, 10, 0, 2, 4)]


def send_by_priority(play: Parked, first: int, end: int) -> None:
    for body in numbers(first, end):
        message = Message.create("orders", body, 4, True, 1, 7 if body[0] % 2 else 2)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        message.properties_changed()
        play.producer.send(SendMessage(message, True, 100 + body[0], 1))


def test_a_group_keeps_its_consumer() -> None:
    play = Parked(_AMQ_GROUP_ID="g")
    play.crash_far()
    newer(play, 5, 10, _AMQ_GROUP_ID="g")
    play.rig.run(TIMEOUT + 1)
    near = [play.consumer(play.hosts[0]) for _ in range(2)]
    play.rig.run(1)
    found = sorted([near[0].bodies, near[1].bodies])
    assert found[0] == [] and sorted(found[1]) == numbers(0, 10)


@pytest.mark.parametrize("under_way", [False, True])
def test_who_comes_while_others_get_theirs_gets_all_that_is_for_it(
    under_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look has many parts, and may have passed what is for the consumer that comes."""
    play = Parked(unsent=0)
    near, far = play.hosts
    play.consumer(far, "archive")
    play.rig.until(lambda: remote_consumers(near, far, "archive") == 1)
    for body in numbers(0, 5):
        play.publish(body)
    for body in numbers(0, 4):
        play.producer.publish("prices", body, MULTICAST)
    play.rig.until(lambda: waiting(near, "node-1") == 9)
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    cluster_of(near).parked.moves_max = 1
    monkeypatch.setattr(parked_messages, "SCAN_MAX", 2)
    near.late, near.late_by_ns = parked_messages.PARKED, 20_000_000
    if under_way:
        play.consumer(near, "archive")
        play.rig.until(lambda: waiting(near, "node-1") < 9)
    consumer = play.consumer(near)
    play.rig.run(5)
    assert consumer.bodies == numbers(0, 5)
    assert waiting(near, "node-1") == (0 if under_way else 4)


@pytest.mark.parametrize("restart", [False, True])
def test_a_queue_that_pages_takes_it_too(rig: Rig, restart: bool) -> None:
    rig.node(memory_bytes=60_000)
    rig.node()
    rig.form()
    rig.consuming(rig.hosts[1])
    slow = rig.client(rig.hosts[0])
    slow.on_packet = lambda packet: None  # type: ignore[method-assign]
    slow.send(CreateConsumer(0, "orders", None, False, True, 0))
    slow.send(FlowToken(0, 10_000))
    rig.until(lambda: remote_consumers(rig.hosts[0], rig.hosts[1], "orders") == 1)
    rig.network.block("n0", "n1")
    producer = rig.client(rig.hosts[0])
    for number in range(200):
        producer.publish("orders", b"%03d" % number + bytes(2_000), ANYCAST)
        if number % 20 == 19:
            rig.run(0.02)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") + count(rig.hosts[0], "orders") == 200)
    assert queue_of(rig.hosts[0], "orders").paged is not None
    rig.hosts[1].crash()
    rig.network.heal()
    rig.run(TIMEOUT + 2)
    slow.close()
    if restart:
        rig.hosts[0].crash()
        rig.hosts[0].start()
        rig.run(TIMEOUT + 2)
    near = rig.consuming(rig.hosts[0])
    rig.until(lambda: len(near.bodies) >= 200, TIMEOUT + 20)
    rig.run(2)
    assert sorted(int(body[:3]) for body in near.bodies) == list(range(200))


def test_copies_for_a_subscription_come_back_to_it(rig: Rig) -> None:
    rig.cluster(2)
    rig.consuming(rig.hosts[1], "archive", known_at=rig.hosts[0])
    rig.network.block("n0", "n1")
    producer = rig.sender(rig.hosts[0], "prices", numbers(0, 4), MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 4)
    rig.hosts[1].crash()
    rig.network.heal()
    rig.run(1)
    for body in numbers(4, 8):
        producer.publish("prices", body, MULTICAST)
    rig.until(lambda: count(rig.hosts[0], "archive") == 4)
    rig.run(TIMEOUT + 1)
    near = rig.consuming(rig.hosts[0], "archive")
    rig.run(1)
    assert sorted(near.bodies) == numbers(0, 8)
