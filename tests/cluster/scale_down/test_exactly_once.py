"""A node leaves while answers, links and other nodes are lost: whatever it has handed on is somewhere, and once."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.candidates import TargetCandidate
from atalanta.cluster.scale_down.disconnect import HOLD_NS
from atalanta.cluster.scale_down.duplicate_ids import CacheStage
from atalanta.cluster.scale_down.link import ScaleDownLink
from atalanta.cluster.scale_down.phase import DONE, FAILED, MOVING
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND
from tests.cluster.cluster_rig import Rig, count, linked, node_of, waiting
from tests.cluster.scale_down.scale_down_rig import (
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
    broker.dispatches.mark_dirty(queue)
    sender.flush_later()


def test_a_third_node_that_the_target_never_met_gets_its_copies(rig: Rig) -> None:
    """The target has its own copies of them: it must not route them once more."""
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


def test_what_the_leaving_node_has_had_is_no_repeat_at_the_target(rig: Rig) -> None:
    """A message went to both, and has not reached the target yet."""
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
def test_a_message_whose_answer_was_lost_is_not_sent_after_the_node_that_left(rig: Rig, third: bool) -> None:
    """The leaving node has had some, the sender does not know, and it has no time to ask."""
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
@pytest.mark.parametrize("third", [True, False], ids=["a third node", "the target"])
def test_what_a_member_sends_after_the_first_ids_were_handed_on_arrives_once(
    third: bool, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members are read until their DISCONNECT. The member's link is lost before the answer: the target has to know."""
    if not known:
        monkeypatch.setattr(ScaleDownLink, "ours", NeverOurs(), raising=False)
    rig = Rig()
    target, other, leaving = rig.cluster(3)
    sender = other if third else target
    subscribed(rig, leaving, "mine")
    client = rig.stored(sender, "prices", BODIES[:1])
    rig.until(lambda: count(leaving, "mine") == 1)
    pause(sender, leaving)
    client.publish("prices", BODIES[1])
    rig.until(lambda: len(client.answers) == 2)
    part = begin(rig, to(leaving, "n0"))
    rig.until(lambda: part.mover is not None and not isinstance(part.mover.stages[0], CacheStage))
    rig.network.block(leaving.name, sender.name)
    resume(sender, leaving)
    rig.until(lambda: count(leaving, "mine") == 2)
    assert part.disconnects is not None and not part.disconnects.members_held
    for conn, stream in list(rig.network.streams.items()):
        if stream.dialed and (stream.source, stream.target) == (sender, leaving):
            rig.network.cut_connection(conn)
    rig.run(0.01)
    rig.network.unblock([(leaving.name, sender.name)])
    rig.until(part.over)
    node = node_of(leaving).broker.node_id
    rig.until(lambda: f"$.artemis.internal.sf.test.{node}" not in node_of(sender).broker.queues, 30)
    assert held(target, "mine") == BODIES[:2]


def test_members_send_nothing_to_a_node_that_has_left_after_its_target_was_away(rig: Rig) -> None:
    """Its clients had to go before. When the target is back and knows the ids, the members are disconnected, too."""
    target, sender, leaving = rig.cluster(3)
    subscribed(rig, leaving, "mine")
    client = rig.stored(sender, "prices", BODIES[:2])
    rig.until(lambda: count(leaving, "mine") == 2)
    part = begin(rig, to(leaving, "n0"))
    rig.until(lambda: part.frozen)
    target.crash()
    rig.run(HOLD_NS / SECOND + 1)
    assert part.phase == MOVING and not part.members_disconnected
    target.start()
    rig.until(part.over)
    for body in BODIES[2:]:
        client.publish("prices", body)
    rig.run(1)
    leaving.stop()
    rig.run(1)
    assert sorted(held(target, "mine")) == BODIES


