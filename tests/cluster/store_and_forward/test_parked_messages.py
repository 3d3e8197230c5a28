"""Messages parked for a member that is away come back: to whom, when, and none doubled or lost."""

from __future__ import annotations

from functools import partial

import pytest

from atalanta.cluster.links.sent_mark import STEP_IDLE
from atalanta.cluster.native_config import OwnSettings
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.log.lease import ReaderLease
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import (
    Rig,
    cluster_of,
    count,
    queue_of,
    remote_consumers,
    waiting,
)
from tests.cluster.store_and_forward.parked_rig import TIMEOUT, Parked, numbers


def test_what_was_never_sent_goes_to_a_consumer_here_after_the_timeout() -> None:
    play = Parked()
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT - 1)
    assert near.bodies == []
    play.rig.run(1)
    assert near.bodies == numbers(0, 5)
    assert waiting(play.hosts[0], "node-1") == 0
    assert play.rig.events("n0 parked_messages_returned")
    play.far_is_back()
    again = play.consumer(play.hosts[1])
    play.rig.run(2)
    assert again.bodies == []


def test_it_goes_to_a_consumer_at_another_member() -> None:
    play = Parked(3)
    other = play.consumer(play.hosts[2])
    play.crash_far()
    play.rig.run(TIMEOUT)
    assert other.bodies == numbers(0, 5)


def test_a_consumer_that_comes_later_gets_it_at_once() -> None:
    play = Parked()
    play.crash_far()
    play.rig.run(TIMEOUT + 5)
    assert waiting(play.hosts[0], "node-1") == 5
    near = play.consumer(play.hosts[0])
    play.rig.run(0.1)
    assert near.bodies == numbers(0, 5)


def test_a_consumer_that_comes_later_elsewhere_gets_it_too() -> None:
    play = Parked(3)
    play.crash_far()
    play.rig.run(TIMEOUT + 5)
    other = play.consumer(play.hosts[2])
    play.rig.run(1)
    assert other.bodies == numbers(0, 5)


def test_a_member_that_is_back_in_time_gets_all_of_it() -> None:
    play = Parked()
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT - 3)
    play.far_is_back()
    again = play.consumer(play.hosts[1])
    play.rig.run(TIMEOUT)
    assert again.bodies == numbers(0, 5) and near.bodies == []


def test_without_a_consumer_elsewhere_it_waits_for_the_member() -> None:
    play = Parked()
    play.crash_far()
    play.rig.run(60)
    assert waiting(play.hosts[0], "node-1") == 5 and count(play.hosts[0], "orders") == 0
    play.far_is_back()
    assert count(play.hosts[1], "orders") == 5


def test_only_what_a_selector_takes_goes() -> None:
    play = Parked(unsent=0)
    for number in range(6):
        play.publish(bytes([number]), colour="red" if number % 2 else "blue")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 6)
    picky = play.rig.client(play.hosts[0])
    picky.consume("orders", "colour = 'red'")
    play.crash_far()
    play.rig.run(TIMEOUT)
    assert picky.bodies == [b"\1", b"\3", b"\5"]
    play.far_is_back()
    assert count(play.hosts[1], "orders") == 3


def test_what_is_sent_while_the_member_is_away_does_not_go_there(rig: Rig) -> None:
    hosts = [rig.node(queues=[queue("prices", "prices", MULTICAST)]), rig.node(), rig.node()]
    rig.form(*hosts)
    hosts[1].crash()
    rig.run(1)
    rig.sender(hosts[0], "orders", numbers(0, 4), ANYCAST)
    rig.until(lambda: count(hosts[2], "orders") == 4)  # The other member that has the queue.
    assert waiting(hosts[0], "node-1") == 0


def test_a_member_that_left_in_good_order_is_away_too() -> None:
    play = Parked()
    near = play.consumer(play.hosts[0])
    play.hosts[1].stop()
    play.rig.run(1)
    assert "node-1" not in cluster_of(play.hosts[0]).peers
    play.rig.run(TIMEOUT)
    assert near.bodies == numbers(0, 5)


