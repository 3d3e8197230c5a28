"""Messages parked for a member that is away: which come back, which stay, and that none is doubled or lost."""

from __future__ import annotations

import random
from functools import partial

import pytest

from atalanta.cluster.own import OwnSettings
from atalanta.cluster.sent_mark import STEP_IDLE
from atalanta.kernel.grouping import GroupingHandler
from atalanta.kernel.leases import Lease
from atalanta.kernel.queue_spec import ANYCAST, MULTICAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from tests.cluster.rig import (
    Client,
    Rig,
    cluster_of,
    count,
    node_of,
    queue_of,
    remote_consumers,
    waiting,
)

TIMEOUT = 10  # seconds, the default


def numbers(first: int, end: int) -> list[bytes]:
    return [bytes([number]) for number in range(first, end)]


class Parked:
    """n0 sends `orders`, whose only consumer is at n1; `sent` of them left n0 unanswered, the others did not."""

    def __init__(
        self, nodes: int = 2, sent: int = 0, unsent: int = 5, **properties: object
    ) -> None:
        self.rig = Rig()
        self.hosts = self.rig.cluster(nodes)
        self.far = self.consumer(self.hosts[1])
        self.rig.until(lambda: remote_consumers(self.hosts[0], self.hosts[1], "orders") == 1)
        self.producer = self.rig.client(self.hosts[0])
        if sent:
            # Credits for the address are there: what follows leaves at once.
            self.publish(b"warm")
            self.rig.until(lambda: self.far.bodies and waiting(self.hosts[0], "node-1") == 0)
            self.rig.network.block("n1", "n0")
            for body in numbers(0, sent):
                self.publish(body, **properties)
            self.rig.until(lambda: len(self.far.bodies) == 1 + sent)
            cluster_of(self.hosts[0]).peers["node-1"].bridge.outgoing.credits.clear()  # type: ignore[union-attr]
        self.rig.network.block("n0", "n1")
        for body in numbers(sent, sent + unsent):
            self.publish(body, **properties)
        self.rig.until(lambda: waiting(self.hosts[0], "node-1") == sent + unsent)

    def publish(self, body: bytes, **properties: object) -> None:
        self.producer.publish("orders", body, ANYCAST, **properties)

    def consumer(self, host: Host, name: str = "orders") -> Client:
        consumer = self.rig.client(host)
        consumer.consume(name)
        return consumer

    def crash_far(self) -> None:
        self.hosts[1].crash()
        self.rig.network.heal()
        self.rig.run(0.5)

    def far_is_back(self) -> None:
        self.hosts[1].start()
        self.rig.until(lambda: waiting(self.hosts[0], "node-1") == 0)
        self.rig.run(1)


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


def test_what_is_sent_while_the_member_is_away_does_not_go_there() -> None:
    rig = Rig()
    hosts = [rig.node(queues=[queue("prices", "prices", MULTICAST)]), rig.node(), rig.node()]
    for host in hosts:
        host.start()
    rig.formed()
    hosts[1].crash()
    rig.run(1)
    producer = rig.client(hosts[0])
    for body in numbers(0, 4):
        producer.publish("orders", body, ANYCAST)
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


def test_a_copy_for_a_subscription_that_only_the_member_has_stays() -> None:
    rig = Rig()
    rig.node(queues=[queue("archive", "prices", MULTICAST)])
    rig.node(queues=[queue("archive", "prices", MULTICAST), queue("audit", "prices", MULTICAST)])
    for host in rig.hosts:
        host.start()
    rig.formed()
    near = rig.client(rig.hosts[0])
    near.consume("archive")
    rig.network.block("n0", "n1")
    producer = rig.client(rig.hosts[0])
    for body in numbers(0, 4):
        producer.publish("prices", body, MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 4)
    rig.hosts[1].crash()
    rig.network.heal()
    rig.run(TIMEOUT + 5)
    assert waiting(rig.hosts[0], "node-1") == 4
    assert near.bodies == numbers(0, 4)
    rig.hosts[1].start()
    rig.until(lambda: count(rig.hosts[1], "audit") == 4)
    assert near.bodies == numbers(0, 4)


