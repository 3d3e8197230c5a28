"""What was parked for a member comes to another one in front of what the same node sent there later."""

from __future__ import annotations

import pytest

from atalanta.cluster import late, parked
from atalanta.cluster.scale_down_phase import DONE
from atalanta.kernel import catalogue
from atalanta.kernel.queue_spec import ANYCAST, MULTICAST
from atalanta.kernel.returning import SLICE_MAX
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets_consumer import CreateConsumer, FlowToken
from tests.cluster.rig import (
    Rig,
    both,
    cluster_of,
    count,
    node_of,
    queue_of,
    remote_consumers,
    waiting,
)
from tests.cluster.scale_down_rig import held, leave
from tests.cluster.third_rig import LATE_QUEUE, TIMEOUT, Third, numbered


@pytest.mark.parametrize("restart", ["", "near", "third"])
def test_it_comes_before_younger_ones_that_nobody_has_taken(restart: str) -> None:
    play = Third()
    play.crash_away()
    if restart == "near":
        play.rig.run(1)
        play.near.crash()
        play.near.start()
        play.rig.formed()
    play.until_all_there()
    play.rig.until(lambda: play.late() == 0)
    if restart == "third":
        play.third.crash()
        play.third.start()
        play.rig.formed()
    else:
        play.slow.close()
    assert play.taken(play.third) == numbered(play.total)
    assert LATE_QUEUE not in node_of(play.near).broker.addresses, "nobody else's affair"


@pytest.mark.parametrize("crash", [False, True])
def test_thousands_find_their_places_over_many_turns(crash: bool) -> None:
    """Who takes them meanwhile gets the older ones first, and n2 may crash in between."""
    play = Third(2 * SLICE_MAX + 400)
    node_of(play.third)
    play.crash_away()
    play.rig.until(lambda: play.late() > 0, TIMEOUT + 1)
    if crash:
        play.rig.until(lambda: 0 < play.late() < SLICE_MAX)
        play.third.crash()
        play.third.start()
        play.rig.formed()
        assert play.late() > 0
    else:
        play.slow.close()
    assert play.taken(play.third) == numbered(play.total)


@pytest.mark.parametrize("restart", [False, True])
def test_where_its_place_lies_in_page_files_it_waits_for_them(restart: bool) -> None:
    play = Third(300, 60_000, 1_000)
    assert queue_of(play.third, "orders").paged is not None
    play.crash_away()
    play.until_all_there()
    play.rig.run(2)
    assert play.late() > 0
    if restart:
        play.third.crash()
        play.third.start()
        play.rig.formed()
        play.rig.run(2)
        assert play.late() > 0
    else:
        play.slow.close()
    assert play.taken(play.third) == numbered(play.total)
    assert play.late() == 0 and queue_of(play.third, "orders").paged is None


def test_what_comes_to_the_third_member_after_it_goes_behind_it() -> None:
    """It waits for what was in page files when it came, not for what follows those."""
    play = Third(300, 60_000, 1_000, apart=True)
    play.crash_away()
    play.until_all_there()
    assert play.late() > 0
    local = play.rig.client(play.third)
    play.slow.close()
    for number in range(300, 800):
        local.publish("orders", b"%05d" % number + bytes(1_000), ANYCAST)
        if number % 20 == 19:
            play.rig.run(0.01)
    play.rig.until(lambda: count(play.third, "orders") + play.late() == 800)
    taker = play.rig.client(play.third)
    taker.send(CreateConsumer(consumer_id=0, queue="orders"))
    taker.send(FlowToken(0, 350_000))
    play.rig.until(lambda: len(taker.bodies) > 300)
    play.rig.run(1)
    assert play.late() == 0 and queue_of(play.third, "orders").paged is not None
    taker.send(FlowToken(0, 1_000_000))
    play.rig.until(lambda: len(taker.bodies) == 800)
    assert [int(body[:5]) for body in taker.bodies] == numbered(800)


def test_who_takes_while_it_comes_gets_nothing_younger_before() -> None:
    """It is stored at n2, and has no place there yet."""
    play = Third(40)
    part = node_of(play.third).parts[late.PART]
    assert isinstance(part, late.LateArrivals)
    part.moves_max = 1
    play.third.late, play.third.late_by_ns = late.LOOK, 50_000_000
    play.crash_away()
    play.rig.until(lambda: play.late() > 10, TIMEOUT + 1)
    play.slow.close()
    assert play.taken(play.third) == numbered(play.total)


@pytest.mark.parametrize("more", [0, 5])
def test_the_third_member_goes_away_too_and_it_finds_its_place_at_the_sender(more: int) -> None:
    """Also behind `more` younger ones in the queue of the third, and when it comes back one by one."""
    play = Third()
    play.crash_away()
    play.rig.run(TIMEOUT - 2)
    play.block_third(more)
    play.third.crash()
    play.rig.network.heal()
    play.rig.run(1)
    end = play.total + more + 5
    for number in range(play.total + more, end):
        play.publish(number)
    play.rig.until(lambda: count(play.near, "orders") == 5)
    play.rig.run(TIMEOUT + 1)
    cluster_of(play.near).parked.moves_max = 1
    play.near.late, play.near.late_by_ns = parked.PARKED, 20_000_000
    wanted = list(range(0, play.total, 2)) + list(range(play.total, end))
    assert play.taken(play.near, len(wanted)) == wanted
    assert waiting(play.near, "node-2") == 0


