"""Browsers go by priority, as consumers do, and see each message once."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import Bench, RecordingEndpoint, consume, endpoint


def send(bench: Bench, session: Session, number: int, priority: int, address: str = "q") -> None:
    message = bench.message(address, number.to_bytes(4, "big") + bytes(60), True)
    message.priority = priority
    session.send(bench.now, message, number)


def browser(bench: Bench, credits: int = 1_000_000) -> tuple[Session, RecordingEndpoint]:
    session = bench.session()
    consume(session, bench, "q", None, credits=credits, browse=True)
    bench.settle()
    return session, endpoint(session)


def seen(got: RecordingEndpoint) -> list[int]:
    return [int.from_bytes(body[:4], "big") for body in got.bodies()]


def test_the_highest_priority_comes_first_also_of_what_others_hold(bench: Bench) -> None:
    bench.queue("q")
    sender = bench.session()
    for number in range(10):
        send(bench, sender, number, number)
    bench.settle()
    _, before = browser(bench)
    assert seen(before) == list(range(9, -1, -1))
    consume(bench.session(), bench, "q", None, credits=300)
    bench.settle()
    assert bench.broker.queues["q"].delivering_count > 0
    _, after = browser(bench)
    assert seen(after) == list(range(9, -1, -1))


def test_what_is_given_back_is_not_seen_again(bench: Bench) -> None:
    bench.queue("q")
    sender = bench.session()
    for number in range(6):
        send(bench, sender, number, number % 2 + 4)
    bench.settle()
    taker = bench.session()
    consume(taker, bench, "q", None, credits=1_000_000)
    bench.settle()
    session, got = browser(bench)
    assert seen(got) == [1, 3, 5, 0, 2, 4]
    taker.close(bench.now, False)
    bench.settle()
    send(bench, sender, 6, 9)
    bench.settle()
    assert seen(got) == [1, 3, 5, 0, 2, 4, 6]
    session.close(bench.now, False)


@pytest.mark.parametrize("seed", range(20))
def test_each_message_once_whatever_comes_and_goes_meanwhile(seed: int) -> None:
    rng = random.Random(seed)
    settings = AddressSettingsRepository()
    if seed % 2:
        settings.add("#", {"max_size_bytes": 4_000, "page_size_bytes": 2_000})
    bench = Bench(None, settings, paging=True)
    bench.queue("q")
    sender = bench.session()
    sent = 0
    stays: set[int] = set()
    for _ in range(rng.randrange(5, 60)):
        send(bench, sender, sent, rng.randrange(3, 6))
        stays.add(sent)
        sent += 1
    bench.settle()
    session, got = browser(bench, rng.randrange(1, 3_000))
    for _ in range(15):
        step = rng.randrange(4)
        if step == 0:
            send(bench, sender, sent, rng.choice((4, 4, rng.randrange(10))))
            stays.add(sent)
            sent += 1
        elif step == 1:
            session.add_credits(0, rng.randrange(100, 1_500))
        else:
            taker = bench.session()
            consume(taker, bench, "q", None, credits=rng.randrange(1, 1_000))
            bench.settle()
            if step == 2:
                for message_id in endpoint(taker).message_ids[:3]:
                    taker.acknowledge(bench.now, 0, message_id, True, 0)
                stays -= set(seen(endpoint(taker))[:3])
            taker.close(bench.now, False)
        bench.settle()
    session.add_credits(0, 10_000_000)
    bench.settle()
    found = seen(got)
    assert len(found) == len(set(found))
    assert stays <= set(found)
    invariants.validate(bench.broker)
