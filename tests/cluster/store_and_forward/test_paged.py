"""Parked messages in page files come back, too: all, once, in order; and their groups and producers keep theirs."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from tests.cluster.cluster_rig import Client, Rig, count, queue_of, waiting

COUNT = 400
TIMEOUT = 10


def forward(rig: Rig) -> object:
    return queue_of(rig.hosts[0], "$.artemis.internal.sf.test.node-1").paged


def parked(rig: Rig, nodes: int = 2, groups: int = 0) -> Client:
    """n0 has little memory, and COUNT messages for n1, which does not get them; returns its producer.

    `groups`: so many message groups in turns; 0: none.
    """
    rig.node(memory_bytes=30_000)
    for _ in range(nodes - 1):
        rig.node()
    rig.form()
    rig.consuming(rig.hosts[1], known_at=rig.hosts[0])
    rig.network.block("n0", "n1")
    producer = rig.client(rig.hosts[0])
    for number in range(COUNT):
        body = b"%03d" % number + bytes(6_000)
        if groups:
            producer.publish("orders", body, ANYCAST, _AMQ_GROUP_ID=f"g{number % groups}")
        else:
            producer.publish("orders", body, ANYCAST)
        if number % 20 == 19:
            rig.run(0.02)  # the link takes what its window allows, and no more
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == COUNT)
    assert forward(rig) is not None, "it pages"
    return producer


def leave_alone(rig: Rig) -> None:
    rig.hosts[1].crash()
    rig.network.heal()


def numbers(client: Client) -> list[int]:
    return [int(body[:3]) for body in client.bodies]


@pytest.mark.parametrize("restart", [False, True])
def test_a_paged_queue_comes_back_to_a_consumer_here(rig: Rig, restart: bool) -> None:
    parked(rig)
    leave_alone(rig)
    rig.run(1)
    if restart:
        rig.hosts[0].crash()
        rig.hosts[0].start()
    near = rig.consuming(rig.hosts[0])
    rig.run(TIMEOUT + 5)
    assert numbers(near) == list(range(COUNT))
    assert waiting(rig.hosts[0], "node-1") == 0 and count(rig.hosts[0], "orders") == 0
    rig.hosts[1].start()
    rig.formed()
    rig.run(2)
    assert count(rig.hosts[1], "orders") == 0


def test_a_paged_queue_comes_back_to_a_consumer_at_another_member(rig: Rig) -> None:
    parked(rig, 3)
    other = rig.consuming(rig.hosts[2])
    leave_alone(rig)
    rig.run(TIMEOUT + 10)
    assert numbers(other) == list(range(COUNT))
    assert waiting(rig.hosts[0], "node-1") == 0


def test_a_consumer_that_takes_them_slowly_gets_all_in_order(rig: Rig) -> None:
    """The queue that they come back to pages then."""
    parked(rig)
    leave_alone(rig)
    slow = rig.client(rig.hosts[0])
    slow.on_packet = lambda packet: None  # type: ignore[method-assign]
    slow.consume("orders")
    rig.run(TIMEOUT + 10)
    slow.close()
    rig.run(1)
    assert waiting(rig.hosts[0], "node-1") + count(rig.hosts[0], "orders") == COUNT
    near = rig.consuming(rig.hosts[0])
    rig.run(TIMEOUT)
    assert numbers(near) == list(range(COUNT))


def test_the_member_that_returns_half_way_gets_the_rest_and_nothing_twice(rig: Rig) -> None:
    parked(rig)
    leave_alone(rig)
    near = rig.consuming(rig.hosts[0], "orders", "AMQSize > 0")
    rig.until(lambda: 0 < len(near.bodies) < COUNT, TIMEOUT + 5)
    near.close()
    rig.hosts[1].start()
    rig.formed()
    far = rig.consuming(rig.hosts[1])
    rig.until(lambda: waiting(rig.hosts[0], "node-1") == 0)
    late = rig.client(rig.hosts[0])  # what came back before stays here
    late.consume("orders")
    rig.run(5)
    taken = set(numbers(near) + numbers(late))
    assert sorted([*taken, *numbers(far)]) == list(range(COUNT)), "each at one of both"
    assert numbers(far) == sorted(numbers(far)) and numbers(late) == sorted(numbers(late))


def test_what_one_producer_sends_meanwhile_comes_behind_what_comes_back(rig: Rig) -> None:
    """The message arrives when all that is older is back."""
    producer = parked(rig)
    leave_alone(rig)
    rig.run(TIMEOUT + 2)  # due, and nobody takes them
    near = rig.consuming(rig.hosts[0])
    rig.until(lambda: len(near.bodies) == COUNT, TIMEOUT + 10)
    for number in range(COUNT, COUNT + 20):
        producer.publish("orders", b"%03d" % number, ANYCAST)
    rig.until(lambda: len(near.bodies) == COUNT + 20)
    assert numbers(near) == list(range(COUNT + 20))


def test_groups_of_a_paged_queue_go_to_one_consumer_each(rig: Rig) -> None:
    parked(rig, groups=5)
    near = [rig.client(rig.hosts[0]) for _ in range(2)]
    for client in near:
        client.consume("orders")
    leave_alone(rig)
    rig.until(lambda: sum(len(each.bodies) for each in near) == COUNT, TIMEOUT + 20)
    for group in range(5):
        shares = [[each for each in numbers(client) if each % 5 == group] for client in near]
        assert sorted(len(share) for share in shares) == [0, COUNT // 5], "one consumer has it all"
        assert list(range(group, COUNT, 5)) in shares, "in order"
