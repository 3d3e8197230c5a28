"""A node leaves while answers, links and other nodes are lost: whatever it has handed on is somewhere, and once."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down_link import TargetLink
from atalanta.cluster.scale_down_phase import DONE, FAILED
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.rig import Client, Rig, count, linked, node_of, waiting
from tests.cluster.scale_down_rig import (
    NeverOurs,
    begin,
    departure,
    held,
    leave,
    moving,
    pause,
    subscribed,
    to,
    unanswered_copies,
)

BODIES = [b"%d" % number for number in range(6)]


def resume(sender: Host, peer: Host) -> None:
    """The sender's bridge to that node goes on."""
    broker = node_of(sender).broker
    queue = broker.queues[f"$.artemis.internal.sf.test.{node_of(peer).broker.node_id}"]
    queue.paused = False
    broker.mark_dirty(queue)
    sender.flush_later()


def test_a_third_node_that_the_target_never_met_gets_its_copies() -> None:
    """The target has its own copies of them: it must not route them once more."""
    rig = Rig()
    third, leaving = rig.cluster(2)
    subscribed(rig, third, "mine")
    pause(leaving, third)
    rig.stored(leaving, "prices", BODIES)
    third.crash()
    rig.until(lambda: linked(leaving) == 0)
    assert waiting(leaving, "node-0") == len(BODIES)
    target = rig.node(peers=[0, 1])
    target.start()
    rig.until(lambda: linked(leaving) == 1 and linked(target) == 1)
    leave(rig, leaving)
    assert held(target, "archive") == BODIES
    third.start()
    rig.until(lambda: linked(third) == 1 and waiting(target, "node-0") == 0)
    assert held(third, "mine") == BODIES
    assert held(target, "archive") == BODIES


def test_what_the_leaving_node_has_had_is_no_repeat_at_the_target() -> None:
    """A message went to both, and has not reached the target yet."""
    rig = Rig()
    target, sender, leaving = rig.cluster(3)
    subscribed(rig, target, "one")
    subscribed(rig, leaving, "two")
    pause(sender, target)
    rig.sender(sender, "prices", BODIES)
    rig.until(lambda: count(leaving, "two") == len(BODIES))
    leave(rig, to(leaving, "n0"))
    resume(sender, target)
    rig.until(lambda: count(target, "one") == len(BODIES))
    assert held(target, "one") == held(target, "two") == BODIES


@pytest.mark.parametrize("third", [True, False])
def test_a_message_whose_answer_was_lost_is_not_sent_after_the_node_that_left(third: bool) -> None:
    """The leaving node has had some, the sender does not know, and it has no time to ask."""
    rig = Rig()
    hosts = rig.cluster(3 if third else 2)
    target, leaving = hosts[0], hosts[-1]
    sender = hosts[1] if third else target
    subscribed(rig, leaving, "mine")
    client = rig.client(sender)
    for body in BODIES[:3]:
        if client.number == 1:
            rig.until(lambda: count(leaving, "mine") == 1)
            rig.network.block(leaving.name, sender.name)
        client.publish("prices", body)
    rig.until(lambda: count(leaving, "mine") == 3 and len(client.answers) == 3)
    sender.crash()
    sender.start()
    node = node_of(leaving).broker.node_id
    pause(sender, leaving)
    rig.network.heal()
    rig.formed()
    client = rig.sender(sender, "prices", BODIES[3:])
    rig.until(lambda: len(client.answers) == 3)
    assert waiting(sender, node) >= 5
    leave(rig, to(leaving, "n0"))
    rig.until(
        lambda: f"$.artemis.internal.sf.test.{node}" not in node_of(sender).broker.queues, 30
    )
    rig.run(1)
    assert sorted(held(target, "mine")) == BODIES


