"""Which queue gets a message: the rules of Artemis' BindingsImpl, one by one.

The group under test is `orders`, with one queue here and one at each of two peers.
"""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.queue.consumer import DeliveryEndpoint, QueueConsumer
from atalanta.kernel.queue.consumers import add_consumer
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.routing.bindings import (
    OFF,
    OFF_WITH_REDISTRIBUTION,
    ON_DEMAND,
    STRICT,
    BindingGroup,
    RemoteBinding,
)
from atalanta.message.message import Message
from atalanta.message.selector.selector import parse
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Rig, count, node_of

HERE = -1
NOBODY = -2


def local_queue(filter_text: str | None = None, kind: int = ANYCAST) -> Queue:
    selector = None if filter_text is None else parse(filter_text)
    return Queue(1, QueueSpec("orders", "orders", kind), selector, "made")


def remote(mode: int, number: int = 0, consumers: int = 0) -> RemoteBinding:
    forward = Queue(10 + number, QueueSpec(f"sf{number}", f"sf{number}", MULTICAST), None, "made")
    made = RemoteBinding(20 + number, "orders", "orders", f"orders{number}", 7, 1, forward, mode)
    for _ in range(consumers):
        made.add_consumer(None, None)
    return made


def group(
    mode: int, here: int = 0, there: tuple[int, ...] = (0, 0), kind: int = ANYCAST
) -> BindingGroup:
    """`here` consumers at the local queue (-1: no local queue), `there` at each peer's."""
    made = BindingGroup("orders")
    if here >= 0:
        local = local_queue(kind=kind)
        made.locals.append(local)
        for number in range(here):
            add_consumer(local, QueueConsumer(number, local, DeliveryEndpoint(), None, False, 0))
    for number, consumers in enumerate(there):
        made.remotes.append(remote(mode, number, consumers))
    return made


def message(**properties: str | int) -> Message:
    made = Message.create("orders", b"", 4, True, 0, 4)
    for name, value in properties.items():
        made.properties.put(name, value)
    made.properties_changed()
    return made


def choose(bindings: BindingGroup, given: Message, kind: int = ANYCAST) -> int:
    """HERE, NOBODY, or the number of the peer."""
    place = bindings.choose(given, kind, "")
    if place < 0:
        return NOBODY
    return HERE if place < len(bindings.locals) else place - len(bindings.locals)


def choices(bindings: BindingGroup, count: int = 6, kind: int = ANYCAST) -> list[int]:
    return [choose(bindings, message(), kind) for _ in range(count)]


def test_on_demand_shares_among_those_with_consumers() -> None:
    assert choices(group(ON_DEMAND, 1, (1, 0))) == [HERE, 0, HERE, 0, HERE, 0]
    assert choices(group(ON_DEMAND, 1, (1, 1))) == [HERE, 0, 1, HERE, 0, 1]
    assert choices(group(ON_DEMAND, 0, (1, 1)), 4) == [0, 1, 0, 1]


def test_on_demand_keeps_a_message_here_when_nobody_consumes_anywhere() -> None:
    assert choices(group(ON_DEMAND, 0, (0, 0)), 3) == [HERE, HERE, HERE]


def test_without_a_local_queue_the_message_goes_to_a_peer_even_without_consumers() -> None:
    assert choices(group(ON_DEMAND, -1, (0,)), 2) == [0, 0]


def test_strict_takes_turns_whoever_consumes() -> None:
    assert choices(group(STRICT, 1, (0, 0))) == [HERE, 0, 1, HERE, 0, 1]


@pytest.mark.parametrize("mode", [OFF, OFF_WITH_REDISTRIBUTION])
def test_off_leaves_anycast_messages_here(mode: int) -> None:
    assert choices(group(mode, 0, (1, 1)), 3) == [HERE, HERE, HERE]
    assert choices(group(mode, -1, (1, 1)), 1) == [NOBODY]


def test_off_prefers_no_queue_of_a_subscription_that_nobody_reads() -> None:
    """Under ON_DEMAND the local one would be preferred; the position moves on past each choice."""
    assert choices(group(OFF, 0, (0,), MULTICAST), 4, MULTICAST) == [HERE, 0, HERE, 0]
    assert choices(group(OFF, 1, (0,), MULTICAST), 4, MULTICAST) == [HERE] * 4


@pytest.mark.parametrize("mode", [OFF, OFF_WITH_REDISTRIBUTION])
def test_off_still_serves_subscriptions_of_other_nodes(mode: int) -> None:
    assert choices(group(mode, -1, (1,), MULTICAST), 2, MULTICAST) == [0, 0]


def test_a_peer_that_is_away_attracts_nothing() -> None:
    bindings = group(ON_DEMAND, 0, (1, 1))
    bindings.remotes[0].connected = False
    assert choices(bindings, 3) == [1, 1, 1]
    bindings.remotes[1].connected = False
    assert choices(bindings, 2) == [HERE, HERE]
    strict = group(STRICT, 0, (0, 0))
    strict.remotes[0].connected = False
    assert choices(strict, 4) == [HERE, 1, HERE, 1]


