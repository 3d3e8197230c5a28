"""Timers find expired messages, and delete unused queues and addresses."""

from __future__ import annotations

from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.kernel.publish.expiry import EXPIRY_TIMER
from atalanta.kernel.queue.spec import QueueSpec
from atalanta.kernel.settings.broker_config import AddressConfig, BrokerConfig, QueueConfig
from atalanta.kernel.settings.repository import SettingValue
from tests.kernel.broker_rig import SECOND, Bench, consume


def test_expired_messages_deep_in_long_queues_are_found_in_bounded_steps(bench: Bench) -> None:
    bench.settings.add("#", {"expiry_address": "late"})
    late = bench.queue("late")
    names = ("first", "second")
    for name in names:
        bench.queue(name)
        session = bench.session()
        for number in range(3_000):
            message = bench.message(name, b"", durable=False)
            if number >= 2_900:
                message.expiration = bench.now // 1_000_000 + 10
            session.send(bench.now, message, 1)
    bench.settle()
    bench.now += SECOND
    steps = 1
    while bench.broker.expiry.scan(bench.now, 1_000):
        steps += 1
    bench.settle()
    assert late.message_count == 200
    assert [bench.broker.queues[name].message_count for name in names] == [2_900, 2_900]
    assert 6 <= steps <= 20


def test_a_short_round_is_one_step_and_then_waits_for_its_period(bench: Bench) -> None:
    bench.queue("orders")
    bench.broker.on_timer(bench.now, EXPIRY_TIMER)
    assert bench.timers.due[EXPIRY_TIMER] == bench.now + 30 * SECOND


def automatic(bench: Bench, name: str, **settings: SettingValue) -> None:
    bench.settings.add(name, settings)
    spec = QueueSpec(name, name, 1)
    spec.auto_created = True
    spec.take_defaults(bench.settings.match(name))
    bench.broker.queue_registry.create(bench.now, spec)


def used(bench: Bench, name: str) -> None:
    session = bench.session()
    consume(session, bench, name)
    session.close_consumer(bench.now, 0)
    bench.settle()


def swept(bench: Bench, times: int = 2) -> None:
    for _ in range(times):
        bench.broker.on_timer(bench.now, SWEEP_TIMER)


def test_an_automatic_queue_goes_when_it_was_used_and_is_found_unused_twice(bench: Bench) -> None:
    automatic(bench, "never.used")
    automatic(bench, "used")
    used(bench, "used")
    swept(bench, 1)
    assert "used" in bench.broker.queues
    swept(bench, 1)
    assert sorted(bench.broker.queues) == ["never.used"]
    assert sorted(bench.broker.addresses) == ["never.used"]
    bench.settle()
    bench.restart()
    assert sorted(bench.broker.queues) == ["never.used"]


def test_a_delay_a_message_count_and_the_usage_check_are_obeyed(bench: Bench) -> None:
    automatic(bench, "patient", auto_delete_queues_delay_ms=60_000)
    automatic(bench, "tolerant", auto_delete_queues_message_count=1)
    automatic(bench, "strict")
    automatic(bench, "hasty", auto_delete_queues_skip_usage_check=True)
    automatic(bench, "kept", auto_delete_queues=False)
    for name in ("patient", "tolerant", "strict", "kept"):
        used(bench, name)
    for name in ("tolerant", "strict"):
        bench.session().send(bench.now, bench.message(name, b"left over"), 1)
    bench.settle()
    swept(bench)
    assert sorted(bench.broker.queues) == ["kept", "patient", "strict"]
    bench.now += 60 * SECOND
    swept(bench)
    assert sorted(bench.broker.queues) == ["kept", "strict"]


def test_a_queue_that_a_client_created_stays_unless_it_is_wished_otherwise(bench: Bench) -> None:
    bench.settings.add("tidy", {"auto_delete_created_queues": True})
    for name in ("plain", "tidy"):
        spec = QueueSpec(name, name, 1)
        spec.take_defaults(bench.settings.match(name))
        bench.broker.queue_registry.create(bench.now, spec)
        used(bench, name)
    swept(bench)
    assert sorted(bench.broker.queues) == ["plain"]


def test_an_automatic_address_waits_for_its_delay(bench: Bench) -> None:
    automatic(bench, "orders", auto_delete_addresses_delay_ms=60_000)
    used(bench, "orders")
    swept(bench)
    assert "orders" not in bench.broker.queues
    swept(bench)
    assert "orders" in bench.broker.addresses
    bench.now += 60 * SECOND
    swept(bench)
    assert "orders" not in bench.broker.addresses
    bench.settle()
    bench.restart()
    assert "orders" not in bench.broker.addresses


def test_configured_queues_take_the_address_settings_and_later_changes_of_the_file() -> None:
    topic = AddressConfig("prices")
    topic.add(QueueConfig(name="all", address="prices", max_consumers=3))
    topic.add(QueueConfig(name="high", address="prices", filter_text="price > 3"))
    bench = Bench(BrokerConfig(addresses=[topic]))
    bench.settings.add(
        "prices", {"default_max_consumers": 1, "default_purge_on_no_consumers": True}
    )
    bench.broker.resources.create(bench.now)
    queues = bench.broker.queues
    assert (queues["all"].spec.max_consumers, queues["high"].spec.max_consumers) == (3, 1)
    assert queues["high"].spec.purge_on_no_consumers
    bench.settle()
    topic.queues[0].max_consumers = 5
    topic.queues[1].filter_text = "price > 4"
    bench.restart()
    bench.broker.resources.create(bench.now)
    bench.settle()
    bench.restart()
    queues = bench.broker.queues
    assert queues["all"].spec.max_consumers == 5
    assert queues["high"].filter is not None and queues["high"].filter.text == "price > 4"
    records = len(bench.journal.records)
    bench.broker.resources.create(bench.now)
    assert len(bench.journal.records) == records


def test_at_the_start_what_is_automatic_and_empty_goes_at_once(bench: Bench) -> None:
    for name in ("empty", "full"):
        automatic(bench, name, auto_delete_queues_delay_ms=60_000)
    automatic(bench, "kept", auto_delete_queues=False)
    bench.queue("made")
    bench.session().send(bench.now, bench.message("full", b"x"), 1)
    bench.settle()
    bench.restart()
    bench.broker.queue_registry.sweep_at_start(bench.now)
    assert sorted(bench.broker.queues) == ["full", "kept", "made"]
    assert sorted(bench.broker.addresses) == ["full", "kept", "made"]
    bench.settle()
    bench.restart()
    assert sorted(bench.broker.queues) == ["full", "kept", "made"]


def test_a_queue_whose_messages_expired_was_used(bench: Bench) -> None:
    automatic(bench, "orders")
    message = bench.message("orders", b"x")
    message.expiration = bench.now // 1_000_000 + 10
    bench.session().send(bench.now, message, 1)
    bench.settle()
    bench.now += SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    swept(bench)
    assert not bench.broker.queues
