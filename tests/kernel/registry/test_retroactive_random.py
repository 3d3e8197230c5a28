"""Retroactive addresses against a model, in random order: sends, late queues, crashes, compaction, other counts."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import AddressConfig, BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench
from tests.share import share

RINGS = "$.artemis.internal.prices.address.retro"
Sent = tuple[bytes, bool, int]  # body, durable, colour


class Play:
    """`rings` by routing type, and `queues` by name: what should lie there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.paging = self.random.random() < 0.5
        self.count = 5
        self.number = 0
        self.rings: list[list[Sent]] = [[], []]
        self.queues: dict[str, tuple[int, int | None, bool, list[Sent]]] = {}
        self.kept: tuple[list[list[Sent]], dict[str, list[Sent]]] = ([[], []], {})
        config = BrokerConfig(addresses=[AddressConfig("prices", anycast=True, multicast=True)])
        self.bench = Bench(config, self.repository(), self.paging)
        self.bench.broker.resources.create(self.bench.now)
        self.settle()

    def repository(self) -> AddressSettingsRepository:
        made = AddressSettingsRepository()
        made.add("prices", {"retroactive_message_count": self.count})
        if self.paging:
            made.add(RINGS, {"max_size_bytes": 2_000, "page_size_bytes": 1_500})
        return made

    def send(self) -> None:
        bench = self.bench
        kind = self.random.choice((0, 1, -1))
        durable = self.random.random() < 0.7
        colour = self.random.randrange(3)
        self.number += 1
        sent = (b"%d" % self.number, durable, colour)
        if kind == 1 and not any(there[0] == 1 for there in self.queues.values()):
            kind = 0  # else a queue would come with it
        message = bench.message("prices", sent[0], durable, colour=colour)
        if kind >= 0:
            message.put_property("_AMQ_ROUTING_TYPE", kind)
        bench.session().send(bench.now, message, 1)
        anycast = [name for name, there in self.queues.items() if there[0] == 1]
        for ring in (0, 1):
            if kind in (-1, ring):
                self.rings[ring] = [*self.rings[ring], sent][-self.count :]
        for name, (routing, wanted, _, there) in self.queues.items():
            if kind in (-1, routing) and (wanted is None or wanted == colour):
                if routing == 0 or name == anycast[0]:
                    there.append(sent)

    def create(self) -> None:
        kind = self.random.choice((0, 0, 0, 1))
        if kind == 1 and any(there[0] == 1 for there in self.queues.values()):
            kind = 0  # one anycast queue: nothing goes by turns
        wanted = self.random.choice((None, None, 0)) if kind == 0 else None
        durable = self.random.random() < 0.7
        self.number += 1
        name = f"q{self.number}"
        text = None if wanted is None else f"colour = {wanted}"
        self.bench.queue(name, "prices", kind, text, durable)
        copies = [sent for sent in self.rings[kind] if wanted is None or sent[2] == wanted]
        self.queues[name] = (kind, wanted, durable, copies)
        self.settle()

    def delete(self) -> None:
        if self.queues:
            name = self.random.choice(sorted(self.queues))
            del self.queues[name]
            self.bench.broker.queue_registry.delete(self.bench.now, name, "deleted")
            self.settle()

    def settle(self) -> None:
        self.bench.settle()
        rings = [list(ring) for ring in self.rings]
        self.kept = (rings, {name: list(there[3]) for name, there in self.queues.items()})

    def crash(self) -> None:
        """A restart loses what was not settled, and what is not durable."""
        bench = self.bench
        bench.restart()
        bench.broker.resources.create(bench.now)
        self.rings = [[sent for sent in ring if sent[1]] for ring in self.kept[0]]
        for name, (kind, wanted, durable, _) in list(self.queues.items()):
            if durable:
                left = [sent for sent in self.kept[1][name] if sent[1]]
                self.queues[name] = (kind, wanted, durable, left)
            else:
                del self.queues[name]
        self.settle()

    def change(self) -> None:
        self.settle()  # what waits is cut to the old count
        self.count = self.random.choice((3, 5, 8, 40))
        bench = self.bench
        bench.settings = self.repository()
        fresh = BrokerConfig(addresses=bench.config.addresses)
        bench.broker.reload(bench.now, fresh, self.repository(), Security(enabled=False))
        self.rings = [ring[-self.count :] for ring in self.rings]
        self.settle()

    def compact(self) -> None:
        self.settle()
        self.bench.compact(self.bench.journal.last)

    def check(self) -> None:
        self.settle()
        broker = self.bench.broker
        invariants.validate(broker)
        names = (f"$.artemis.internal.prices.queue.{kind}.retro" for kind in ("multicast", "anycast"))
        for ring, name in zip(self.rings, names, strict=True):
            assert bodies(self, name) == [sent[0] for sent in ring]
        for name, (_, _, _, there) in self.queues.items():
            assert bodies(self, name) == [sent[0] for sent in there]


def bodies(play: Play, name: str) -> list[bytes]:
    return [each.message.body for each in everything(play.bench.broker.queues[name])]


@pytest.mark.parametrize("seed", share(range(8)))
def test_queues_hold_what_the_model_says(seed: int) -> None:
    play = Play(seed)
    steps = [play.send] * 12 + [play.create] * 3 + [
        play.delete, play.settle, play.crash, play.change, play.compact,
    ]  # fmt: skip
    for _ in range(150):
        play.random.choice(steps)()
        if play.random.random() < 0.2:
            play.check()
    play.check()
