"""Page files that are damaged while their broker runs, and between its starts."""

from __future__ import annotations

from typing import cast

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.runtime.disk.memory_disk import MemoryDisk
from atalanta.store.pages import PageFiles, page_name
from tests.fuzz.mutator import Mutator
from tests.fuzz.target import Target
from tests.kernel.broker_rig import MemoryPages, consume, endpoint
from tests.kernel.queue.paging.paging_rig import SMALL, Taker, bench_with, numbers_of, send

QUEUES = ("orders", "other")
MESSAGES = 130
DEEDS = 10
BROWSED_BYTES = 100_000


class DamageTarget(Target):
    """Pairs of bytes: a deed and its argument. Only `orders` has damaged files.

    Each message is delivered once and in order, or is one of those that an event reports as lost.
    """

    name = "damage"
    base_bytes = 8 << 20
    seconds = 2.0
    size_max = 40

    def mutator(self) -> Mutator:
        return Mutator(self.size_max, [bytes([deed, 80]) for deed in range(DEEDS)])

    def seeds(self) -> list[bytes]:
        return [bytes([deed, 100, 3, 30, 4, 20, 7, 0]) for deed in range(DEEDS)]

    def run(self, data: bytes) -> None:
        play = Play()
        for at in range(0, len(data) - 1, 2):
            play.act(data[at] % DEEDS, data[at + 1])
        play.end()


class Play:
    """A broker with page files on a disk in memory, and the numbers of the messages that each queue should have."""

    def __init__(self) -> None:
        self.disk = MemoryDisk(lambda *_: None, lambda _: None)
        self.bench = bench_with(SMALL)
        self.bench.queue("other")
        self.bench.settle()
        self.restart()
        self.left: dict[str, list[int]] = {name: [] for name in QUEUES}
        self.sent = 0
        for name in QUEUES:
            self.send(name, MESSAGES)

    def act(self, deed: int, argument: int) -> None:
        if deed in (0, 1, 2):
            self.damage(deed, argument)
        elif deed == 3:
            self.take("orders" if argument % 4 else "other", argument)
        elif deed == 4:
            self.give_back(argument)
        elif deed == 5:
            self.send(QUEUES[argument % 2], argument // 4)
        elif deed == 6:
            self.browse()
        elif deed == 7:
            self.restart()
        elif deed == 8:
            self.bench.compact(self.bench.journal.last - argument)
        else:
            self.take_selected(argument)
        self.check()

    def check(self) -> None:
        """Reads all pages, so that each damage is found, and checks the counts."""
        broker = self.bench.broker
        for queue in broker.queues.values():
            everything(queue)
        broker.wake(self.bench.now)
        self.bench.settle()
        invariants.validate(broker)

    def restart(self) -> None:
        self.bench.pages = cast(MemoryPages, PageFiles(self.disk, bytes(16)))
        self.bench.restart()

    def send(self, name: str, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        send(self.bench, numbers, address=name)
        self.left[name].extend(numbers)
        self.sent += count

    def damage(self, deed: int, argument: int) -> None:
        """Flips a byte of a page file or deletes it, and forgets what was read before."""
        broker = self.bench.broker
        wanted = broker.queues["orders"].id
        numbers = [page.number for page in broker.paging.pages.values() if page.queue_id == wanted]
        names = [page_name(number) for number in numbers if page_name(number) in self.disk.names()]
        if not names:
            return
        name = names[argument % len(names)]
        if deed == 2:
            self.disk.delete(name)
        else:
            offset = argument * self.disk.size(name) // 256
            self.disk.repair(name, offset, bytes([self.disk.read(name, offset, 1)[0] ^ 1]))
        broker.paging.files = broker.paging.reader.files = PageFiles(self.disk, bytes(16))
        broker.paging.reader._cache.clear()

    def take(self, name: str, count: int) -> None:
        taker = Taker(self.bench, name)
        self.taken(name, taker.take(count))
        taker.session.close(self.bench.now, False)

    def taken(self, name: str, got: list[int]) -> None:
        assert got == sorted(set(got)) and set(got) <= set(self.left[name])
        self.left[name] = [number for number in self.left[name] if number not in got]

    def give_back(self, count: int) -> None:
        """Receives messages, which return when the session is closed."""
        session = self.bench.session()
        consume(session, self.bench, "orders", credits=600 * count)
        self.bench.settle()
        got = numbers_of(endpoint(session).bodies())
        assert got == sorted(set(got)) and set(got) <= set(self.left["orders"])
        session.close(self.bench.now, False)

    def browse(self) -> None:
        session = self.bench.session()
        consume(session, self.bench, "orders", credits=BROWSED_BYTES, browse=True)
        self.bench.settle()
        got = numbers_of(endpoint(session).bodies())
        assert got == sorted(set(got)) and set(got) <= set(self.left["orders"])
        session.close(self.bench.now, False)

    def take_selected(self, argument: int) -> None:
        """Takes messages by their ids, of which there are some in pages."""
        session = self.bench.session()
        consume(session, self.bench, "orders", f"AMQPriority = {4 + argument % 2}", credits=20_000)
        self.bench.settle()
        seen = endpoint(session)
        got = numbers_of(seen.bodies())[argument % 7 :: 3]
        for message_id in seen.message_ids[argument % 7 :: 3]:
            session.acknowledge(self.bench.now, 0, message_id, True, 0)
        self.bench.settle()
        self.taken("orders", got)
        session.close(self.bench.now, False)

    def end(self) -> None:
        """Takes all messages, and counts those that are missing."""
        for name in QUEUES:
            self.take(name, 10_000)
        self.check()
        assert not self.left["other"]
        lost = 0
        for event, fields in self.bench.trace.events:
            if event == "page_file_damaged":
                assert fields["queue"] == "orders"
                lost += cast(int, fields["messages"])
        assert lost == len(self.left["orders"])
        assert self.bench.broker.queues["orders"].message_count == 0
