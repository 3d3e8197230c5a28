"""Messages that were parked for a member come to another one: all, once, whoever crashes or leaves meanwhile."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE
from atalanta.cluster.store_and_forward import parked_messages
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from tests.cluster.cluster_rig import (
    Rig,
    both,
    cluster_of,
    count,
    node_of,
    queue_of,
    remote_consumers,
    waiting,
)
from tests.cluster.scale_down.scale_down_rig import held, leave
from tests.cluster.store_and_forward.third_member_rig import TIMEOUT, Third, numbered


@pytest.mark.parametrize("restart", ["", "near", "third"])
def test_all_of_it_comes_once_behind_what_is_there(restart: str) -> None:
    play = Third()
    play.crash_away()
    if restart == "near":
        play.rig.run(1)
        play.near.crash()
        play.near.start()
        play.rig.formed()
    play.until_all_there()
    assert len(node_of(play.third).broker.queues) == len(node_of(play.near).broker.queues)
    if restart == "third":
        play.third.crash()
        play.third.start()
        play.rig.formed()
    else:
        play.slow.close()
    assert play.taken(play.third) == play.kept + play.parked


@pytest.mark.parametrize("memory_bytes", [100 << 20, 60_000])
@pytest.mark.parametrize("crash", [False, True])
def test_many_come_over_several_turns(crash: bool, memory_bytes: int) -> None:
    """n2 may have page files, and crash in between."""
    play = Third(300, memory_bytes, 1_000)
    cluster_of(play.near).parked.moves_max = 10
    play.near.late, play.near.late_by_ns = parked_messages.PARKED, 20_000_000
    play.crash_away()
    there = count(play.third, "orders")
    play.rig.until(lambda: count(play.third, "orders") > there + 20, TIMEOUT + 5)
    if crash:
        play.third.crash()
        play.third.start()
        play.rig.formed()
    else:
        play.slow.close()
    assert sorted(play.taken(play.third, seconds=TIMEOUT + 20)) == numbered(play.total)
    assert queue_of(play.third, "orders").paged is None


@pytest.mark.parametrize("more", [0, 5])
def test_the_third_member_goes_away_too(more: int) -> None:
    """Messages in its store-and-forward queue, behind `more` others, come back to the sender's own queue."""
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
    play.near.late, play.near.late_by_ns = parked_messages.PARKED, 20_000_000
    wanted = sorted(play.parked + list(range(play.total, end)))
    assert sorted(play.taken(play.near, len(wanted))) == wanted
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
    assert sorted(play.taken(play.third)) == numbered(play.total)


def test_the_third_member_leaves_and_nothing_is_left_behind() -> None:
    play = Third(300, 60_000, 1_000)
    play.crash_away()
    play.until_all_there()
    play.slow.close()
    part = leave(play.rig, play.third)
    assert (part.phase, part.left()) == (DONE, 0)
    found = [int(body[:5]) for body in held(play.near, "orders")]
    assert sorted(found) == numbered(play.total)


def test_a_queue_without_consumers_loses_to_another_node_what_it_has() -> None:
    play = Third(300, 60_000, 1_000, delay_ms=0)
    play.crash_away()
    play.until_all_there()
    taker = play.rig.client(play.near)
    taker.consume("orders")
    play.slow.close()
    play.rig.until(lambda: len(taker.bodies) == play.total)
    assert sorted(int(body[:5]) for body in taker.bodies) == numbered(play.total)


def test_copies_for_subscriptions_come_to_each_of_them_once(rig: Rig) -> None:
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
    for name in names:
        first, second = held(third, name)[:10], held(third, name)[10:]
        assert sorted([first, second]) == [
            [b"%d" % number for number in range(begin, 20, 2)] for begin in (0, 1)
        ], name