@pytest.mark.parametrize("mode", [ON_DEMAND, STRICT, OFF, OFF_WITH_REDISTRIBUTION])
@pytest.mark.parametrize("kind", [ANYCAST, MULTICAST])
def test_no_choice_falls_on_a_peer_that_is_away_while_another_queue_can_take_the_message(
    mode: int, kind: int
) -> None:
    chance = random.Random(mode * 2 + kind)
    for _ in range(200):
        there = tuple(chance.choice((0, 0, 1)) for _ in range(chance.randint(1, 4)))
        bindings = group(mode, chance.choice((HERE, 0, 1)), there, kind)
        for _ in range(12):
            for each in bindings.remotes:
                each.connected = chance.random() < 0.5
            place = bindings.choose(message(), kind, "")
            shared = kind == MULTICAST or mode in (ON_DEMAND, STRICT)
            living = bool(bindings.locals) or (shared and any(r.connected for r in bindings.remotes))
            assert not (living and bindings.is_away(place))
            assert place >= 0 or not (living or shared)


def test_queue_filters_decide_who_is_eligible() -> None:
    bindings = group(ON_DEMAND, -1, (1, 1))
    bindings.remotes[0].filter = parse("region = 'east'")
    bindings.locals.append(local_queue("region = 'west'"))
    assert choose(bindings, message(region="east")) in (0, 1)
    assert choose(bindings, message(region="north")) == 1
    bindings.remotes.pop()
    assert choose(bindings, message(region="north")) == NOBODY
    assert choose(bindings, message(region="west")) == HERE


def test_selectors_of_remote_consumers_decide_who_is_wanted() -> None:
    bindings = group(ON_DEMAND, 0, (0, 0))
    bindings.remotes[0].add_consumer("kind = 1", parse("kind = 1"))
    assert choose(bindings, message(kind=1)) == 0
    assert choose(bindings, message(kind=2)) == HERE
    bindings.remotes[0].add_consumer(None, None)
    assert choose(bindings, message(kind=2)) == 0
    bindings.remotes[0].remove_consumer(None)
    bindings.remotes[0].remove_consumer("kind = 1")
    assert choose(bindings, message(kind=1)) == HERE


def test_two_remote_consumers_with_one_selector_count_twice() -> None:
    binding = remote(ON_DEMAND)
    selector = parse("kind = 1")
    binding.add_consumer("kind = 1", selector)
    binding.add_consumer("kind = 1", selector)
    binding.remove_consumer("kind = 1")
    assert binding.high_accept(message(kind=1))
    assert not binding.high_accept(message(kind=2))
    binding.remove_consumer("kind = 1")
    assert not binding.high_accept(message(kind=1))


def test_local_selectors_count_as_well() -> None:
    bindings = group(ON_DEMAND, 0, (1,))
    local = bindings.locals[0]
    add_consumer(local, QueueConsumer(1, local, DeliveryEndpoint(), parse("kind = 1"), False, 0))
    assert [choose(bindings, message(kind=2)) for _ in range(2)] == [0, 0]
    assert sorted(choose(bindings, message(kind=1)) for _ in range(2)) == [HERE, 0]


def test_a_browser_is_no_consumer() -> None:
    bindings = group(ON_DEMAND, 0, (1,))
    local = bindings.locals[0]
    add_consumer(local, QueueConsumer(1, local, DeliveryEndpoint(), None, True, 0))
    assert choices(bindings, 2) == [0, 0]


def test_redistribution_finds_consumers_elsewhere_in_turn_but_never_a_peer_that_is_away() -> None:
    bindings = group(ON_DEMAND, 0, (1, 1))
    first = bindings.redistribution_target(message())
    second = bindings.redistribution_target(message())
    assert first is not None and second is not None and first is not second
    bindings.remotes[0].connected = bindings.remotes[1].connected = False
    assert bindings.redistribution_target(message()) is None
    assert group(STRICT, 0, (1, 1)).redistribution_target(message()) is None
    assert group(OFF, 0, (1, 1)).redistribution_target(message()) is None
    assert group(OFF_WITH_REDISTRIBUTION, 0, (1, 1)).redistribution_target(message()) is not None


@pytest.mark.parametrize("mode", ["OFF", "OFF_WITH_REDISTRIBUTION"])
def test_where_nothing_is_shared_a_queue_that_only_others_have_is_made_for_the_message(
    rig: Rig,
    mode: str,
) -> None:
    first, second = rig.cluster(2, mode=mode)
    rig.client(second).publish("work", b"there", ANYCAST)
    rig.until(lambda: "work" in node_of(second).broker.queues)
    rig.run(1)
    client = rig.client(first)
    client.publish("work", b"here", ANYCAST)
    rig.until(lambda: client.answers == [1])
    assert (count(first, "work"), count(second, "work")) == (1, 1)


def test_members_learn_all_queues_although_slow_subscribers_keep_few_messages(rig: Rig) -> None:
    """More notifications wait than the window of the link takes at once."""
    a = rig.node(queues=[queue(f"q{number}", f"q{number}", ANYCAST) for number in range(3_000)])
    b = rig.node()
    for host in (a, b):
        host.start()
        node_of(host).broker.settings.add("#", {"pending_message_limit": 5})
    rig.until(lambda: sum(len(each.remotes()) for each in node_of(b).broker.addresses.values()) == 3_000)
