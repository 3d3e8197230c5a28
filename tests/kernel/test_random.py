"""Thousands of random steps: counters agree after each, memory equals the replayed journal, nothing is lost.

A second broker gets the records while they are written, as that of a passive member of a group does.

A failing seed prints what was done last; the same seed does the same again.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.broker.live_records import LiveRecords
from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.journal.records import Batch
from atalanta.kernel.log.chunk import LogChunk
from atalanta.kernel.queue.consumers import configure
from atalanta.kernel.queue.delivery import scheduled
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.paging.retained_messages import retained_of
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import SettingValue
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint, endpoint
from tests.share import share

STEPS = 700
QUEUES = (
    ("work", "work", 1, None),
    ("one", "topic", 0, None),
    ("two", "topic", 0, "colour = 'red'"),
    ("left", "shared", 1, None),
    ("right", "shared", 1, None),
    ("loud", "topic", 0, None),
    ("dead", "DLA", 1, None),
    ("copied", "copies", 1, None),
    ("wildly", "wild.#", 0, None),
    ("plainly", "wild.a", 0, None),
)
SPECIAL_QUEUES: dict[str, dict[str, Any]] = {
    "newest": {"last_value_key": "colour"},
    "round": {"ring_size": 5},
    "alone": {"exclusive": True},
}
REPLACING = ("newest", "round")  # a confirmed message there may go without being delivered
NAMES = (*(each[0] for each in QUEUES), *SPECIAL_QUEUES)
ADDRESSES = ("work", "topic", "shared", "shared::right", "wild.a", "topic", "work", *SPECIAL_QUEUES)
DIVERT = DivertConfig("divert", "topic", "copies", filter_text="colour = 'blue'")
TTL = 30 * SECOND
RULES: dict[str, SettingValue] = {"max_delivery_attempts": 6, "dead_letter_address": "DLA"}
FIRST_THAT_PAGES = 8  # seeds from here on have little memory and small pages
BROWSERS = 100  # consumer ids from here on only browse


def state(broker: Broker, without: tuple[str, ...] = ()) -> dict[str, object]:
    """Returns what must be the same in memory and after a replay of the journal.

    `without`: queues that are left out, and their messages. A start removes older last values that a consumer held.
    """
    queues: dict[str, object] = {}
    for queue in broker.queues.values():
        if not queue.durable or queue.name in without:
            continue
        queues[queue.name] = (
            queue.id,
            queue.incarnation,
            queue.log.acked_through,
            {lease.group: (lease.epoch, lease.owner) for lease in queue.log.leases.values()},
            queue.log.lost,
            retained_sequences(queue),
            [
                (reference.sequence, reference.message.id, reference.message.body)
                for reference in everything(queue)
                if reference.durable
            ],
        )
    kept = {key: message for key, message in broker.store.messages.items() if message.address not in without}
    return {
        "queues": queues,
        "caches": {
            name: list(cache.ids) for name, cache in broker.caches.by_name.items() if cache.ids
        },
        "values": {key: broker.values.get(key) for key in broker.values.keys()},
        "messages": sorted(kept),
        "scheduled": sorted(
            (entry[0], reference.message.id, reference.queue.id)
            for reference, entry in broker.scheduled.waiting.items()
            if reference.sequence == 0 and reference.durable and reference.queue.name not in without
        ),
        "stored": sum(message.size for message in kept.values()),
    }


def retained_sequences(queue: Queue) -> list[int]:
    retained = retained_of(queue)
    return [] if retained is None else retained.sequences()


def counters(broker: Broker) -> dict[str, object]:
    """Returns the state upon which two brokers agree that have just replayed the same journal."""
    queues = broker.queues.values()
    return {
        "queues": {queue.name: (queue.message_count, queue.bytes, queue.next_sequence) for queue in queues},
        "used": (broker.memory.used_bytes, broker.memory.used_messages),
        "messages": {key: (message.lsn, len(message.references)) for key, message in broker.store.messages.items()},
        "counts": {
            (queue.name, reference.sequence): (int(reference.delivery_count), int(reference.state), reference.durable)
            for queue in queues
            for reference in queue.live()
        },
        "ids": (broker.store.next_message_id, broker.bindings.next_id),
        "stored": broker.store.stored_bytes,
        "newest": {
            queue.name: sorted((value, each.sequence) for value, each in queue.special.newest.items())
            for queue in queues
            if queue.special is not None
        },
    }


def deliveries(bench: Bench) -> dict[str, list[tuple[int, bytes]]]:
    """Returns the deliveries to consumers that take everything: counts and bodies, by queue without a log view."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    for name in [queue.name for queue in bench.broker.queues.values() if queue.active_lease() is None]:
        session = bench.session()
        session.create_consumer(bench.now, 0, name, None, False, 4)
        session.add_credits(0, -1)
        bench.settle()
        while held := [int(each.message.id) for each in session.consumers[0].unacknowledged.values()]:
            session.acknowledge(bench.now, 0, held[-1], False, 1)
            bench.settle()
        found[name] = [(count, body) for _, count, body in endpoint(session).delivered]
    return found


