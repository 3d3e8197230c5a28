"""Messages go round-robin to the consumers of the highest priority that can take one (QueueConsumersImpl)."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.queue.consumer import QueueConsumer
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.sessions.session import Session
from tests.kernel.broker_rig import Bench, RecordingEndpoint, consume, endpoint
from tests.kernel.queue.queue_rig import reader, send


def counts(readers: list[Session]) -> list[int]:
    return [len(endpoint(each).bodies()) for each in readers]


def send_each(bench: Bench, sender: Session, first: int, last: int) -> None:
    for number in range(first, last):
        send(bench, sender, str(number))
        bench.settle()


def test_consumers_of_one_priority_share_while_a_lower_one_waits(bench: Bench) -> None:
    bench.queue("q")
    readers = [reader(bench, priority) for priority in (3, 3, 1)]
    send_each(bench, bench.session(), 0, 100)
    assert counts(readers) == [50, 50, 0]


def test_a_lower_priority_takes_messages_while_the_higher_cannot_and_no_longer(bench: Bench) -> None:
    bench.queue("q")
    readers = [reader(bench, priority) for priority in (3, 3, 1, 1)]
    sender = bench.session()
    send_each(bench, sender, 0, 3)
    for busy in readers[:2]:
        busy.stop()
    send_each(bench, sender, 3, 9)
    assert counts(readers) == [2, 1, 3, 3]
    for busy in readers[:2]:
        busy.start()
    send_each(bench, sender, 9, 14)
    assert counts(readers) == [4, 4, 3, 3]
    assert [int(body) for body in endpoint(readers[1]).bodies()] == [1, 9, 11, 13]


def test_messages_that_wait_are_shared_in_the_same_way(bench: Bench) -> None:
    bench.queue("q")
    send(bench, bench.session(), *map(str, range(100)))
    bench.settle()
    readers = [reader(bench, priority, credits=0) for priority in (1, 3, 3)]
    for each in readers:
        each.add_credits(0, -1)
    bench.settle()
    assert counts(readers) == [0, 50, 50]


def test_a_browser_takes_no_turn_from_the_consumers(bench: Bench) -> None:
    bench.queue("q")
    readers = [reader(bench, 3), reader(bench, 3)]
    sender = bench.session()
    for number in range(10):
        reader(bench, 3, browse=True)
        send_each(bench, sender, number, number + 1)
    assert counts(readers) == [5, 5]


def test_browsers_of_another_priority_leave_the_turns_of_the_consumers(bench: Bench) -> None:
    bench.queue("q")
    readers = [reader(bench, 3), reader(bench, 3)]
    sender = bench.session()
    for number in range(10):
        browsers = [reader(bench, priority, browse=True) for priority in (3, 3, 9, 0)]
        send_each(bench, sender, number, number + 1)
        for each in browsers:
            each.close(bench.now, False)
    assert counts(readers) == [5, 5]


def test_consumers_do_not_wait_until_a_browser_has_seen_the_queue(bench: Bench) -> None:
    bench.queue("q")
    send_each(bench, bench.session(), 0, 30)
    order: list[str] = []
    for name in ("browser", "one", "two"):
        session = bench.session()
        session.endpoint = Named(name, order)
        consume(session, bench, "q", browse=name == "browser")
    bench.settle()
    assert order[:6] == ["one", "two", "browser"] * 2
    assert order.count("browser") == 30


class Named(RecordingEndpoint):
    """An endpoint that tells whose turn it was."""

    def __init__(self, name: str, order: list[str]) -> None:
        super().__init__()
        self.name = name
        self.order = order

    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        self.order.append(self.name)
        return super().deliver(consumer, reference)


class Turns:
    """The turns of Artemis' iterator: one position for each priority, at its first consumer after each change."""

    def __init__(self) -> None:
        self.levels: dict[int, list[int]] = {}
        self.positions: dict[int, int] = {}

    def change(self, priorities: dict[int, int]) -> None:
        self.levels = {}
        for number, priority in priorities.items():
            self.levels.setdefault(priority, []).append(number)
        self.positions = dict.fromkeys(self.levels, 0)

    def next(self, ready: set[int]) -> int:
        for priority in sorted(self.levels, reverse=True):
            level = self.levels[priority]
            for _ in level:
                number = level[self.positions[priority] % len(level)]
                self.positions[priority] += 1
                if number in ready:
                    return number
        return -1


@pytest.mark.parametrize("seed", range(20))
def test_random_schedules_give_each_message_to_the_consumer_whose_turn_it_is(seed: int) -> None:
    chance = random.Random(seed)
    bench = Bench()
    bench.queue("q", group_buckets=0 if seed % 2 else -1)
    sender = bench.session()
    turns = Turns()
    readers: dict[int, Session] = {}
    priorities: dict[int, int] = {}
    ready: set[int] = set()
    for step in range(300):
        choice = chance.random()
        if len(readers) < 2 or (choice < 0.03 and len(readers) < 7):
            priorities[step] = chance.choice((1, 3, 3, 7))
            readers[step] = reader(bench, priorities[step])
            ready.add(step)
            turns.change(priorities)
        elif choice < 0.05 and len(ready) > 1:
            gone = chance.choice(sorted(ready))
            readers.pop(gone).close_consumer(bench.now, 0)
            ready.discard(gone)
            del priorities[gone]
            turns.change(priorities)
        elif choice < 0.15 and len(ready) > 1:
            busy = chance.choice(sorted(ready))
            readers[busy].stop()
            ready.discard(busy)
        elif choice < 0.3:
            for number in sorted(set(readers) - ready):
                readers[number].start()
                ready.add(number)
        else:
            before = {number: len(endpoint(each).delivered) for number, each in readers.items()}
            send_each(bench, sender, step, step + 1)
            taken = [
                number
                for number, each in readers.items()
                if len(endpoint(each).delivered) > before[number]
            ]
            assert taken == [turns.next(ready)], f"message {step}"
            message_id = endpoint(readers[taken[0]]).message_ids[-1]
            readers[taken[0]].acknowledge(bench.now, 0, message_id, True, 0)
