"""`pending-message-limit`: a slow subscriber that is not durable keeps the newest messages beyond its prefetch."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.queue.delivery.dispatcher import DISPATCH_MAX
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from tests.kernel.broker_rig import Bench, consume, endpoint


def bench_with(paging: bool = False, **values: SettingValue) -> Bench:
    settings = AddressSettingsRepository()
    settings.add("news", {"pending_message_limit": 5, **values})
    return Bench(settings=settings, paging=paging)


def subscription(bench: Bench, name: str = "s", durable: bool = False, prefetch: int = 3) -> tuple[Queue, Session]:
    """A subscription to `news` whose consumer takes so many messages."""
    queue = bench.queue(name, "news", 0, durable=durable, temporary=not durable)
    reader = bench.session()
    consume(reader, bench, name, credits=prefetch)
    reader.count_messages(0, prefetch, 0)
    return queue, reader


def send(bench: Bench, *bodies: str, durable: bool = False, address: str = "news", **more: object) -> None:
    sender = bench.session()
    for body in bodies:
        sender.send(bench.now, bench.message(address, body.encode(), durable, **more), SILENT)
        bench.settle()
    validate(bench.broker)


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


def left(bench: Bench, reader: Session) -> list[str]:
    """What the subscriber gets at last, all of it."""
    reader.add_credits(0, 1_000_000)
    bench.settle()
    return [body.decode() for body in endpoint(reader).bodies()]


@pytest.fixture(autouse=True)
def cost_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credits count messages."""
    from tests.kernel import broker_rig

    deliver = broker_rig.RecordingEndpoint.deliver

    def counting(self: broker_rig.RecordingEndpoint, *arguments: object) -> int:
        deliver(self, *arguments)  # type: ignore[arg-type]
        return 1

    monkeypatch.setattr(broker_rig.RecordingEndpoint, "deliver", counting)


@pytest.mark.parametrize("durable", [False, True])
def test_a_slow_subscriber_keeps_its_prefetch_and_the_newest(durable: bool) -> None:
    bench = bench_with()
    queue, reader = subscription(bench)
    send(bench, *numbers(1, 20), durable=durable)
    assert queue.message_count == 8
    assert left(bench, reader) == [*numbers(1, 3), *numbers(16, 20)]


def test_a_limit_of_0_keeps_what_is_delivered() -> None:
    bench = bench_with(pending_message_limit=0)
    _, reader = subscription(bench)
    send(bench, *numbers(1, 20))
    assert left(bench, reader) == numbers(1, 3)


def test_a_subscriber_that_is_not_slow_gets_everything_in_one_turn() -> None:
    """More than one dispatch delivers at once, and its credits suffice."""
    bench = bench_with(pending_message_limit=0)
    _, reader = subscription(bench, prefetch=2 * DISPATCH_MAX)
    sender = bench.session()
    for number in range(2 * DISPATCH_MAX):
        sender.send(bench.now, bench.message("news", b"%d" % number, False), SILENT)
    bench.settle()
    assert len(endpoint(reader).bodies()) == 2 * DISPATCH_MAX


def test_a_blocked_connection_has_its_prefetch_before_it() -> None:
    bench = bench_with()
    _, reader = subscription(bench)
    reader.set_blocked(True)
    send(bench, *numbers(1, 20))
    reader.set_blocked(False)
    assert left(bench, reader) == numbers(13, 20)


def test_a_consumer_without_flow_control_may_be_blocked_too() -> None:
    bench = bench_with()
    _, reader = subscription(bench, prefetch=-1)
    reader.count_messages(0, 3, 0)
    send(bench, "0")
    reader.set_blocked(True)
    send(bench, *numbers(1, 20))
    reader.set_blocked(False)
    assert left(bench, reader) == ["0", *numbers(13, 20)]


def test_credits_in_bytes_count_as_messages_of_the_usual_size() -> None:
    bench = bench_with()
    queue = bench.queue("s", "news", 0, durable=False, temporary=True)
    reader = bench.session()
    consume(reader, bench, "s", credits=1_000_000)
    reader.set_blocked(True)
    send(bench, *["x" * 100_000] * 20)
    assert 10 <= queue.message_count <= 15