def test_a_copy_for_a_subscription_that_is_here_too_comes_back() -> None:
    rig = Rig()
    rig.cluster(2)
    far = rig.client(rig.hosts[1])
    far.consume("archive")
    rig.until(lambda: remote_consumers(rig.hosts[0], rig.hosts[1], "archive") == 1)
    rig.network.block("n0", "n1")
    producer = rig.client(rig.hosts[0])
    for body in numbers(0, 4):
        producer.publish("prices", body, MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 4)
    near = rig.client(rig.hosts[0])
    near.consume("archive")
    rig.hosts[1].crash()
    rig.network.heal()
    rig.run(TIMEOUT + 1)
    assert near.bodies == numbers(0, 4)


def test_a_group_of_which_one_may_have_arrived_stays_whole() -> None:
    play = Parked(sent=2, unsent=2, _AMQ_GROUP_ID="g")
    for body in numbers(4, 6):
        play.publish(body, _AMQ_GROUP_ID="h")
    play.publish(b"free")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 7)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [*numbers(4, 6), b"free"]
    assert waiting(play.hosts[0], "node-1") == 4


def test_a_group_that_comes_back_goes_to_one_consumer() -> None:
    play = Parked(3, unsent=12, _AMQ_GROUP_ID="g")
    here, there = play.consumer(play.hosts[0]), play.consumer(play.hosts[2])
    play.rig.until(lambda: remote_consumers(play.hosts[0], play.hosts[2], "orders") == 1)
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert sorted([len(here.bodies), len(there.bodies)]) == [0, 12]
    assert here.bodies + there.bodies == numbers(0, 12)


def test_with_a_grouping_handler_groups_stay_with_the_member() -> None:
    play = Parked(_AMQ_GROUP_ID="g")
    play.publish(b"free")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 6)
    near = play.consumer(play.hosts[0])
    play.crash_far()
    node_of(play.hosts[0]).broker.grouping = GroupingHandler()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [b"free"] and waiting(play.hosts[0], "node-1") == 5


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
    """What ran ahead of a fast link is taken back soon after it waits, before anybody crashes."""
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
    bridge.outgoing.credits.clear()
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


@pytest.mark.parametrize("before", ["the member", "the sender"])
def test_what_a_topics_message_is_for_is_known_after_a_restart(before: str) -> None:
    """It is written down when the link is lost; before that a copy for a subscription might be anyone's."""
    rig = Rig()
    rig.cluster(2)
    far = rig.client(rig.hosts[1])
    far.consume("archive")
    rig.until(lambda: remote_consumers(rig.hosts[0], rig.hosts[1], "archive") == 1)
    rig.network.block("n0", "n1")
    producer = rig.client(rig.hosts[0])
    producer.publish("prices", b"x", MULTICAST)
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 1)
    first, second = (1, 0) if before == "the member" else (0, 1)
    rig.hosts[first].crash()
    rig.run(1)
    rig.hosts[second].crash()
    rig.network.heal()
    rig.hosts[0].start()
    near = rig.client(rig.hosts[0])
    near.consume("archive")
    rig.run(TIMEOUT + 5)
    if before == "the member":
        assert near.bodies == [b"x"]
    else:
        assert near.bodies == [] and waiting(rig.hosts[0], "node-1") == 1
    rig.hosts[1].start()
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 0)
    rig.run(1)
    assert count(rig.hosts[1], "archive") == 1 - len(near.bodies)
    assert not [key for key in node_of(rig.hosts[0]).broker.values if key.startswith("meant.")]


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
    lease = Lease("spark", 1, "driver", 60_000_000_000)
    lease.active = True
    queue_of(play.hosts[0], "orders").leases["spark"] = lease
    near = play.consumer(play.hosts[0])
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == [] and waiting(play.hosts[0], "node-1") == 5


