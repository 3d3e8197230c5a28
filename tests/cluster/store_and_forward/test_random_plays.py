"""Members crash and return at random with messages parked for them."""

from __future__ import annotations

import random
from functools import partial

import pytest

from atalanta.cluster.native_config import OwnSettings
from atalanta.kernel.queue.spec import ANYCAST
from tests.cluster.cluster_rig import Client, Rig, count, node_of


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