class Passive:
    """A broker that replays what is durable, piece by piece, until it takes over."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.bench = Bench(play.bench.config, play.bench.settings, paging=True)
        self.recovery = Recovery(self.bench.broker, play.random.choice((1, 3, 20, 10_000)))
        self.last = 0

    def follow(self) -> None:
        journal = self.play.bench.journal
        for lsn, kind, payload in journal.records:
            if self.last < lsn <= journal.durable:
                self.recovery.on_record(lsn, kind, payload)
                self.last = lsn
                if self.play.random.random() < 0.3:
                    self.recovery.settle()

    def take_over(self, other: Bench) -> None:
        """Ends the recovery at the time and with the files of another broker, which has just read the journal."""
        self.follow()
        assert self.bench.pages is not None and self.play.bench.pages is not None
        self.bench.pages.files = dict(self.play.bench.pages.files)
        self.bench.journal.last = self.bench.journal.durable = self.last
        self.bench.now = other.now
        self.recovery.finish(other.now)


class Play:
    """One random play; `told` keeps the last steps for the report of a failure."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.bench = Bench(BrokerConfig(id_cache_size=40), paging=True)
        if seed % 4 == 3:
            self.bench.work_in_steps_of(2)
        self.bench.settings.add("#", RULES)
        if seed >= FIRST_THAT_PAGES:
            self.bench.settings.add("#", {**RULES, "max_size_messages": 6, "page_size_bytes": 600})
        self.bench.settings.add("DLA", {"max_delivery_attempts": -1})
        self.bench.settings.add("shared", {"redelivery_delay_ms": 10_000})
        for name, address, kind, filter_text in QUEUES:
            queue = self.bench.queue(name, address, kind, filter_text)
            queue.spec.purge_on_no_consumers = name == "loud"
            configure(queue)
            self.bench.broker.queue_registry.store(queue)
        for name, attributes in SPECIAL_QUEUES.items():
            self.bench.queue(name, **attributes)
        self.bench.broker.diverts.create(DIVERT, True)
        self.bench.settle()
        # Compaction in steps: the lsn it goes up to, what is relocated already, what must be durable then.
        self.clean_through = 0
        self.cleaned = 0
        self.barrier = 0
        self.mixed = seed % 2 == 1  # messages of different priorities
        self.retains = seed % 3 > 0
        self.sessions: list[Session] = []
        self.ended: list[Session] = []
        self.epoch = 0
        self.number = 0
        self.waiting: dict[int, list[bytes]] = {}
        self.confirmed: list[bytes] = []
        self.read: list[bytes] = []
        self.shown: dict[int, bytes] = {}
        self.told: list[str] = []
        self.passive = Passive(self)

    # -- what a client does ---------------------------------------------------------------------
    def session(self) -> Session:
        if self.sessions and self.random.random() < 0.9:
            return self.random.choice(self.sessions)
        made = self.bench.session(transacted=self.random.random() < 0.4)
        self.sessions.append(made)
        return made

    def send(self) -> None:
        session = self.session()
        self.number += 1
        body = f"m{self.number}".encode()
        durable = self.random.random() < 0.8
        properties: dict[str, object] = {"colour": self.random.choice(("red", "blue"))}
        if self.random.random() < 0.3:
            properties["_AMQ_DUPL_ID"] = f"d{self.random.randrange(80)}"
        if self.random.random() < 0.1:
            now_ms = self.bench.now // 1_000_000
            properties["_AMQ_SCHED_DELIVERY"] = now_ms + self.random.randrange(-5_000, 40_000)
        address = self.random.choice(ADDRESSES)
        message = self.bench.message(address, body, durable, **properties)
        if self.mixed and self.random.random() < 0.4:
            message.priority = self.random.randrange(10)
        if self.random.random() < 0.1:
            message.expiration = self.bench.now // 1_000_000 + self.random.randrange(-5, 20_000)
        elif durable and "_AMQ_DUPL_ID" not in properties and session.auto_commit_sends and address not in REPLACING:
            self.waiting[self.number] = [body]
        session.send(self.bench.now, message, self.number)

    def consume(self) -> None:
        session = self.session()
        consumer_id = self.random.randrange(4)
        if consumer_id in session.consumers:
            session.add_credits(consumer_id, self.random.choice((0, 1, 300, -1)))
            return
        name = self.random.choice(NAMES)
        selector = self.random.choice((None, None, "colour = 'red'"))
        browse = self.random.random() < 0.1
        consumer_id += BROWSERS if browse else 0
        priority = self.random.choice((4, 4, 9))
        session.create_consumer(self.bench.now, consumer_id, name, selector, browse, priority)
        session.add_credits(consumer_id, self.random.choice((300, 2_000, -1)))

    def acknowledge(self) -> None:
        session = self.session()
        for consumer_id, consumer in session.consumers.items():
            held = [int(r.message.id) for r in consumer.unacknowledged.values()]
            if held:
                self.number += 1
                session.acknowledge(
                    self.bench.now,
                    consumer_id,
                    self.random.choice(held),
                    self.random.random() < 0.5,
                    self.number,
                )

    def force(self) -> None:
        session = self.session()
        for consumer_id in list(session.consumers):
            session.drain(self.bench.now, consumer_id, 1)

    def commit(self) -> None:
        session = self.session()
        self.number += 1
        if self.random.random() < 0.75:
            session.commit(self.bench.now, self.number)
        else:
            session.rollback(self.bench.now, self.random.random() < 0.5, self.number)

    def close(self) -> None:
        if not self.sessions:
            return
        session = self.sessions[self.random.randrange(len(self.sessions))]
        if session.consumers and self.random.random() < 0.5:
            session.close_consumer(self.bench.now, next(iter(session.consumers)))
            return
        self.sessions.remove(session)
        self.ended.append(session)
        session.client.close(self.bench.now, self.bench.broker.session_services, self.random.random() < 0.5)

    # -- what a log reader does -----------------------------------------------------------------
    def read_log(self) -> None:
        bench = self.bench
        answers = RecordingEndpoint()
        name = "one"
        epoch = self.epoch if self.random.random() < 0.5 else 0
        ttl = TTL if self.random.random() < 0.8 else 0
        held = bench.broker.log_views.lease(bench.now, name, "g", "me", ttl, epoch, answers, 1)
        self.epoch = held.epoch
        if answers.answers != [1]:
            self.settle()  # a reader waits for its lease
        if self.retains and self.random.random() < 0.3:
            limits = self.random.choice(((60_000, 0), (0, 2_000), (200_000, 4_000), (0, 0)))
            bench.broker.log_views.retain(name, "", "g", held.epoch, *limits, -1, answers, 3)
        log = bench.broker.queues[name].log
        start = self.random.choice((log.reader_position(), log.reader_position(), log.released_through()))
        if start < log.reader_position():
            bench.broker.log_views.retain(name, "", "g", held.epoch, -1, -1, start, answers, 4)
        end = bench.broker.log_views.plan(name, "", start, self.random.randrange(1, 9), -1)[0]
        chunk = bench.broker.log_views.read(name, "", start, end, 0, None)
        self.compare_with_earlier(start, end, chunk)
        self.read.extend(reference.message.body for reference in chunk.references)
        if self.random.random() < 0.7:
            bench.broker.log_views.ack_through(name, "", "g", held.epoch, end, answers, 2)

    def compare_with_earlier(self, start: int, end: int, chunk: LogChunk) -> None:
        """A reader is shown again what it was shown, or is told that it was lost."""
        lost = self.bench.broker.log_views.lost_ranges("one", "", start, end)
        found = {reference.sequence: reference.message.body for reference in chunk.references}
        for sequence, body in self.shown.items():
            if start < sequence <= end and found.get(sequence) != body:
                assert any(low <= sequence <= high for low, high, _ in lost), f"{sequence} changed"
        self.shown.update(found)

    # -- what happens to a node -----------------------------------------------------------------
    def settle(self) -> None:
        self.bench.settle()
        self.note_answers()
        self.drop_cleaned()

    def partly_durable(self) -> None:
        journal = self.bench.journal
        journal.durable = self.random.randrange(journal.durable, journal.last + 1)
        self.bench.broker.on_durable(self.bench.now, journal.durable)
        self.note_answers()
        self.drop_cleaned()

    def wait(self) -> None:
        self.bench.now += self.random.randrange(1, 20) * SECOND
        self.bench.broker.log_views.end_leases(self.bench.now)
        self.bench.broker.expiry.scan(self.bench.now)
        scheduled.on_timer(self.bench.broker.store, self.bench.now)

    def compact(self) -> None:
        """One step, as store/compaction.py makes them: others go on between the steps."""
        journal = self.bench.journal
        if self.clean_through == 0:
            durable = [lsn for lsn, _, _ in journal.records if lsn <= journal.durable]
            if not durable:
                return
            self.clean_through = durable[self.random.randrange(len(durable))]
            self.cleaned = 0
            LiveRecords(self.bench.broker).before_compaction(self.bench.now, 2)
        if self.barrier == 0:
            todo = [
                record
                for record in journal.records
                if self.cleaned < record[0] <= self.clean_through
            ]
            for lsn, kind, payload in todo[: self.random.randrange(1, 40)]:
                LiveRecords(self.bench.broker).relocate(lsn, kind, payload)
                self.cleaned = lsn
            if self.cleaned >= self.clean_through or not todo:
                self.barrier = journal.last
        self.drop_cleaned()

    def drop_cleaned(self) -> None:
        journal = self.bench.journal
        if self.barrier != 0 and journal.durable >= self.barrier:
            self.passive.follow()
            self.passive.recovery.forget_before(self.clean_through + 1)
            journal.records = [kept for kept in journal.records if kept[0] > self.clean_through]
            self.clean_through = 0
            self.barrier = 0

    def crash(self) -> None:
        if self.random.random() < 0.7:
            return
        self.note_answers()
        self.ended.extend(self.sessions)
        self.sessions = []
        self.clean_through = 0
        self.barrier = 0
        self.bench.restart()
        self.bench.broker.diverts.deploy()

    def recreate(self) -> None:
        if self.random.random() < 0.8 or "two" not in self.bench.broker.queues:
            return
        self.bench.broker.queue_registry.delete(self.bench.now, "two", "deleted")
        self.bench.queue("two", "topic", 0, "colour = 'red'")

    # -- judging --------------------------------------------------------------------------------
    def note_answers(self) -> None:
        for session in self.sessions + self.ended:
            for token in endpoint(session).answers:
                self.confirmed.extend(self.waiting.pop(token, []))

    def step(self) -> None:
        choices = (
            [self.send] * 12
            + [self.consume] * 5
            + [self.acknowledge] * 6
            + [self.commit] * 4
            + [self.close, self.force, self.read_log, self.crash, self.recreate]
            + [self.compact] * 3
            + [self.settle] * 4
            + [self.partly_durable] * 3
            + [self.wait]
        )
        chosen = self.random.choice(choices)
        self.told.append(chosen.__name__)
        try:
            chosen()
        except BrokerError as error:
            self.told.append(f"  refused: {error.text}")
        if self.random.random() < 0.5:
            self.bench.broker.flush(self.bench.now)
        invariants.validate(self.bench.broker)

    def replay(self) -> None:
        """The present state against a second broker made from the journal."""
        self.settle()
        copy = Bench(self.bench.config, self.bench.settings, paging=True)
        assert copy.pages is not None and self.bench.pages is not None
        copy.pages.files = dict(self.bench.pages.files)
        copy.now = self.bench.now
        copy.journal.records = list(self.bench.journal.records)
        copy.journal.durable = self.bench.journal.last
        copy.restart()
        invariants.validate(copy.broker)
        assert state(copy.broker, REPLACING) == state(self.bench.broker, REPLACING)
        passive = self.passive
        passive.take_over(copy)
        invariants.validate(passive.bench.broker)
        assert state(passive.bench.broker) == state(copy.broker)
        assert counters(passive.bench.broker) == counters(copy.broker)
        assert deliveries(passive.bench) == deliveries(copy)
        self.passive = Passive(self)

    def drain(self) -> None:
        """Everything confirmed has been delivered to somebody, or is now."""
        for session in self.sessions:
            session.client.close(self.bench.now, self.bench.broker.session_services, False)
        self.settle()
        self.ended.extend(self.sessions)
        self.bench.now += 100 * SECOND
        self.bench.broker.log_views.end_leases(self.bench.now)
        log_queue = self.bench.broker.queues["one"]
        self.bench.broker.log_views.retention.choose(log_queue, 0, 0)
        self.bench.broker.log_views.retention.append(log_queue, Batch(), None, 0)
        self.settle()
        scheduled.on_timer(self.bench.broker.store, self.bench.now)
        last = self.bench.session()
        self.ended.append(last)
        for number, name in enumerate(list(self.bench.broker.queues)):
            last.create_consumer(self.bench.now, number, name, None, False, 4)
            last.add_credits(number, -1)
        self.settle()
        for number in range(len(self.bench.broker.queues)):
            held = [int(r.message.id) for r in last.consumers[number].unacknowledged.values()]
            if held:
                last.acknowledge(self.bench.now, number, held[-1], False, -1)
        self.settle()
        for queue in self.bench.broker.queues.values():
            assert queue.message_count == 0, f"{queue.name} is not empty"
        assert self.bench.broker.store.messages == {}
        assert self.bench.broker.memory.used_bytes == 0
        assert self.bench.pages is not None and not self.bench.pages.files


@pytest.mark.parametrize("seed", share(range(2 * FIRST_THAT_PAGES)))
def test_random_steps_keep_every_promise(seed: int) -> None:
    play = Play(seed)
    try:
        for step in range(STEPS):
            play.step()
            if step % 50 == 0:
                play.replay()
        play.drain()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, after {play.told[-12:]}: {error}") from error
    seen = dict.fromkeys(play.read)
    for session in play.ended:
        for consumer_id, _, body in endpoint(session).delivered:
            if consumer_id < BROWSERS:
                seen[body] = None
    assert len(play.confirmed) > 20
    lost = [body for body in play.confirmed if body not in seen]
    assert not lost, f"seed {seed}: {lost} lost"