def test_a_message_for_later_comes_back_with_its_time() -> None:
    play = Parked(unsent=0)
    due_ms = play.rig.world.now // 1_000_000 + 30_000
    play.publish(b"later", _AMQ_SCHED_DELIVERY=due_ms)
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 1)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT + 5)
    assert near.bodies == [] and waiting(play.hosts[0], "node-1") == 0
    play.rig.run(20)
    assert near.bodies == [b"later"]


def test_many_come_back_in_order_over_several_turns() -> None:
    play = Parked(unsent=0)
    for number in range(3_000):
        play.publish(number.to_bytes(2, "big"))
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 3_000)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [number.to_bytes(2, "big") for number in range(3_000)]


def test_a_queue_that_is_read_as_a_log_takes_nothing_back() -> None:
    play = Parked()
    play.crash_far()
    lease = ReaderLease("spark", 1, "driver", 60_000_000_000)
    lease.active = True
    queue_of(play.hosts[0], "orders").lease(lease)
    near = play.consumer(play.hosts[0])
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [] and waiting(play.hosts[0], "node-1") == 5


def test_an_operator_can_give_a_member_up() -> None:
    """Then also what may have arrived there goes to others."""
    play = Parked(sent=3)
    near = play.consumer(play.hosts[0])
    give_up = partial(
        play.rig.ask, play.hosts[0], "clusterconnection.test", "giveUpMember", "node-1"
    )
    with pytest.raises(BrokerError, match="member node-1 is not away"):
        give_up()
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == numbers(3, 8)
    assert give_up() == 3
    play.rig.run(0.1)
    assert near.bodies == [*numbers(3, 8), *numbers(0, 3)]
    assert waiting(play.hosts[0], "node-1") == 0


def test_the_timeout_can_be_set_and_switched_off() -> None:
    for timeout_ms, after_two in ((1_000, 3), (-1, 0)):
        rig = Rig()
        own = OwnSettings(parked_message_timeout_ms=timeout_ms)
        hosts = rig.cluster(2, own=own)
        rig.consuming(hosts[1])
        rig.until(partial(lambda found: remote_consumers(found[0], found[1], "orders") == 1, hosts))
        rig.network.block("n0", "n1")
        rig.sender(hosts[0], "orders", numbers(0, 3), ANYCAST)
        rig.until(partial(lambda found: waiting(found[0], "node-1") == 3, hosts))
        near = rig.consuming(hosts[0])
        hosts[1].crash()
        rig.run(30 if timeout_ms < 0 else 2)
        assert len(near.bodies) == after_two, timeout_ms


@pytest.mark.parametrize("before", ["the member", "the sender"])
def test_a_copy_for_a_wildcard_queue_goes_to_no_other_queue(rig: Rig, before: str) -> None:
    """A sender that stopped before the member did does not know any more which of the queues it was for."""
    queues = [queue("eu", "orders.eu", ANYCAST), queue("all", "orders.#", ANYCAST)]
    hosts = [rig.node(queues=queues), rig.node(queues=queues)]
    rig.form()
    rig.consuming(hosts[1], "all", known_at=hosts[0])
    near = rig.consuming(hosts[0], "eu")
    rig.network.block("n0", "n1")
    sent = numbers(0, 2 * STEP_IDLE)  # more than the link has reserved
    rig.sender(hosts[0], "orders.eu", sent, ANYCAST)
    rig.until(lambda: near.bodies == sent and waiting(hosts[0], "node-1") == len(sent))
    rig.run(1)
    first, second = (1, 0) if before == "the member" else (0, 1)
    hosts[first].crash()
    rig.run(1)
    hosts[second].crash()
    rig.network.heal()
    hosts[0].start()
    again, near = rig.consuming(hosts[0], "eu"), rig.consuming(hosts[0], "all")
    rig.run(TIMEOUT + 5)
    assert again.bodies == []
    assert near.bodies == (sent if before == "the member" else [])
    hosts[1].start()
    far = rig.consuming(hosts[1], "all")
    rig.until(lambda: waiting(hosts[0], "node-1") == 0)
    rig.run(1)
    assert sorted(near.bodies + far.bodies) == sent and again.bodies == []
