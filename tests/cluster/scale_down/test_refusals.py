"""A message that the target refuses stays and is named; for room at a full address the others wait. Each comes once."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.links.large_client import BODY
from tests.cluster.links.large_client import client as large_client
from tests.cluster.scale_down.scale_down_rig import Refusals, begin, departure, held, leave

MESSAGES = [b"%d" % number for number in range(60)]
QUEUES = [queue(name, name, ANYCAST) for name in ("orders", "others")]


def filled() -> tuple[Rig, Host, Host]:
    """Messages for `orders` and `others` at the node that leaves, in turns."""
    rig = Rig()
    target, leaving = rig.cluster(2, mode="OFF", queues=QUEUES)
    client = rig.client(leaving)
    for body in MESSAGES:
        client.publish("orders", body, ANYCAST)
        client.publish("others", body, ANYCAST)
    rig.until(lambda: count(leaving, "others") == len(MESSAGES))
    departure(leaving).choice.config.commit_interval = 5
    return rig, target, leaving


OLDER = [b"older %d" % number for number in range(10)]


def filled_up(rig: Rig, target: Host) -> None:
    """Its address `orders` has no room."""
    rig.filled(target, OLDER)
    limit(target, 1_000)


def limit(target: Host, max_size_bytes: int) -> None:
    """Of the address `orders`."""
    broker = node_of(target).broker
    settings: dict[str, str | int] = {"address_full_policy": "FAIL", "max_size_bytes": max_size_bytes}
    broker.settings.add("orders", settings)
    broker.address_registry.apply_settings(broker.addresses["orders"])


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    return Refusals(monkeypatch)


def test_a_message_that_is_refused_stays_and_is_named_and_the_others_go(refusals: Refusals) -> None:
    rig, target, leaving = filled()
    refusals.bodies = [b"7", b"40"]
    ids = [int(each.message.id) for each in node_of(leaving).broker.queues["orders"].live()]
    part = leave(rig, leaving)
    assert (part.phase, part.queues_left()) == (FAILED, {"orders": 2, "others": 2})
    rest = [body for body in MESSAGES if body not in refusals.bodies]
    assert held(target, "orders") == held(target, "others") == rest
    # Each was offered once, and named once.
    assert sorted(refusals.seen) == sorted(refusals.bodies * 2)
    for number in (7, 40):
        why = f"the target refuses message {ids[number]}: not this one (code 105)"
        assert len(rig.events(f"scale_down_refused queue=orders why={why}")) == 1
    assert "not this one (code 105); start this node again" in part.why
    refusals.bodies = []
    leaving.start()
    rig.formed()
    assert held(leaving, "orders") == [b"7", b"40"]
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == [*rest, b"7", b"40"]


def test_of_many_refused_messages_of_a_queue_the_first_are_named(refusals: Refusals) -> None:
    rig, target, leaving = filled()
    refusals.bodies = MESSAGES
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (FAILED, 2 * len(MESSAGES))
    assert len(refusals.seen) == 2 * len(MESSAGES)
    assert len(rig.events("scale_down_refused queue=orders")) == 10
    assert rig.events("scale_down_left queue=orders messages=60")


@pytest.mark.parametrize("lost", ["target", "leaving"])
def test_what_is_refused_is_refused_again_after_a_crash_and_the_others_come_once(
    refusals: Refusals, lost: str
) -> None:
    rig, target, leaving = filled()
    refusals.bodies = [b"2"]
    part = begin(rig, leaving)
    while part.moved < 40:
        rig.run(0.0002)
    crashed = target if lost == "target" else leaving
    crashed.crash()
    rig.run(1)
    crashed.start()
    part = departure(leaving)
    rig.until(part.over, 60)
    assert (part.phase, part.queues_left()) == (FAILED, {"orders": 1, "others": 1})
    assert held(target, "orders") == held(target, "others") == [b for b in MESSAGES if b != b"2"]


def test_an_address_that_fails_senders_is_waited_for_and_gets_the_rest_in_order(refusals: Refusals) -> None:
    """As a real Artemis with the policy FAIL does. It has a little room now and then."""
    rig, target, leaving = filled()
    refusals.room["orders"] = 20
    departure(leaving).full_timeout_ns = 15_000_000_000
    part = begin(rig, leaving)
    rig.until(lambda: held(target, "others") == MESSAGES)
    for _ in range(8):
        rig.run(10)
        assert not part.over()
        refusals.room["orders"] += 5
    rig.until(part.over)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    assert held(target, "orders") == MESSAGES
    assert held(target, "others") == MESSAGES
    assert not rig.events("scale_down_refused")


def test_when_the_time_for_a_full_address_is_up_its_messages_stay_and_all_else_has_gone(
    refusals: Refusals,
) -> None:
    rig, target, leaving = filled()
    refusals.room["orders"] = 20
    began = rig.world.now
    part = leave(rig, leaving, 200)
    assert (rig.world.now - began) // 1_000_000_000 in range(120, 125)
    assert (part.phase, part.queues_left()) == (FAILED, {"orders": 40})
    assert part.why == (
        "queue orders: the target has no room at address orders;"
        " start this node again: it serves its clients, and may leave again"
    )
    assert held(target, "others") == MESSAGES
    assert held(target, "orders") == MESSAGES[:20]
    assert len(rig.events("scale_down_refused queue=orders")) == 1
    refusals.room["orders"] = 100
    leaving.start()
    rig.formed()
    assert held(leaving, "orders") == MESSAGES[20:]
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == MESSAGES


def test_a_large_message_waits_for_room_too(refusals: Refusals) -> None:
    rig = Rig()
    target, leaving = rig.cluster(2, mode="OFF")
    client = large_client(rig, leaving)
    client.publish_large("orders", BODY)
    client.publish("orders", b"small", ANYCAST)
    rig.until(lambda: count(leaving, "orders") == 2)
    refusals.room["orders"] = 0
    part = begin(rig, leaving)
    rig.run(10)
    assert not part.over() and count(leaving, "orders") == 2
    refusals.room["orders"] = 2
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    rig.run(1)
    assert not leaving.large.contents
    leaving.stop()
    reader = large_client(rig, target, "orders")
    rig.until(lambda: len(reader.bodies) == 2)
    assert sorted(reader.bodies, key=len) == [b"small", BODY]


@pytest.mark.parametrize("commit_interval", [1, 5])
@pytest.mark.parametrize("option", ["full", "all"])
def test_an_address_without_room_holds_up_no_other_and_stays_when_time_is_up(
    commit_interval: int, option: str
) -> None:
    """One of ours lets members wait, whatever the policy for clients is."""
    rig, target, leaving = filled()
    departure(leaving).choice.config.commit_interval = commit_interval
    departure(leaving).full_timeout_ns = 15_000_000_000
    filled_up(rig, target)
    part = begin(rig, leaving)
    rig.until(lambda: held(target, "others") == MESSAGES, 1)
    rig.run(0.5)
    if option == "all":
        part.on_timer(rig.world.now, "scaledown.deadline")
    else:
        rig.run(10)
        assert not part.over()
        rig.run(10)
    assert (part.phase, part.in_doubt) == (FAILED, False)
    assert "the target has no room at address orders; start this node again" in part.why
    rig.run(0.1)  # the mark of the departure goes
    leaving.stop()
    assert held(target, "orders") == OLDER
    limit(target, -1)
    leaving.start()
    rig.formed()
    assert held(leaving, "orders") == MESSAGES
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == OLDER + MESSAGES


def test_an_address_that_is_emptied_meanwhile_gets_the_rest_in_order() -> None:
    rig, target, leaving = filled()
    filled_up(rig, target)
    consumer = rig.client(target)
    part = begin(rig, leaving)
    rig.run(2)
    assert not part.over()
    consumer.consume("orders")
    rig.until(part.over)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    leaving.stop()
    rig.run(1)
    assert consumer.bodies == OLDER + MESSAGES
    assert held(target, "others") == MESSAGES


def only_here(rig: Rig, target: Host, leaving: Host) -> None:
    """Messages in a queue that the target does not have, and cannot create: its address there is for topics."""
    node_of(target).broker.address_registry.create(rig.world.now, "extra", False, True, False)
    node_of(leaving).broker.queue_registry.create(rig.world.now, QueueSpec("extra", "extra", ANYCAST))
    rig.filled(leaving, MESSAGES, "extra")
    node_of(target).broker.settings.add("extra", {"auto_create_addresses": False})


def allow(target: Host) -> None:
    node_of(target).broker.settings.add("extra", {"auto_create_addresses": True})


def test_a_queue_that_the_target_refuses_stays_until_the_node_leaves_again() -> None:
    rig, target, leaving = filled()
    only_here(rig, target, leaving)
    part = leave(rig, leaving)
    assert (part.phase, part.queues_left()) == (FAILED, {"extra": len(MESSAGES)})
    assert "extra cannot be had at the target" in part.why
    assert len(rig.events("scale_down_refused queue=extra")) == 1
    assert held(target, "orders") == MESSAGES
    leaving.start()
    rig.formed()
    allow(target)
    part = leave(rig, leaving)
    assert part.phase == DONE
    assert held(target, "extra") == MESSAGES
