"""What comes back from parking takes the place of its arrival among all that waits in the queue here."""

from __future__ import annotations

import pytest

from atalanta.cluster import parked
from atalanta.kernel.message import Message
from atalanta.kernel.properties import Byte
from atalanta.kernel.queue_spec import ANYCAST, MULTICAST
from atalanta.kernel.returning import SLICE_MAX
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets_message import SendMessage
from tests.cluster.parked_rig import TIMEOUT, Parked, numbers
from tests.cluster.rig import Rig, cluster_of, count, queue_of, remote_consumers, waiting


def newer(play: Parked, first: int, end: int, **properties: object) -> None:
    """Sent while the member is away, and nobody takes them."""
    before = count(play.hosts[0], "orders")
    for body in numbers(first, end):
        play.publish(body, **properties)
    play.rig.until(lambda: count(play.hosts[0], "orders") == before + end - first)


@pytest.mark.parametrize("restart", [False, True])
def test_newer_messages_of_the_producer_come_behind(restart: bool) -> None:
    play = Parked()
    play.crash_far()
    newer(play, 5, 10)
    play.rig.run(TIMEOUT + 1)
    if restart:
        play.hosts[0].crash()
        play.hosts[0].start()
        play.rig.run(TIMEOUT + 1)
    near = play.consumer(play.hosts[0])
    play.rig.run(1)
    assert near.bodies == numbers(0, 10)


def test_they_keep_that_place_after_a_crash() -> None:
    """Nothing is consumed before it: who made them come back takes other messages only."""
    play = Parked(colour="red")
    play.crash_far()
    newer(play, 5, 10, colour="blue")
    picky = play.rig.client(play.hosts[0])
    picky.on_packet = lambda packet: None  # type: ignore[method-assign]
    picky.consume("orders", "colour = 'red'")
    play.rig.run(TIMEOUT + 1)
    assert waiting(play.hosts[0], "node-1") == 0
    play.hosts[0].crash()
    play.hosts[0].start()
    near = play.consumer(play.hosts[0])
    play.rig.run(1)
    assert near.bodies == numbers(0, 10)


def test_between_older_and_newer_ones() -> None:
    """Both queues had consumers, and each got its share of one producer's messages."""
    play = Parked(unsent=0)
    slow = play.rig.client(play.hosts[0])
    slow.on_packet = lambda packet: None  # type: ignore[method-assign]
    slow.consume("orders")
    play.rig.run(1)
    for body in numbers(0, 20):
        play.publish(body)
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 10)
    play.crash_far()
    newer(play, 20, 25)
    play.rig.run(TIMEOUT)
    assert waiting(play.hosts[0], "node-1") == 0
    slow.close()
    near = play.consumer(play.hosts[0])
    play.rig.run(1)
    assert near.bodies == numbers(0, 25)


def test_what_two_members_do_not_get_is_put_together_again() -> None:
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
    assert near.bodies[:2] == [b"\0", b"\1"] and near.bodies == numbers(0, 25)


def test_higher_priorities_go_first_and_each_keeps_its_order() -> None:
    play = Parked(unsent=0)
    rig = play.rig
    send_by_priority(play, 0, 6)
    rig.until(lambda: waiting(play.hosts[0], "node-1") == 6)
    play.crash_far()
    rig.run(1)
    send_by_priority(play, 6, 12)
    rig.until(lambda: count(play.hosts[0], "orders") == 6)
    rig.run(TIMEOUT + 1)
    near = play.consumer(play.hosts[0])
    rig.run(1)
    odd, even = numbers(0, 12)[1::2], numbers(0, 12)[::2]
    assert near.bodies == odd + even


def send_by_priority(play: Parked, first: int, end: int) -> None:
    for body in numbers(first, end):
        message = Message.create("orders", body, 4, True, 1, 7 if body[0] % 2 else 2)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        message.properties_changed()
        play.producer.send(
            SendMessage(message, requires_response=True, correlation=100 + body[0], sender_id=1)
        )


def test_a_group_keeps_its_order_and_its_consumer() -> None:
    play = Parked(_AMQ_GROUP_ID="g")
    play.crash_far()
    newer(play, 5, 10, _AMQ_GROUP_ID="g")
    play.rig.run(TIMEOUT + 1)
    near = [play.consumer(play.hosts[0]) for _ in range(2)]
    play.rig.run(1)
    assert sorted([near[0].bodies, near[1].bodies]) == [[], numbers(0, 10)]


def test_thousands_come_back_before_anything_newer_is_handed_out() -> None:
    play = Parked(unsent=0)
    for number in range(3_000):
        play.publish(number.to_bytes(2, "big"))
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 3_000)
    play.crash_far()
    for number in range(3_000, 3_500):
        play.publish(number.to_bytes(2, "big"))
    play.rig.until(lambda: count(play.hosts[0], "orders") == 500)
    play.rig.run(TIMEOUT + 1)
    near = play.consumer(play.hosts[0])
    play.rig.run(2)
    assert near.bodies == [number.to_bytes(2, "big") for number in range(3_500)]