@pytest.mark.parametrize("known", [True, False], ids=["an Atalanta", "as to an Artemis"])
def test_a_client_that_repeats_at_the_target_is_recognized_there(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as it is told good-bye, while its message is still on the way."""
    if not known:  # the target is one of ours all the same: what matters is what it is sent, and when
        monkeypatch.setattr(ScaleDownLink, "ours", NeverOurs(), raising=False)
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
def test_of_two_nodes_that_leave_at_once_none_goes_to_one_that_leaves(rig: Rig, first: int) -> None:
    """One gives up and serves its clients; from then on it is a target for the other."""
    hosts = rig.cluster(2, mode="OFF")
    filled(rig, *hosts)
    parts = [begin(rig, hosts[first])]
    rig.run(0.002)  # both ask before either has a target, and do not give up at the same moment
    parts.append(begin(rig, hosts[1 - first]))
    rig.until(lambda: any(part.over() for part in parts), 15)
    (stays,) = [each for each in parts if each.over()]
    assert (stays.phase, stays.frozen) == (FAILED, False)
    assert stays.why.endswith("that node leaves itself")
    assert all(sorted(held(host, "orders")) == of(host) for host in hosts)
    rig.until(lambda: all(part.over() for part in parts), 15)
    (there,) = [host for host in hosts if departure(host) is stays]
    assert rig.client(there).ready
    gone = [host for host in hosts if departure(host).phase == DONE]
    assert sorted(held(there, "orders")) == of(there, *gone)


def test_two_of_three_leave_to_the_one_that_stays(rig: Rig) -> None:
    hosts = rig.cluster(3, mode="OFF")
    filled(rig, *hosts)
    parts = [begin(rig, host) for host in hosts[1:]]
    rig.until(lambda: all(part.over() for part in parts), 60)
    assert [part.phase for part in parts] == [DONE, DONE]
    assert sorted(held(hosts[0], "orders")) == of(*hosts)


def test_a_target_that_leaves_itself_is_not_followed_and_the_next_start_serves_clients(rig: Rig) -> None:
    """Messages that the target has taken went with it; the others are here, and go when the node leaves again."""
    last, middle, first = rig.cluster(3, mode="OFF")
    filled(rig, last, middle, first)
    # More than the target takes in the time in which it lets the members learn that it leaves.
    client = rig.client(first)
    more = [b"more %d" % number for number in range(3_000)]
    for body in more:
        client.publish("orders", body, ANYCAST)
    rig.until(lambda: count(first, "orders") == len(BODIES) + len(more))
    every = sorted(of(last, middle, first) + more)
    one = begin(rig, to(first, "n1", 1))
    moving(rig, one, 2)
    leave(rig, to(middle, "n0"))
    assert one.phase == FAILED and 0 < one.left() < len(more)
    assert one.why == (
        "the target n1:61616 (node-1) leaves itself;"
        " start this node again: it serves its clients, and may leave again"
    )
    left = held(first, "orders")
    assert sorted(held(last, "orders") + left) == every
    first.stop()
    first.start()
    rig.formed()
    assert departure(first).phase == "none"
    assert held(first, "orders") == left and rig.client(first).ready
    part = leave(rig, to(first, "n0"))
    assert (part.phase, part.left()) == (DONE, 0)
    assert sorted(held(last, "orders")) == every


@pytest.mark.parametrize("crash", [False, True])
def test_a_target_that_leaves_itself_with_answers_lost_is_asked_again_when_it_is_back(
    rig: Rig,
    crash: bool,
) -> None:
    """Nobody but the target knows which of the last messages it has had."""
    last, middle, first = rig.cluster(3, mode="OFF")
    filled(rig, last, middle, first)
    departure(first).timeout_ms = 20_000
    part = begin(rig, to(first, "n1", 3))
    moving(rig, part, 1)
    rig.network.block(middle.name, first.name)
    rig.run(0.5)
    if crash:
        first.crash()
        first.start()
        part = departure(first)
    rig.until(begin(rig, to(middle, "n0")).over)
    rig.run(0.1)  # the mark of the departure goes
    middle.stop()
    rig.network.heal()
    part.broker.timers.set("scaledown.deadline", rig.world.now + 20_000_000_000)
    rig.until(part.over, 60)
    assert part.phase == FAILED and part.left() > 0
    assert "the target n1:61616 (node-1) may have messages" in part.why
    assert "scale-down-resume = false" in part.why
    first.stop()
    middle.start()
    rig.formed()
    first.start()
    part = departure(first)
    rig.until(part.over, 30)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    assert sorted(held(last, "orders") + held(middle, "orders")) == of(last, middle, first)


@pytest.mark.parametrize("meant_for", ["whom the target left to", "the target"])
def test_copies_for_others_come_once_by_a_target_that_left_and_is_back(rig: Rig, meant_for: str) -> None:
    """The answers of the target are lost; then it leaves itself, and is started again."""
    last, middle, first = rig.cluster(3)
    there = last if meant_for == "whom the target left to" else middle
    filled(rig, *[middle] * 10)
    unanswered_copies(rig, first, middle, there, BODIES)
    first.crash()
    rig.network.heal()
    rig.run(1)
    rig.until(begin(rig, to(middle, "n0")).over)
    rig.run(0.1)  # the mark of the departure goes
    middle.stop()
    middle.start()
    rig.formed()
    first.start()
    part = departure(first)
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    rig.run(15)
    everywhere = [
        body
        for host in (last, middle)
        for body in (held(host, "mine") if "mine" in node_of(host).broker.queues else [])
    ]
    assert sorted(everywhere) == BODIES


def test_another_node_that_has_the_targets_address_changes_nothing_as_it_leaves(rig: Rig) -> None:
    """Whether the target has had the last messages that node cannot tell."""
    last, middle, first = rig.cluster(3, mode="OFF")
    filled(rig, *[first] * 10)
    moving(rig, begin(rig, to(first, "n1", 1)), 13)
    first.crash()
    rig.network.latency_ns = (20_000_000, 21_000_000)
    part = begin(rig, to(middle, "n0"))
    rig.until(lambda: part.members_disconnected)
    first.start()
    waits = departure(first)
    assert waits.target is not None
    waits.target = TargetCandidate("node-9", waits.target.transport)
    rig.run(10)
    assert part.over()
    assert waits.under_way() and waits.target.node_id == "node-9"
