"""Messages of a higher priority are handed out first; those of one priority keep their order."""

from __future__ import annotations

from atalanta.kernel.sessions.session import Session
from tests.kernel.broker_rig import Bench, RecordingEndpoint, endpoint


def send(
    bench: Bench, session: Session, body: str, priority: int, colour: str | None = None
) -> None:
    message = bench.message("q", body.encode(), colour=colour)
    message.priority = priority
    session.send(bench.now, message, 0)


def consumer(bench: Bench, selector: str | None = None) -> tuple[Session, RecordingEndpoint]:
    session = bench.session()
    session.create_consumer(bench.now, 0, "q", selector, False, 0)
    session.add_credits(0, -1)
    return session, endpoint(session)


def test_higher_priorities_come_first(bench: Bench) -> None:
    bench.queue("q")
    sender = bench.session()
    for body, priority in (("a0", 0), ("b4", 4), ("c9", 9), ("d4", 4), ("e7", 7), ("f9", 9)):
        send(bench, sender, body, priority)
    bench.settle()
    _, got = consumer(bench)
    bench.settle()
    assert got.bodies() == [b"c9", b"f9", b"e7", b"b4", b"d4", b"a0"]


def test_one_priority_other_than_the_default_keeps_order(bench: Bench) -> None:
    bench.queue("q")
    sender = bench.session()
    for n in range(5):
        send(bench, sender, str(n), 7)
    _, got = consumer(bench)
    bench.settle()
    assert got.bodies() == [b"0", b"1", b"2", b"3", b"4"]


def test_selectors_and_priorities(bench: Bench) -> None:
    bench.queue("q")
    sender = bench.session()
    for n in range(12):
        send(bench, sender, str(n), n % 3, colour="red" if n % 2 else "blue")
    bench.settle()
    _, red = consumer(bench, "colour = 'red'")
    bench.settle()
    assert red.bodies() == [b"5", b"11", b"1", b"7", b"3", b"9"]
    _, rest = consumer(bench)
    bench.settle()
    assert rest.bodies() == [b"2", b"8", b"4", b"10", b"0", b"6"]


def test_what_is_given_back_comes_before_lower_priorities(bench: Bench) -> None:
    bench.queue("q")
    sender = bench.session()
    for body, priority in (("a4", 4), ("b9", 9), ("c4", 4)):
        send(bench, sender, body, priority)
    bench.settle()
    session, _ = consumer(bench)
    bench.settle()
    session.close(bench.now, True)
    _, again = consumer(bench)
    bench.settle()
    assert again.bodies() == [b"b9", b"a4", b"c4"]


def test_levels_are_counted_right_when_they_mix_part_and_mix_again(bench: Bench) -> None:
    """`Priorities` counts one level by itself, several in a list: what it takes over from one to the other is exact."""
    queue = bench.queue("q")
    sender = bench.session()
    for body, priority in (("a4", 4), ("b4", 4), ("c9", 9)):
        send(bench, sender, body, priority)
    bench.settle()
    assert queue.priorities.mixed()
    taker, got = consumer(bench)
    bench.settle()
    assert got.bodies() == [b"c9", b"a4", b"b4"]
    for message_id in got.message_ids[:2]:
        taker.acknowledge(bench.now, 0, message_id, True, 0)
    assert not queue.priorities.mixed() and queue.priorities.alike == 1
    taker.close_consumer(bench.now, 0)
    for body, priority in (("d0", 0), ("e9", 9)):
        send(bench, sender, body, priority)
    bench.settle()
    assert queue.priorities.levels() == 3
    _, after = consumer(bench)
    bench.settle()
    assert after.bodies() == [b"e9", b"b4", b"d0"]


def test_when_one_priority_is_left_nobody_begins_again(bench: Bench) -> None:
    """Consumers of a non-destructive queue have their own places, by priority while those differ."""
    queue = bench.queue("q", non_destructive=True)
    sender = bench.session()
    _, early = consumer(bench)
    for body, priority in (("0", 4), ("1", 9), ("2", 4)):
        send(bench, sender, body, priority)
    bench.settle()
    _, late = consumer(bench)
    _, selecting = consumer(bench, "colour = 'red'")
    bench.settle()
    bench.broker.expiry.expire(bench.now, [each for each in queue.live() if each.message.priority == 9])
    send(bench, sender, "3", 4)
    send(bench, sender, "4", 4, "red")
    bench.settle()
    assert sorted(early.bodies()) == [b"0", b"1", b"2", b"3", b"4"]
    assert late.bodies() == [b"1", b"0", b"2", b"3", b"4"]
    assert selecting.bodies() == [b"4"]
