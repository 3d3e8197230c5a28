"""Messages that the target refuses stay, the rest goes, and what it takes later goes then: once, in order."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down import link
from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.cluster.scale_down.shipments import Shipment
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.scale_down.scale_down_rig import FullTarget, begin, departure, held, leave

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


class FailsMembers(FullTarget):
    """`room` fit in."""

    room = 0

    def ship(self, shipment: Shipment) -> None:
        kind = type(self)
        if shipment.copies[0].address != "orders":
            super().ship(shipment)
        elif kind.room == 0:
            self.refuse(shipment)
        else:
            kind.room -= 1
            super().ship(shipment)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> type[FailsMembers]:
    monkeypatch.setattr(FailsMembers, "room", 20)
    monkeypatch.setattr(link, "Sender", FailsMembers)
    return FailsMembers


def test_what_the_target_refuses_stays_and_goes_when_the_node_leaves_again(
    full: type[FailsMembers],
) -> None:
    rig, target, leaving = filled()
    part = leave(rig, leaving)
    assert (part.phase, part.queues_left()) == (FAILED, {"orders": 40})
    assert part.why == (
        "queue orders: the target refuses a message: address orders is full (code 210);"
        " start this node again: it serves its clients, and may leave again"
    )
    assert held(target, "others") == MESSAGES
    assert held(target, "orders") == MESSAGES[:20]
    assert len(rig.events("scale_down_refused queue=orders")) == 1
    full.room = 100
    leaving.start()
    rig.formed()
    assert held(leaving, "orders") == MESSAGES[20:]
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == MESSAGES


def test_what_the_target_takes_by_and_by_comes_in_order_while_the_node_leaves(
    full: type[FailsMembers],
) -> None:
    """With a little room now and then, longer than one look: as long as it gets on, it goes on."""
    rig, target, leaving = filled()
    part = begin(rig, leaving)
    rig.until(lambda: bool(rig.events("scale_down_refused queue=orders")))
    for _ in range(8):
        rig.run(2.5)
        full.room += 5
    rig.until(part.over)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    assert held(target, "orders") == MESSAGES
    assert held(target, "others") == MESSAGES


@pytest.mark.parametrize("commit_interval", [1, 5])
def test_an_address_without_room_holds_up_no_other_and_stays_when_time_is_up(
    commit_interval: int,
) -> None:
    """One of ours lets members wait, whatever the policy for clients is."""
    rig, target, leaving = filled()
    departure(leaving).choice.config.commit_interval = commit_interval
    filled_up(rig, target)
    part = begin(rig, leaving)
    rig.until(lambda: held(target, "others") == MESSAGES, 1)
    rig.run(0.5)
    part.on_timer(rig.world.now, "scaledown.deadline")
    assert part.phase == FAILED
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


def test_a_queue_that_the_target_refuses_once_and_takes_later() -> None:
    rig, target, leaving = filled()
    only_here(rig, target, leaving)
    part = begin(rig, leaving)
    rig.until(lambda: bool(rig.events("scale_down_refused queue=extra")))
    rig.until(lambda: count(target, "others") == len(MESSAGES))
    allow(target)
    rig.until(part.over)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    assert held(target, "extra") == MESSAGES


def test_a_queue_that_the_target_refuses_for_good_stays_until_the_node_leaves_again() -> None:
    rig, target, leaving = filled()
    only_here(rig, target, leaving)
    part = leave(rig, leaving)
    assert (part.phase, part.queues_left()) == (FAILED, {"extra": len(MESSAGES)})
    assert "extra cannot be had at the target" in part.why
    assert held(target, "orders") == MESSAGES
    leaving.start()
    rig.formed()
    allow(target)
    part = leave(rig, leaving)
    assert part.phase == DONE
    assert held(target, "extra") == MESSAGES
