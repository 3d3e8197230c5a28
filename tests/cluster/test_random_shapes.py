"""Random play in chains, rings and stars: nodes and links fail and come back; what was confirmed arrives."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from tests.cluster.cluster_rig import Client, node_of
from tests.cluster.shapes import Shape, star, symmetric, two_way_chain, two_way_ring
from tests.share import share

SHAPES = {
    "chain": (two_way_chain(4), 3),
    "ring": (two_way_ring(5), 2),
    "wide ring": (two_way_ring(5), 9),
    "star": (star(5), 2),
    "symmetric": (symmetric(4), 1),
    "mesh": (symmetric(4), 4),
}


class Play:
    """Producers everywhere, two consumers at random places, faults that never last for ever."""

    def __init__(self, shape: list[list[int]], max_hops: int, seed: int) -> None:
        self.random = random.Random(seed)
        count = len(shape)
        where = self.random.sample(range(count), self.random.randint(1, count))
        self.rig = Shape(shape, max_hops, where, delay_ms=0)
        self.rig.begin()
        self.where = where
        self.producers = [self.rig.client(host) for host in self.rig.hosts]
        self.consumers: list[Client] = []
        self.sent = 0
        self.bodies: dict[int, dict[int, bytes]] = {}

    def step(self) -> None:
        act = self.random.choice(["send"] * 6 + ["consume", "leave", "crash", "stop", "cut", "heal"])
        hosts = self.rig.hosts
        host = self.random.choice(hosts)
        if act == "send":
            self._send(self.random.randrange(len(hosts)), self.random.randint(1, 8))
        elif act == "consume" and host.up and len(self.consumers) < 3:
            self._consume(self.random.choice(self.where))
        elif act == "leave" and self.consumers:
            self.consumers[0].close()
            self.rig.run(0.2)
        elif act in ("crash", "stop") and host.up:
            (host.crash if act == "crash" else host.stop)()
            self.rig.run(self.random.choice((0.05, 1, 8)))
            host.start()
        elif act == "cut":
            other = self.random.choice(hosts)
            self.rig.network.block(host.name, other.name)
        elif act == "heal":
            self.rig.network.heal()
        self.rig.run(self.random.choice((0.001, 0.3, 3)))

    def _send(self, at: int, count: int) -> None:
        producer = self.producers[at]
        if not producer.ready:
            return
        for _ in range(count):
            self.sent += 1
            body = b"%d" % self.sent
            producer.publish("orders", body, ANYCAST)
            self.bodies.setdefault(at, {})[producer.number] = body

    def _consume(self, at: int) -> None:
        if self.rig.hosts[at].up:
            self.consumers.append(self.rig.consuming(self.rig.hosts[at]))

    def confirmed(self) -> set[bytes]:
        return {
            self.bodies[at][number]
            for at, producer in enumerate(self.producers)
            for number in producer.answers
            if number > 0
        }

    def left(self) -> int:
        return sum(
            queue.message_count
            for host in self.rig.hosts
            for queue in node_of(host).broker.queues.values()
            if queue.durable
        )

    def end(self) -> None:
        """Everything is mended, and somebody consumes: all of it comes."""
        self.rig.network.heal()
        for host in self.rig.hosts:
            if not host.up:
                host.start()
        self.rig.stands()
        self._consume(self.where[0])
        self.rig.until(lambda: self.left() == 0, 120)
        self.rig.run(1)
        got = [body for consumer in self.consumers for body in consumer.bodies]
        assert self.confirmed() - set(got) == set()


@pytest.mark.parametrize("seed", share(range(4)))
@pytest.mark.parametrize("name", list(SHAPES))
def test_what_was_confirmed_arrives(name: str, seed: int) -> None:
    shape, max_hops = SHAPES[name]
    play = Play(shape, max_hops, seed)
    for _ in range(30):
        play.step()
    play.end()