@pytest.mark.parametrize("under_way", [False, True])
def test_who_comes_before_a_look_gets_to_its_messages_gets_the_older_first(
    under_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look has many parts: it is about to begin, or is under way since somebody has come to another queue."""
    play = Parked(unsent=0)
    near, far = play.hosts
    play.consumer(far, "archive")
    play.rig.until(lambda: remote_consumers(near, far, "archive") == 1)
    for body in numbers(0, 4):
        play.producer.publish("prices", body, MULTICAST)
    for body in numbers(0, 5):
        play.publish(body)
    play.rig.until(lambda: waiting(near, "node-1") == 9)
    play.crash_far()
    newer(play, 5, 10)
    play.rig.run(TIMEOUT + 1)
    cluster_of(near).parked.moves_max = 1
    monkeypatch.setattr(parked, "LOOKS_MAX", 2)
    near.late, near.late_by_ns = parked.PARKED, 20_000_000
    if under_way:
        play.consumer(near, "archive")
        play.rig.until(lambda: waiting(near, "node-1") < 9)
    consumer = play.consumer(near)
    play.rig.run(5)
    assert consumer.bodies == numbers(0, 10)
    assert waiting(near, "node-1") == (0 if under_way else 4)
    assert queue_of(near, "orders").held is None


def test_a_look_that_waits_for_the_journal_is_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue that it holds asks for more each time it has nothing to hand out."""
    play = Parked(unsent=2)
    near = play.hosts[0]
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    returning = cluster_of(near).parked
    returning.moves_max = 1
    turns: list[int] = []
    on_timer = returning.on_timer

    def counted(now: int, node_id: str) -> None:
        turns.append(now)
        assert len(turns) < 1_000
        on_timer(now, node_id)

    monkeypatch.setattr(returning, "on_timer", counted)
    near.disk.slow = 5_000
    near.late, near.late_by_ns = parked.PARKED, 20_000_000
    consumer = play.rig.client(near)
    consumer.consume("orders")
    play.rig.until(lambda: waiting(near, "node-1") == 1)
    play.publish(b"\2")
    play.rig.run(0.02)
    assert queue_of(near, "orders").pending == 2
    near.late = ""
    turns.clear()
    play.rig.run(1)
    assert queue_of(near, "orders").pending == 2 and waiting(near, "node-1") == 1
    assert 10 < len(turns) < 30, "it looks, and now and then only"
    near.disk.slow = 1
    play.rig.until(lambda: len(consumer.bodies) == 3, 60)
    assert consumer.bodies == numbers(0, 3)


@pytest.mark.parametrize("restart", [False, True])
def test_among_newer_ones_in_page_files(restart: bool) -> None:
    """The queue here had its own share, more than memory: what comes back waits for its turn, and none is passed."""
    rig = Rig()
    rig.node(memory_bytes=60_000)
    rig.node()
    rig.form()
    rig.consuming(rig.hosts[1])
    slow = rig.client(rig.hosts[0])
    slow.on_packet = lambda packet: None  # type: ignore[method-assign]
    slow.send(CreateConsumer(consumer_id=0, queue="orders"))
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
    rig.until(lambda: len(near.bodies) == 200, TIMEOUT + 20)
    assert [int(body[:3]) for body in near.bodies] == list(range(200))


def test_copies_for_a_subscription_come_back_in_front() -> None:
    rig = Rig()
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
    assert near.bodies == numbers(0, 8)


@pytest.mark.parametrize("crash", [False, True])
def test_many_older_ones_make_room_by_and_by(crash: bool) -> None:
    """A long queue here, before the member got its share: each turn moves a part of it, also over a crash."""
    rig = Rig()
    near_host, far_host = rig.cluster(2)
    slow = rig.client(near_host)
    slow.on_packet = lambda packet: None  # type: ignore[method-assign]
    slow.send(CreateConsumer(consumer_id=0, queue="orders"))
    slow.send(FlowToken(0, 1))
    producer = rig.client(near_host)
    older = [b"%05d" % number for number in range(2_500)]
    for body in older:
        producer.publish("orders", body, ANYCAST)
    rig.until(lambda: count(near_host, "orders") == len(older))
    rig.consuming(far_host, known_at=near_host)
    rig.network.block("n0", "n1")
    newest = [b"%05d" % number for number in range(2_500, 2_520)]
    for body in newest:
        producer.publish("orders", body, ANYCAST)
    rig.until(lambda: waiting(near_host, "node-1") == 10)
    far_host.crash()
    rig.network.heal()
    moved: list[int] = []
    order = [int(each.message.id) for each in queue_of(near_host, "orders").live()]
    rig.run(TIMEOUT - 2)
    before = 0
    while waiting(near_host, "node-1") == 10:
        rig.world.step()
        places = [int(each.sequence) for each in queue_of(near_host, "orders").live()]
        lower = sum(each <= 0 for each in places)
        if lower != before and waiting(near_host, "node-1") == 10:
            moved.append(lower - before)
            before = lower
            assert [int(each.message.id) for each in queue_of(near_host, "orders").live()] == order
            assert places == sorted(set(places))
            if crash and len(moved) == 1:
                near_host.crash()
                near_host.start()
                slow = rig.client(near_host)
                slow.on_packet = lambda packet: None  # type: ignore[method-assign]
                slow.send(CreateConsumer(consumer_id=0, queue="orders"))
                slow.send(FlowToken(0, 1))
                break
    assert len(moved) == (1 if crash else 2) and max(moved) <= SLICE_MAX
    rig.until(lambda: waiting(near_host, "node-1") == 0, TIMEOUT + 10)
    slow.close()
    last = rig.consuming(near_host)
    rig.until(lambda: len(last.bodies) == 2_520, TIMEOUT + 20)
    assert last.bodies == older + newest