@pytest.mark.parametrize("restart", [False, True])
def test_the_third_member_is_back_before_it_was_given_to_others(restart: bool) -> None:
    """With a restart of the sender, while the copy lies there."""
    play = Third()
    play.crash_away()
    play.rig.run(TIMEOUT - 2)
    play.block_third()
    play.third.crash()
    if restart:
        play.near.crash()
        play.near.start()
    play.rig.network.heal()
    play.third.start()
    play.rig.formed()
    assert play.taken(play.third) == numbered(play.total)


@pytest.mark.parametrize("placed", [False, True])
def test_the_third_member_leaves_and_nothing_is_left_behind(placed: bool) -> None:
    play = Third(300, 100 << 20 if placed else 60_000, 1_000)
    play.crash_away()
    play.until_all_there()
    play.rig.run(2)
    assert (play.late() == 0) == placed
    play.slow.close()
    part = leave(play.rig, play.third)
    assert (part.phase, part.left()) == (DONE, 0)
    found = [int(body[:5]) for body in held(play.near, "orders")]
    assert sorted(found) == numbered(play.total)
    if placed:
        assert found == numbered(play.total)


def test_what_an_operator_removes_is_not_waited_for() -> None:
    play = Third(300, 60_000, 1_000)
    play.crash_away()
    play.until_all_there()
    play.rig.run(1)
    first = queue_of(play.third, LATE_QUEUE).live()[0]
    removed = int(first.message.body[:5])
    node_of(play.third).broker.acknowledge(play.rig.world.now, [first], None, 0)
    play.third.flush_later()
    play.slow.close()
    left = [number for number in numbered(play.total) if number != removed]
    assert play.taken(play.third, len(left)) == left


def test_a_queue_without_consumers_loses_to_another_node_what_it_has() -> None:
    """It asks for nothing, and what waits for its page files goes the same way."""
    play = Third(300, 60_000, 1_000, delay_ms=0)
    play.crash_away()
    play.until_all_there()
    play.rig.run(1)
    assert play.late() > 0
    taker = play.rig.client(play.near)
    taker.consume("orders")
    play.slow.close()
    play.rig.until(lambda: len(taker.bodies) == play.total)
    assert play.late() == 0
    assert sorted(int(body[:5]) for body in taker.bodies) == numbered(play.total)


def test_a_queue_that_is_gone_meanwhile() -> None:
    """Its anycast messages are routed by their address, as if they came now."""
    play = Third(300, 60_000, 1_000)
    play.crash_away()
    play.until_all_there()
    play.slow.close()
    play.rig.run(1)
    came_late = play.late()
    assert came_late > 0
    broker = node_of(play.third).broker
    catalogue.delete_queue(broker, play.rig.world.now, "orders", "a test")
    play.third.flush_later()
    play.rig.run(1)
    assert play.late() == 0
    assert count(play.near, "orders") == came_late, "the only queue of that name that is left"


def test_copies_for_subscriptions_come_before_younger_ones_in_each_of_them() -> None:
    """One of them keeps last values only: it has no places, and what comes late lies behind everything."""
    rig = Rig()
    newest = queue("newest", "prices", MULTICAST)
    newest.last_value_key = "symbol"
    names = ("archive", "audit", "newest")
    for _ in range(3):
        rig.node(queues=[*both(), queue("audit", "prices", MULTICAST), newest]).start()
    rig.formed()
    near, away, third = rig.hosts
    for host in (away, third):
        for name in names:
            slow = rig.client(host)
            slow.on_packet = lambda packet: None  # type: ignore[method-assign]
            slow.send(CreateConsumer(consumer_id=0, queue=name))
            slow.send(FlowToken(0, 1))
            rig.until(lambda: remote_consumers(near, host, name) == 1)  # noqa: B023
    rig.network.block("n0", "n1")
    producer = rig.client(near)
    for number in range(20):
        producer.publish("prices", b"%d" % number, MULTICAST, symbol=str(number))
    rig.until(lambda: waiting(near, "node-1") == 10 and count(third, "newest") == 10)
    away.crash()
    rig.network.heal()
    rig.until(lambda: count(third, "audit") == 20 and count(third, "newest") == 20, TIMEOUT + 1)
    assert held(third, "archive") == [b"%d" % number for number in range(20)]
    assert held(third, "audit") == held(third, "archive")
    first, second = held(third, "newest")[:10], held(third, "newest")[10:]
    assert sorted([first, second]) == [
        [b"%d" % number for number in range(begin, 20, 2)] for begin in (0, 1)
    ]
