"""Random histories of a group: crashes of any member at any moment, while messages come and go.

Whatever was confirmed is served by whoever serves at the end, once and in order.
"""

from __future__ import annotations

import random

import pytest

from atalanta.store.config import JournalConfig
from atalanta.store.pages import page_number
from atalanta.store.segment import SEGMENT_HEAD_SIZE
from tests.cluster.replication.group_rig import (
    JOURNAL_ID,
    MS,
    begin_large,
    publish,
    send_piece,
)
from tests.cluster.replication.replica_rig import Replica, ReplicaWorld, drain, paging
from tests.share import share
from tests.wire.core.server.server_rig import queue_request

SEEDS = 16
STEPS = 60
BODY_SIZES = (101_000, 300_000, 700_000)


class History:
    """One group with a client that sends to whoever serves; it knows what was confirmed, and what was only sent."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        segment_size = self.draw.choice((16_384, 1 << 20))
        journal = JournalConfig(JOURNAL_ID, segment_size_bytes=segment_size, compact_min_segments=2)
        self.world = ReplicaWorld(self.draw.choice((2, 2, 3)), seed, journal, settings=paging)
        self.confirmed: dict[str | bytes, bool] = {}
        self.sent: dict[int, str | bytes] = {}  # by correlation, without an answer
        self.taken: list[str | bytes] = []
        self.conn = 0
        self.server: tuple[Replica, int] | None = None
        self.count = 0
        self.takeovers = 0

    def serving(self) -> Replica | None:
        found = [each for each in self.world.replicas.values() if each.serving]
        return found[0] if len(found) == 1 and self.world.serves(found[0].name) else None

    def begin(self) -> None:
        self.world.begin()
        server = self.connect()
        assert server is not None
        server.send(self.conn, queue_request("orders"))
        self.world.run(200)
        server.received(self.conn)

    def connect(self) -> Replica | None:
        """The client is connected to whoever serves now; what had no answer before never gets one."""
        server = self.serving()
        if server is None:
            return None
        if self.server != (server, server.life):
            self.server = (server, server.life)
            self.takeovers += 1
            self.sent.clear()
            self.conn = server.login()
        return server

    def step(self) -> None:
        draw, world = self.draw, self.world
        chance = draw.random()
        server = self.connect()
        if server is not None and chance < 0.55:
            self.send(server)
        elif server is not None and chance < 0.65:
            self.send_large(server)
        elif chance < 0.75:
            self.crash(draw.choice(list(world.replicas.values())))
        elif chance < 0.78:
            draw.choice(list(world.replicas.values())).leave("the network breaks")
        elif chance < 0.80:
            world.manager.writes_lost = 1
        world.run(draw.choice((1, 5, 20, 100, 700)))
        self.hear()
        for replica in world.replicas.values():
            if not replica.up and draw.random() < 0.3:
                replica.run_passive()

    def send(self, server: Replica) -> None:
        for _ in range(self.draw.choice((1, 5, 20))):
            self.count += 1
            text = f"{self.count:06d} {'x' * self.draw.choice((10, 1000))}"
            self.sent[-self.count - 100] = text
            publish(server, self.conn, text, -self.count - 100)

    def send_large(self, server: Replica) -> None:
        self.count += 1
        size = self.draw.choice(BODY_SIZES)
        body = self.count.to_bytes(4, "big") * (size // 4)
        begin_large(server, self.conn)
        life = server.life
        for start in range(0, len(body), 100_000):
            if server.life != life or not server.up:
                return
            piece = body[start : start + 100_000]
            last = start + 100_000 >= len(body)
            if last:
                self.sent[-self.count - 100] = body
            send_piece(server, self.conn, piece, len(body), -self.count - 100 if last else 0)
            self.world.run(self.draw.choice((0, 1, 3)))

    def crash(self, replica: Replica) -> None:
        if not replica.up or sum(each.up for each in self.world.replicas.values()) < 2:
            return
        self.hear()
        replica.crash()

    def hear(self) -> None:
        """Takes the answers that have left: what they name is confirmed."""
        if self.server is None:
            return
        server, life = self.server
        if server.life == life and server.up:
            for correlation in server.confirmed(self.conn):
                self.confirmed[self.sent.pop(correlation)] = True

    def finish(self) -> None:
        world = self.world
        self.hear()
        world.manager.writes_lost = 0
        for replica in world.replicas.values():
            if not replica.up:
                replica.run_passive()
        names = list(world.replicas)
        world.until(lambda: self.serving() is not None and world.in_sync() == names, 300_000)
        world.settle(1_000)
        active = world.active
        for replica in world.replicas.values():
            if replica is not active:
                assert different(active, replica) == []
        active.crash()
        world.until(lambda: self.serving() is not None, 120_000)
        found = drain(world)
        assert len(set(found)) == len(found), "a message twice"
        missing = [each[:10] for each in self.confirmed if each not in found]
        assert missing == [], f"{len(missing)} of {len(self.confirmed)} confirmed messages are gone"


def different(active: Replica, follower: Replica) -> list[str]:
    """Returns the names of the active node's files that the follower has not got. Segments count up to their end."""
    ends = {segment.name: segment.end for segment in active.node.journal.segments if segment.end > SEGMENT_HEAD_SIZE}
    mine = {name: bytes(active.disk.files[name][:end]) for name, end in ends.items()}
    other = {name: bytes(follower.disk.files.get(name, b"")[:end]) for name, end in ends.items()}
    for replica, found in ((active, mine), (follower, other)):
        found |= {name: bytes(data) for name, data in replica.disk.files.items() if page_number(name)}
        found |= {str(file): bytes(data) for file, data in replica.large.contents.items()}
    return [name for name in mine if other.get(name) != mine[name]]


@pytest.mark.parametrize("seed", share(range(SEEDS)))
def test_what_was_confirmed_is_served_by_the_last_one(seed: int) -> None:
    play(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_what_was_confirmed_is_served_by_the_last_one_in_many_histories(seed: int) -> None:
    play(seed)


def play(seed: int) -> None:
    history = History(seed)
    history.begin()
    for _ in range(STEPS):
        history.step()
    assert history.world.schedule.now > 100 * MS
    history.finish()
