"""Random plays with large messages and power cuts: what was confirmed comes, whole, and no file stays."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.memory.large_body import OPEN_TIMER
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.consumer import ConsumerClose, FlowToken, IndividualAcknowledge
from tests.share import share
from tests.wire.core.server.large_rig import PIECE, Reader, files, send_large
from tests.wire.core.server.server_rig import Client, Server

QUEUES = ("a", "b")
STEPS = 60


class Play:
    """Two subscriptions of one address; `owed` are bodies that a queue was promised and has not seen acknowledged."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.server = Server()
        self.server.trace.on = False
        client = self.server.login()
        for queue in QUEUES:
            client.create_queue(queue, "news", 0)
        self.number = 0
        self.unconfirmed: dict[int, bytes] = {}
        self.owed: dict[str, dict[bytes, bool]] = {queue: {} for queue in QUEUES}
        self.sender = self.server.login()
        self.takers: dict[str, tuple[Client, Reader]] = {}

    def send(self) -> None:
        self.number += 1
        size = self.random.choice((0, 50, PIECE, 2 * PIECE + 3))
        body = self.number.to_bytes(4, "big") + bytes(size)
        self.unconfirmed[send_large(self.sender, "news", body)] = body

    def work(self) -> None:
        self.server.work_files(self.random.randint(1, 6))
        if self.random.random() < 0.5:
            self.server.journal.durable = self.server.journal.last
            self.server.broker.on_durable(self.server.now, self.server.journal.last)
            self.server.turn()
        self.look()

    def look(self) -> None:
        for _, packet in self.sender.receive():
            if isinstance(packet, NullResponse) and packet.correlation in self.unconfirmed:
                body = self.unconfirmed.pop(packet.correlation)
                for queue in QUEUES:
                    self.owed[queue][body] = True

    def take(self) -> None:
        queue = self.random.choice(QUEUES)
        if queue not in self.takers:
            client = self.server.login()
            client.consume(queue, credits=None)
            self.look()
            self.takers[queue] = (client, Reader(client))
        self.takers[queue][0].send(FlowToken(0, self.random.choice((10, PIECE, 3 * PIECE))))

    def acknowledge(self) -> None:
        for queue, (client, reader) in self.takers.items():
            for got in reader.look():
                if got.whole:
                    client.send(IndividualAcknowledge(0, got.id, False))
                    self.owed[queue].pop(got.body, None)
            reader.got = [got for got in reader.got if not got.whole]

    def leave(self) -> None:
        if self.takers:
            queue = self.random.choice(list(self.takers))
            client, _ = self.takers.pop(queue)
            if self.random.random() < 0.5:
                client.send(ConsumerClose(0))
            self.server.lost(client.conn)

    def power_cut(self) -> None:
        """Acknowledgements may be lost with it: what they were for may come again."""
        server = self.server
        server.file_jobs.clear()
        server.large.crash()
        server.restart()
        self.takers.clear()
        self.unconfirmed.clear()
        self.sender = server.login()

    def finish(self) -> None:
        server = self.server
        server.settle()
        self.look()
        for queue in list(self.takers):
            server.lost(self.takers.pop(queue)[0].conn)
        seen: dict[str, list[bytes]] = {}
        for queue in QUEUES:
            client = server.login()
            client.consume(queue)
            reader = Reader(client)
            server.settle()
            for got in reader.look():
                assert got.whole and len(got.body) == got.size
                client.send(IndividualAcknowledge(0, got.id, False))
            seen[queue] = [got.body for got in reader.got]
            for body in self.owed[queue]:
                assert body in seen[queue], f"{queue}: a confirmed message is missing"
            numbers = [int.from_bytes(body[:4], "big") for body in seen[queue]]
            assert numbers == sorted(numbers)
        server.settle()
        server.broker.on_timer(server.now, OPEN_TIMER)
        server.settle()
        validate(server.broker)
        assert files(server) == 0 and server.broker.large.bodies == {}


@pytest.mark.parametrize("seed", share(range(40)))
def test_a_random_play(seed: int) -> None:
    play = Play(seed)
    steps = [play.send] * 4 + [play.work] * 8 + [play.take] * 4 + [play.acknowledge] * 2
    steps += [play.leave, play.power_cut]
    for _ in range(STEPS):
        play.random.choice(steps)()
        validate(play.server.broker)
    play.finish()
    assert not [name for name, _ in play.server.trace.events if name == "large_message_damaged"]
