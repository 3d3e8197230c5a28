"""Random plays: crashes, cuts one way and both, stops and restarts at either end, large messages among small ones.

At the end every message is at the target once and in order, and no file is left behind.
"""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND
from tests.cluster.cluster_rig import count
from tests.cluster.core_bridges.bridge_rig import BridgeRig, bridge, bridge_of
from tests.cluster.links.large_client import LargeClient, client
from tests.share import share

EVENTS = ("source", "target", "both", "cut", "one way", "restart", "stop")


class Play:
    """One world, one bridge with drawn windows, one producer that waits for its answers."""

    def __init__(self, seed: int) -> None:
        self.rig = BridgeRig(seed)
        self.draw = self.rig.world.random("play")
        config = bridge(
            retry_interval_ms=self.draw.choice([50, 500]),
            producer_window_bytes=self.draw.choice([-1, 1_000, 1 << 20]),
            confirmation_window_bytes=self.draw.choice([500, 5_000, 1 << 20]),
            min_large_message_bytes=self.draw.choice([1_500, 5_000, 100_000]),
        )
        self.source, self.target = self.rig.pair(config)
        self.producer = client(self.rig, self.source)
        self.sent: list[bytes] = []

    def run(self) -> None:
        for _ in range(10):
            self.send()
            pause_us = self.draw.randint(0, 40_000)
            self.rig.world.run_until(self.rig.world.now + pause_us * SECOND // 1_000_000)
            self.strike(self.draw.choice(EVENTS))
        self.rig.until(lambda: count(self.source, "orders") == 0, 200)
        self.rig.until(lambda: count(self.target, "inbox") == len(self.sent), 100)
        consumer = client(self.rig, self.target, "inbox")
        self.rig.until(lambda: len(consumer.bodies) >= len(self.sent), 60)
        self.rig.run(3)
        assert consumer.bodies == self.sent
        assert not self.source.large.contents and not self.target.large.contents

    def send(self) -> None:
        for _ in range(self.draw.randint(1, 25)):
            body = b"%d " % len(self.sent)
            if self.draw.random() < 0.1:
                body += b"x" * self.draw.choice([1, 1_000, 300_000])
                self.producer.publish_large("orders", body)
            else:
                body += b"y" * self.draw.choice([1, 50, 2_000])
                self.producer.publish("orders", body, ANYCAST)
            self.sent.append(body)
        self.rig.until(self.answered, 120)

    def answered(self) -> bool:
        return len(set(self.producer.answers)) >= len(self.sent)

    def strike(self, what: str) -> None:
        network = self.rig.network
        if what == "cut":
            network.block("n0", "n1")
            network.block("n1", "n0")
            self.rig.run(self.draw.choice([0.5, 9, 20]))
            network.heal()
        elif what == "one way":
            network.block(*self.draw.choice([("n0", "n1"), ("n1", "n0")]))
            self.rig.run(self.draw.choice([0.5, 9, 20]))
            network.heal()
        elif what == "stop":
            self.stop_and_start()
        elif what == "restart":
            self.target.stop()
            self.rig.run(1)
            self.target.start()
        else:
            ends = {"source": [self.source], "target": [self.target]}
            self.crash(ends.get(what, [self.source, self.target]))

    def stop_and_start(self) -> None:
        bridge_of(self.source).stop(self.rig.world.now)
        self.source.flush_later()
        self.rig.run(self.draw.choice([0.0, 0.01, 1]))
        bridge_of(self.source).start(self.rig.world.now)
        self.source.flush_later()

    def crash(self, victims: list[Host]) -> None:
        for victim in victims:
            victim.crash()
        self.rig.run(self.draw.choice([0.2, 1, 8]))
        for victim in victims:
            victim.start()
        if self.source in victims:
            again: LargeClient = client(self.rig, self.source)
            again.number = len(self.sent)
            again.answers = list(range(len(self.sent)))
            self.producer = again


@pytest.mark.parametrize("seed", share(range(12)))
def test_a_random_play_loses_and_doubles_nothing(seed: int) -> None:
    Play(seed).run()