def test_an_operator_can_give_a_member_up() -> None:
    """Then also what may have arrived there goes to others."""
    play = Parked(sent=3)
    near = play.consumer(play.hosts[0])
    listed = node_of(play.hosts[0]).management.clusters["test"]
    assert listed.give_up(play.rig.world.now, "node-1") == -1
    play.crash_far()
    play.rig.run(TIMEOUT + 1)
    assert near.bodies == numbers(3, 8)
    assert listed.give_up(play.rig.world.now, "node-1") == 3
    play.rig.run(0.1)
    assert near.bodies == [*numbers(3, 8), *numbers(0, 3)]
    assert waiting(play.hosts[0], "node-1") == 0


def test_the_timeout_can_be_set_and_switched_off() -> None:
    for timeout_ms, after_two in ((1_000, 3), (-1, 0)):
        rig = Rig()
        own = OwnSettings(parked_message_timeout_ms=timeout_ms)
        hosts = rig.cluster(2, own=own)
        far = rig.client(hosts[1])
        far.consume("orders")
        rig.until(partial(lambda found: remote_consumers(found[0], found[1], "orders") == 1, hosts))
        rig.network.block("n0", "n1")
        producer = rig.client(hosts[0])
        for body in numbers(0, 3):
            producer.publish("orders", body, ANYCAST)
        rig.until(partial(lambda found: waiting(found[0], "node-1") == 3, hosts))
        near = rig.client(hosts[0])
        near.consume("orders")
        hosts[1].crash()
        rig.run(30 if timeout_ms < 0 else 2)
        assert len(near.bodies) == after_two, timeout_ms


@pytest.mark.parametrize("seed", range(1, 7))
def test_random_play_every_message_exactly_once(seed: int) -> None:
    """Members crash and return, links break and answers get lost: each message is acknowledged once, at some member."""
    rng = random.Random(seed)
    rig = Rig(seed)
    own = OwnSettings(parked_message_timeout_ms=2_000)
    hosts = rig.cluster(3, own=own)
    taken: list[bytes] = []
    consumers: list[Client | None] = [None, None, None]

    def see_to_consumers() -> None:
        for index in (1, 2, 0):
            if consumers[index] is None:
                consumers[index] = rig.client(hosts[index])
                consumers[index].consume("orders")  # type: ignore[union-attr]

    total = 0
    answered = 0
    for _ in range(12):
        see_to_consumers()
        rig.run(1)
        producer = rig.client(hosts[0])
        if rng.random() < 0.5:
            rig.network.block("n0", rng.choice(["n1", "n2"]))
        if rng.random() < 0.3:
            rig.network.block(rng.choice(["n1", "n2"]), "n0")
        amount = rng.randrange(1, 15)
        for _ in range(amount):
            producer.publish("orders", total.to_bytes(2, "big"), ANYCAST)
            total += 1
        rig.until(partial(lambda found, n: len(found.answers) == n, producer, amount))
        answered += amount
        rig.run(rng.random())
        # Acknowledged by consumers before the crash, and durable: what they got counts.
        rig.run(0.2)
        for index in rng.sample([0, 1, 2], rng.randrange(0, 3)):
            hosts[index].crash()
            taken.extend(consumers[index].bodies)  # type: ignore[union-attr]
            consumers[index] = None
        rig.run(rng.random() * 6)
        rig.network.heal()
        for host in hosts:
            if not host.up:
                host.start()
    see_to_consumers()
    for host in hosts:
        assert host.up
    rig.until(
        lambda: all(
            count(host, name) == 0
            for host in hosts
            for name in node_of(host).broker.queues
            if name == "orders" or ".sf." in name
        ),
        60,
    )
    rig.run(1)
    for consumer in consumers:
        assert consumer is not None
        taken.extend(consumer.bodies)
    assert total == answered
    assert sorted(taken) == [number.to_bytes(2, "big") for number in range(total)]