def test_durable_subscriptions_and_queues_keep_everything() -> None:
    bench = bench_with()
    durable, reader = subscription(bench, durable=True)
    send(bench, *numbers(1, 20), durable=True)
    assert durable.message_count == 20
    assert left(bench, reader) == numbers(1, 20)
    bench.broker.settings.add("orders", {"pending_message_limit": 5})
    queue = bench.queue("orders", durable=False)
    consume(bench.session(), bench, "orders", credits=3)
    send(bench, *numbers(1, 20), address="orders")
    assert queue.message_count == 20


def test_a_consumer_may_want_less() -> None:
    bench = bench_with()
    _, reader = subscription(bench)
    reader.count_messages(0, 3, 2)
    send(bench, *numbers(1, 20))
    assert left(bench, reader) == [*numbers(1, 3), "19", "20"]


def test_the_limit_may_follow_the_prefetch() -> None:
    bench = bench_with(pending_message_limit=-1, pending_message_prefetch_rate=2.5)
    _, reader = subscription(bench)
    send(bench, *numbers(1, 20))
    assert left(bench, reader) == [*numbers(1, 3), *numbers(14, 20)]


# -- which messages go ------------------------------------------------------------------------------
def test_the_oldest_of_the_lowest_priority_go_first() -> None:
    bench = bench_with(pending_message_eviction=1)
    queue, _ = subscription(bench, prefetch=0)
    sender = bench.session()
    for number, priority in enumerate([9, 1, 4, 1, 4, 9, 1, 4]):
        message = bench.message("news", b"%d" % number, False)
        message.priority = priority
        sender.send(bench.now, message, SILENT)
        bench.settle()
    assert [bytes(each.message.body) for each in queue.live()] == [b"0", b"2", b"4", b"5", b"7"]


def test_messages_that_newer_ones_replace_go_together() -> None:
    bench = bench_with(pending_message_eviction=2, pending_message_eviction_property="key")
    queue, _ = subscription(bench, prefetch=0)
    for number, key in enumerate("aabbac"):
        send(bench, str(number), key=key)
    assert [bytes(each.message.body) for each in queue.live()] == [b"3", b"4", b"5"]


def test_the_oldest_goes_if_no_newer_one_replaces_any() -> None:
    bench = bench_with(pending_message_eviction=2, pending_message_eviction_property="key")
    queue, _ = subscription(bench, prefetch=0)
    for number in range(7):
        send(bench, str(number), key=str(number))
    assert [bytes(each.message.body) for each in queue.live()] == [b"2", b"3", b"4", b"5", b"6"]


def test_expired_messages_go_first() -> None:
    bench = bench_with()
    queue, _ = subscription(bench, prefetch=0)
    send(bench, "1", "2")
    sender = bench.session()
    message = bench.message("news", b"short", False)
    message.expiration = bench.now // 1_000_000 + 10
    sender.send(bench.now, message, SILENT)
    send(bench, "3", "4")
    bench.now += 2_000_000_000
    bench.broker.set_now(bench.now)
    send(bench, "5")
    assert [bytes(each.message.body) for each in queue.live()] == [b"1", b"2", b"3", b"4", b"5"]


def test_messages_in_page_files_are_cut_too() -> None:
    bench = bench_with(paging=True, max_size_bytes=4_000, page_size_bytes=4_000)
    queue, reader = subscription(bench)
    send(bench, *["x" * 900] * 30, *numbers(1, 5))
    assert queue.message_count == 8
    assert left(bench, reader)[3:] == numbers(1, 5)


# -- dead letters -----------------------------------------------------------------------------------
def test_durable_messages_become_dead_letters_once_for_all_subscribers() -> None:
    bench = bench_with(dead_letter_address="DLQ", dead_letter_non_durable=False)
    dead = bench.queue("DLQ")
    for name in ("s", "t"):
        subscription(bench, name)
    send(bench, *numbers(1, 10), durable=True)
    send(bench, *numbers(11, 12))
    assert [bytes(each.message.body).decode() for each in dead.live()] == numbers(4, 7)
    assert [name for name, _ in bench.trace.events].count("subscription_drops_messages") == 2


def test_with_a_limit_of_0_there_are_no_dead_letters() -> None:
    bench = bench_with(pending_message_limit=0, dead_letter_address="DLQ")
    dead = bench.queue("DLQ")
    subscription(bench)
    send(bench, *numbers(1, 10), durable=True)
    assert dead.message_count == 0
