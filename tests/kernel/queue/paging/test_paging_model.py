"""A ring that pages, held against a list: what waits, in what order, after every deed and every crash."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.reference import READY
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench, consume, endpoint

RING = 9
DEED: st.SearchStrategy[tuple[str, list[bool]]] = st.one_of(
    st.tuples(st.just("send"), st.lists(st.booleans(), min_size=1, max_size=12)),
    st.tuples(st.just("commit"), st.lists(st.booleans(), min_size=1, max_size=6)),
    st.tuples(st.sampled_from(["take", "take", "hold", "hold", "back", "done"]), st.just([])),
    st.tuples(st.sampled_from(["restart", "compact", "purge", "take", "back"]), st.just([])),
)


@dataclass(frozen=True)
class Sent:
    number: int
    durable: bool


class Model:
    """The expected messages. `held`: consumers have them, one each, the oldest first."""

    def __init__(self) -> None:
        self.waiting: list[Sent] = []
        self.held: list[Sent] = []

    def send(self, sent: Sent) -> None:
        self.waiting.append(sent)

    def settle(self) -> None:
        self.waiting = self.waiting[-RING:]

    def back(self, sent: Sent) -> None:
        self.waiting = sorted([*self.waiting, sent], key=lambda each: each.number)
        self.settle()

    def restart(self) -> None:
        there = sorted([*self.waiting, *self.held], key=lambda each: each.number)
        self.waiting = []
        self.held = []
        for each in there:
            if each.durable:
                self.send(each)
        self.settle()


class Play:
    def __init__(self) -> None:
        repository = AddressSettingsRepository()
        repository.add(
            "#", {"max_size_messages": 4, "page_size_bytes": 700, "max_delivery_attempts": -1}
        )
        self.bench = Bench(None, repository, paging=True)
        self.bench.queue("orders", ring_size=RING)
        self.bench.settle()
        self.model = Model()
        self.holders: list[Session] = []
        self.number = 0

    def act(self, deed: str, messages: list[bool]) -> None:
        bench = self.bench
        if messages:
            self.send(deed == "commit", messages)
        elif deed == "restart":
            bench.restart()
            self.model.restart()
            self.holders = []
        elif deed == "compact":
            bench.compact(bench.journal.last - 5)
        elif deed == "purge":
            bench.broker.mover.purge(bench.broker.queues["orders"], "purged")
            self.model.waiting = []
        elif deed in ("take", "hold"):
            self.take(deed == "hold")
        elif self.holders:
            session, sent = self.holders.pop(0), self.model.held.pop(0)
            if deed == "done":
                session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 0)
            else:
                self.model.back(sent)
            session.close(bench.now, False)
        bench.settle()
        self.model.settle()

    def send(self, together: bool, messages: list[bool]) -> None:
        session = self.bench.session(transacted=together)
        for durable in messages:
            self.number += 1
            sent = Sent(self.number, durable)
            body = self.number.to_bytes(4, "big") + bytes(60)
            message = self.bench.message("orders", body, durable)
            session.send(self.bench.now, message, self.number)
            self.model.send(sent)
        if together:
            session.commit(self.bench.now, 0)

    def take(self, hold: bool) -> None:
        session = self.bench.session()
        consume(session, self.bench, "orders", credits=1)
        self.bench.settle()
        got = [int.from_bytes(body[:4], "big") for body in endpoint(session).bodies()]
        assert got == [each.number for each in self.model.waiting[:1]]
        if not got:
            session.close(self.bench.now, False)
            return
        sent = self.model.waiting.pop(0)
        if hold:
            self.model.held.append(sent)
            self.holders.append(session)
        else:
            session.acknowledge(self.bench.now, 0, endpoint(session).message_ids[0], True, 0)
            session.close(self.bench.now, False)

    def check(self) -> None:
        queue = self.bench.broker.queues["orders"]
        found = [each for each in everything(queue) if each.state == READY]
        numbers = [int.from_bytes(each.message.body[:4], "big") for each in found]
        assert numbers == [each.number for each in self.model.waiting]
        assert queue.message_count == len(self.model.waiting) + len(self.model.held)
        assert queue.delivering_count == len(self.model.held)
        invariants.validate(self.bench.broker)


def test_as_a_list_would_have_it() -> None:
    counted: dict[str, int] = {}

    @settings(max_examples=60)
    @given(st.lists(DEED, min_size=10, max_size=40))
    def run(deeds: list[tuple[str, list[bool]]]) -> None:
        play = Play()
        for deed, messages in deeds:
            play.act(deed, messages)
            play.check()
        for name, count in play.bench.trace.counters.items():
            counted[name] = counted.get(name, 0) + count
        play.bench.broker.mover.purge(play.bench.broker.queues["orders"], "purged")
        for session in play.holders:
            session.acknowledge(play.bench.now, 0, endpoint(session).message_ids[0], True, 0)
        play.bench.settle()
        assert play.bench.pages is not None and not play.bench.pages.files
        assert play.bench.broker.memory.used_bytes == play.bench.broker.store.stored_bytes == 0

    run()
    assert counted["pages_written"] > 100
