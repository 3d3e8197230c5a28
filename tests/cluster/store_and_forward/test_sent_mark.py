"""Messages that may have reached the member before it went away stay for it, also after a crash of the sender."""

from __future__ import annotations

import pytest

from atalanta.cluster.links.sent_mark import STEP_IDLE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from tests.cluster.cluster_rig import cluster_of, count, waiting
from tests.cluster.raw_client import CHANNEL
from tests.cluster.store_and_forward.parked_rig import TIMEOUT, Parked, numbers


@pytest.mark.parametrize("sent", [0, 3])
def test_it_is_known_after_a_restart_of_the_sender_what_never_left(sent: int) -> None:
    play = Parked(sent=sent)
    play.crash_far()
    play.rig.run(1)
    play.hosts[0].crash()
    play.rig.run(1)
    play.hosts[0].start()
    near = play.consumer(play.hosts[0])
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == numbers(sent, sent + 5)
    assert waiting(play.hosts[0], "node-1") == sent
    play.far_is_back()
    assert near.bodies == numbers(sent, sent + 5) and count(play.hosts[1], "orders") == 0


def test_a_crash_while_the_link_was_open_gives_nothing_away_that_may_have_arrived() -> None:
    play = Parked(sent=3)
    play.hosts[0].crash()
    play.rig.run(0.5)
    play.hosts[1].crash()
    play.rig.network.heal()
    play.hosts[0].start()
    near = play.consumer(play.hosts[0])
    play.rig.run(TIMEOUT + 1)
    stayed = waiting(play.hosts[0], "node-1")
    assert near.bodies == numbers(8 - len(near.bodies), 8) and stayed >= 3
    play.far_is_back()
    again = play.consumer(play.hosts[1])
    play.rig.run(1)
    assert sorted(again.bodies + near.bodies) == numbers(3, 8)


def test_of_a_link_that_has_come_to_a_stand_little_stays_that_never_left() -> None:
    """Reservations that ran ahead of a fast link are taken back soon after it waits, before anybody crashes."""
    play = Parked(unsent=0)
    for number in range(6_000):  # a fast link: reservations run far ahead
        play.publish(number.to_bytes(2, "big"))
        if number % 100 == 99:
            play.rig.run(0.01)
    play.rig.network.heal()
    play.rig.until(lambda: len(play.far.bodies) == 6_000)
    mark = cluster_of(play.hosts[0]).parked.marks["node-1"]
    assert mark.reserved - mark.through > 1_000
    play.rig.network.block("n1", "n0")
    bridge = cluster_of(play.hosts[0]).peers["node-1"].bridge
    assert bridge is not None
    bridge.outgoing.credits.by_address.clear()
    for number in range(6_000, 9_000):
        play.publish(number.to_bytes(2, "big"))
    play.rig.run(0.5)
    left = len(play.far.bodies)
    play.hosts[0].crash()
    play.hosts[1].crash()
    play.rig.network.heal()
    play.hosts[0].start()
    near = play.consumer(play.hosts[0])
    play.rig.run(TIMEOUT + 1)
    assert left == 6_000 and len(near.bodies) >= 3_000 - 2 * STEP_IDLE
    first = 9_000 - len(near.bodies)
    assert near.bodies == [number.to_bytes(2, "big") for number in range(first, 9_000)]


def test_a_link_that_keeps_up_is_not_held_up_by_looks_at_its_reservation() -> None:
    play = Parked(unsent=0)
    play.rig.network.heal()
    mark = cluster_of(play.hosts[0]).parked.marks["node-1"]
    stored = 0
    for number in range(4_000):
        play.publish(number.to_bytes(2, "big"))
        if number % 20 == 19:
            before = mark.asked
            play.rig.run(0.01)
            stored += mark.asked != before
    play.rig.until(lambda: len(play.far.bodies) == 4_000)
    assert stored < 20, "2,000 messages a second: hundreds share a record"
    play.rig.run(2)
    assert mark.reserved - mark.through <= 2 * STEP_IDLE


def test_what_may_have_arrived_stays_and_is_there_once() -> None:
    """The answers were lost: the member has the messages, and this node cannot know."""
    play = Parked(sent=3)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT + 5)
    assert near.bodies == numbers(3, 8)
    assert waiting(play.hosts[0], "node-1") == 3
    play.far_is_back()
    again = play.consumer(play.hosts[1])
    play.rig.run(2)
    # Acknowledged there before the crash, and dropped as repeats.
    assert again.bodies == [] and near.bodies == numbers(3, 8)
    assert play.hosts[1].trace.counters["duplicates_dropped"] == 3


def test_a_consumer_that_comes_while_messages_come_back_gets_what_was_passed_over() -> None:
    play = Parked(unsent=0)
    play.rig.network.block("n0", "n1")
    for body in numbers(0, 3):
        play.publish(body, colour="blue")
    for number in range(1_200):  # more than go at once
        play.publish(number.to_bytes(2, "big"), colour="red")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 1_203)
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    near = play.rig.client(play.hosts[0])
    play.rig.run(1)
    together = b""  # one read of the node
    for number, colour in enumerate(("red", "blue")):
        consumer = CreateConsumer(consumer_id=number, queue="orders", filter=f"colour = '{colour}'")
        together += codec.encode(consumer, CHANNEL) + codec.encode(FlowToken(number, -1), CHANNEL)
    near.network.send(near.conn, together)
    play.rig.run(2)
    assert waiting(play.hosts[0], "node-1") == 0
    assert sorted(body for body in near.bodies if len(body) == 1) == numbers(0, 3)
