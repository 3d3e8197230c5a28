"""Random plays with special queues: what each kind promises holds after every step, and after every crash."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.queue.paging.iteration import everything
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import DELIVERING, READY, Reference
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import SettingValue
from tests.kernel.broker_rig import SECOND, Bench
from tests.share import share

STEPS = 500
KEY = "_AMQ_LVQ_NAME"
KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "values": {"last_value_key": KEY},
    "table": {"last_value_key": KEY, "non_destructive": True},
    "ring": {"ring_size": 5},
    "ringed": {"ring_size": 4, "last_value_key": KEY},
    "alone": {"exclusive": True, "group_first_key": "first"},
    "groups": {"group_first_key": "first"},
    "buckets": {"group_buckets": 3},
    "gated": {"consumers_before_dispatch": 2},
}


class Play:
    def __init__(self, seed: int, paging: bool = False, counting: bool = False) -> None:
        self.random = random.Random(seed)
        self.paging = paging
        config = BrokerConfig(persist_delivery_count_before_delivery=counting)
        self.bench = Bench(config, paging=paging)
        values: dict[str, SettingValue] = {"max_delivery_attempts": 5, "redelivery_delay_ms": seed % 2 * 500}
        if paging:
            values.update(max_size_messages=seed % 5 + 2, page_size_bytes=500)
        self.bench.settings.add("#", values)
        for name, attributes in KINDS.items():
            self.bench.queue(name, "topic", 0, **attributes)  # type: ignore[arg-type]
        self.bench.settle()
        self.sessions: list[Session] = []
        self.number = 0
        self.groups_end = seed % 3 == 0  # by their last message, or shared anew

    def session(self) -> Session:
        if self.sessions and self.random.random() < 0.9:
            return self.random.choice(self.sessions)
        made = self.bench.session(transacted=self.random.random() < 0.4)
        self.sessions.append(made)
        return made

    def send(self) -> None:
        self.number += 1
        properties: dict[str, object] = {}
        if self.random.random() < 0.8:
            properties[KEY] = self.random.choice("abcd")
        if self.random.random() < 0.8:
            properties["_AMQ_GROUP_ID"] = self.random.choice("pqrst")
            if self.groups_end and self.random.random() < 0.1:
                properties["_AMQ_GROUP_SEQUENCE"] = -1
        durable = self.random.random() < 0.8
        message = self.bench.message("topic", f"m{self.number}".encode(), durable, **properties)
        if self.random.random() < 0.1:
            message.priority = self.random.randrange(10)
        if self.random.random() < 0.1:
            message.expiration = self.bench.now // 1_000_000 + self.random.randrange(5_000)
        self.session().send(self.bench.now, message, self.number)

    def consume(self) -> None:
        session = self.session()
        consumer_id = self.random.randrange(6)
        if consumer_id in session.consumers:
            session.add_credits(consumer_id, self.random.choice((1, 300, -1)))
            return
        name = self.random.choice(list(KINDS))
        selector = self.random.choice((None, None, None, f"{KEY} = 'a'"))
        browse = self.random.random() < 0.1
        session.create_consumer(self.bench.now, consumer_id, name, selector, browse, 0)
        session.add_credits(consumer_id, self.random.choice((0, 300, 2_000, -1)))

    def acknowledge(self) -> None:
        session = self.session()
        for consumer_id, consumer in session.consumers.items():
            held = [int(each.message.id) for each in consumer.unacknowledged.values()]
            if held and not consumer.browse_only:
                chosen = self.random.choice(held)
                one = self.random.random() < 0.5
                session.acknowledge(self.bench.now, consumer_id, chosen, one, 0)

    def finish(self) -> None:
        session = self.session()
        if not session.auto_commit_sends:
            if self.random.random() < 0.6:
                session.commit(self.bench.now, 0)
            else:
                session.rollback(self.bench.now, self.random.random() < 0.5, 0)

    def leave(self) -> None:
        session = self.session()
        if session.consumers and self.random.random() < 0.7:
            session.close_consumer(self.bench.now, self.random.choice(list(session.consumers)))
            return
        session.close(self.bench.now, self.random.random() < 0.5)
        self.sessions.remove(session)

    def time_goes_on(self) -> None:
        self.bench.now += self.random.randrange(1, 2 * SECOND)
        for key, at in list(self.bench.timers.due.items()):
            if at <= self.bench.now:
                del self.bench.timers.due[key]
                self.bench.broker.on_timer(self.bench.now, key)
        self.bench.broker.expiry.scan(self.bench.now)

    def update(self) -> None:
        changes = QueueChanges()
        name = self.random.choice(("ring", "groups", "alone", "gated"))
        if name == "ring":
            changes.ring_size = self.random.randrange(3, 7)
        elif name == "groups":
            changes.group_rebalance = self.groups_end and self.random.random() < 0.3
        elif name == "alone":
            changes.group_first_key = self.random.choice(("first", ""))
        else:
            changes.consumers_before_dispatch = self.random.randrange(3)
        self.bench.broker.queue_registry.update(self.bench.now, name, changes)

    def step(self) -> None:
        acts = (
            (self.send, 40), (self.consume, 14), (self.acknowledge, 18), (self.finish, 8),
            (self.leave, 6), (self.time_goes_on, 4), (self.update, 2),
            (self.bench.settle, 12),
        )  # fmt: skip
        act = self.random.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        try:
            act()
        except BrokerError:
            pass
        self.bench.broker.flush(self.bench.now)
        for queue in self.bench.broker.queues.values():
            check(queue)
            if queue.name in ("groups", "buckets") and not self.groups_end:
                check_groups(queue)
        invariants.validate(self.bench.broker)

    def crash(self) -> None:
        self.bench.settle()
        expected = {name: after_restart(queue) for name, queue in self.bench.broker.queues.items()}
        self.bench.restart()
        self.sessions = []
        for name, queue in self.bench.broker.queues.items():
            found = bodies(live(queue))
            if self.paging and queue.spec.last_value_key is not None:
                # Older values may lie in files, and count for the ring.
                assert found[-1:] == expected[name][-1:], f"queue {name}"
                assert queue.spec.ring_size >= 0 or set(expected[name]) <= set(found), f"queue {name}"
            else:
                assert found == expected[name], f"queue {name}"
            check(queue)
        invariants.validate(self.bench.broker)
        self.bench.settle()

    def nothing_is_stuck(self) -> None:
        """Whoever is there, without a selector and with credit, gets all that waits for him or for anybody."""
        for session in self.sessions:
            if not session.auto_commit_sends:
                session.commit(self.bench.now, 0)
            for consumer_id, consumer in list(session.consumers.items()):
                if consumer.selector is not None:
                    session.close_consumer(self.bench.now, consumer_id)
                else:
                    session.add_credits(consumer_id, -1)
        for name in KINDS:
            while self.bench.broker.queues[name].consumer_count() < (2 if name == "gated" else 1):
                session = self.bench.session()
                session.create_consumer(self.bench.now, 0, name, None, False, 0)
                session.add_credits(0, -1)
        self.bench.settle()
        for queue in self.bench.broker.queues.values():
            if not queue.spec.non_destructive:
                assert [each for each in live(queue) if each.state == READY] == [], queue.name
        invariants.validate(self.bench.broker)


def live(queue: Queue) -> list[Reference]:
    return everything(queue)


def bodies(references: list[Reference]) -> list[bytes]:
    return [each.message.body for each in references]


def value(reference: Reference) -> str | None:
    found = reference.message.property_value(KEY)
    return found if isinstance(found, str) else None


def after_restart(queue: Queue) -> list[bytes]:
    """The durable messages; of each value the newest, and as many as the ring takes."""
    kept = [each for each in live(queue) if each.durable]
    if queue.spec.last_value_key is not None:
        newest = {value(each): each.sequence for each in kept}
        kept = [each for each in kept if value(each) is None or newest[value(each)] == each.sequence]
    if queue.spec.ring_size >= 0:
        kept = kept[-queue.spec.ring_size :]
    return bodies(kept)


def check(queue: Queue) -> None:
    """Checks the promises of the queue's kind."""
    references = live(queue)
    delivering = [each for each in references if each.state == DELIVERING]
    ready = [each for each in references if each.state == READY]
    spec = queue.spec
    if spec.exclusive:
        assert len({id(each.consumer) for each in delivering if held(each)}) <= 1
    if spec.ring_size >= 0:
        assert len(ready) <= spec.ring_size, queue.name
    if spec.last_value_key is not None and queue.pending == 0:
        in_memory = [each for each in queue.references if each.state == READY]
        values = [value(each) for each in in_memory if value(each) is not None]
        assert len(values) == len(set(values)), f"{queue.name}: {bodies(ready)}"
    if spec.non_destructive:
        assert not delivering


def check_groups(queue: Queue) -> None:
    """Messages of a group are held by one consumer: it is pinned (while no group ends or is shared anew)."""
    groups = queue.groups
    if groups is None:
        return
    for each in live(queue):
        group = each.message.group_id
        if group is not None and each.state == DELIVERING and held(each):
            assert groups.pins[groups.key_of(group)] is each.consumer


def held(reference: Reference) -> bool:
    consumer = reference.consumer
    return consumer is not None and reference.message.id in consumer.unacknowledged


@pytest.mark.parametrize("seed", share(range(12)))
def test_a_random_play(seed: int) -> None:
    play(Play(seed), STEPS)


@pytest.mark.parametrize("seed", share(range(100, 106)))
def test_a_random_play_with_page_files(seed: int) -> None:
    paging = Play(seed, paging=True, counting=seed % 2 == 0)
    play(paging, STEPS // 2)
    assert paging.bench.trace.counters["pages_written"] > 20


def play(acting: Play, steps: int) -> None:
    for number in range(steps):
        acting.step()
        if number % 97 == 96:
            if acting.random.random() < 0.5:
                acting.nothing_is_stuck()
            acting.crash()