@pytest.mark.parametrize("known", [True, False], ids=["an Atalanta", "as to an Artemis"])
def test_a_client_that_repeats_at_the_target_is_recognized_there(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as it is told good-bye, while its message is still on the way."""
    if not known:  # the target is one of ours all the same: what matters is what it is sent, and when
        monkeypatch.setattr(TargetLink, "ours", NeverOurs(), raising=False)
    rig = Rig()
    target, leaving = rig.cluster(2, mode="OFF")
    client = rig.client(leaving)
    for body in BODIES * 10:
        client.publish("orders", body, ANYCAST, _AMQ_DUPL_ID=f"id{client.number}")
    rig.until(lambda: len(client.answers) == 60)
    departure(leaving).choice.config.commit_interval = 1
    other = rig.client(target)
    part = begin(rig, leaving)
    while client.conn:
        rig.run(0.0002)
    client.kill()
    other.number = 59
    other.publish("orders", BODIES[5], ANYCAST, _AMQ_DUPL_ID="id59")
    rig.until(lambda: other.answers == [60])
    rig.until(part.over)
    leaving.stop()
    assert held(target, "orders") == BODIES * 10


def filled(rig: Rig, *hosts: Host) -> None:
    """Each has messages of its own."""
    for host in hosts:
        client = rig.sender(host, "orders", [host.name.encode() + body for body in BODIES], ANYCAST)
        while len(client.answers) < len(BODIES):
            rig.run(0.01)


def of(*hosts: Host) -> list[bytes]:
    return sorted(host.name.encode() + body for host in hosts for body in BODIES)


@pytest.mark.parametrize("first", [0, 1])
def test_two_nodes_that_leave_at_once_do_not_leave_to_each_other(first: int) -> None:
    """The one with the lower node id goes at once, whoever began, and the other waits for it; then nobody is left."""
    rig = Rig()
    hosts = rig.cluster(2, mode="OFF")
    filled(rig, *hosts)
    begin(rig, hosts[first])
    begin(rig, hosts[1 - first])
    parts = [departure(host) for host in hosts]
    rig.until(parts[0].over, 3)
    hosts[0].stop()
    rig.until(parts[1].over, 25)
    assert [(part.phase, part.frozen) for part in parts] == [(DONE, True), (FAILED, False)]
    client = Client(rig.world, rig.network, "late", "n1")
    client.start()
    rig.until(lambda: client.ready)
    assert sorted(held(hosts[1], "orders")) == of(*hosts)


def test_who_waits_for_the_other_goes_to_a_third_that_comes() -> None:
    rig = Rig()
    hosts = rig.cluster(2, mode="OFF")
    late = rig.node(mode="OFF")
    filled(rig, *hosts)
    parts = [begin(rig, host) for host in hosts]
    rig.until(parts[0].over, 3)
    hosts[0].stop()
    late.start()
    rig.until(parts[1].over, 25)
    assert [part.phase for part in parts] == [DONE, DONE]
    assert sorted(held(late, "orders")) == of(*hosts)


def test_who_waits_for_the_other_waits_as_long_as_that_one_moves() -> None:
    """Longer than it would wait for anybody to appear: then a third comes that takes all."""
    rig = Rig()
    hosts = rig.cluster(2, mode="OFF")
    late = rig.node(mode="OFF")
    filled(rig, *[host for host in hosts for _ in range(10)])
    departure(hosts[0]).choice.config.commit_interval = 1
    rig.network.latency_ns = (200_000_000, 210_000_000)
    parts = [begin(rig, host) for host in hosts]
    rig.until(lambda: parts[0].phase == "moving", 10)
    rig.until(parts[0].over, 60)
    moving_s = rig.world.now / 1e9
    assert moving_s > 20
    assert parts[1].phase == "seeking"
    hosts[0].stop()
    late.start()
    rig.until(parts[1].over, 60)
    assert [part.phase for part in parts] == [DONE, DONE]
    assert len(held(late, "orders")) == 2 * 10 * len(BODIES)


def test_two_of_three_leave_to_the_one_that_stays() -> None:
    rig = Rig()
    hosts = rig.cluster(3, mode="OFF")
    filled(rig, *hosts)
    parts = [begin(rig, host) for host in hosts[1:]]
    rig.until(lambda: all(part.over() for part in parts), 60)
    assert [part.phase for part in parts] == [DONE, DONE]
    assert sorted(held(hosts[0], "orders")) == of(*hosts)


@pytest.mark.parametrize("crash", [False, True])
def test_when_the_target_leaves_itself_the_others_go_where_it_goes(crash: bool) -> None:
    rig = Rig()
    last, middle, first = rig.cluster(3, mode="OFF")
    filled(rig, last, middle, first)
    one = begin(rig, to(first, "n1", 1))
    moving(rig, one, 2)
    two = begin(rig, to(middle, "n0"))
    rig.until(two.over)
    assert two.phase == DONE
    middle.stop()
    if crash:
        first.crash()
        first.start()
        one = departure(first)
    rig.until(one.over)
    assert (one.phase, one.left()) == (DONE, 0)
    assert sorted(held(last, "orders")) == of(last, middle, first)


@pytest.mark.parametrize("meant_for", ["whom it is left to last", "the first target"])
def test_what_the_first_target_had_for_others_comes_once_by_way_of_the_second(meant_for: str) -> None:
    """The answers of the first are lost; then it leaves itself, to the second."""
    rig = Rig()
    last, middle, first = rig.cluster(3)
    there = last if meant_for == "whom it is left to last" else middle
    filled(rig, *[middle] * 10)
    one = unanswered_copies(rig, first, middle, there, BODIES)
    two = begin(rig, to(middle, "n0", 1))
    rig.until(lambda: two.moved > 1)
    for connection in list(node_of(first).connections):
        rig.network.cut_connection(connection)
    rig.network.heal()
    rig.until(one.over, 60)
    rig.until(two.over, 60)
    assert [(part.phase, part.left()) for part in (one, two)] == [(DONE, 0), (DONE, 0)]
    rig.run(1)
    assert held(last, "mine") == BODIES
