"""Expirations an address gives, and queues for expired and dead messages that come by themselves."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.repository import SettingValue
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint


@pytest.mark.parametrize(
    ("values", "given_ms", "expected_ms"),
    [
        ({}, 0, 0),
        ({}, 500, 500),
        ({"expiry_delay_ms": 100}, 0, 100),
        ({"expiry_delay_ms": 100}, 500, 500),
        ({"expiry_delay_ms": 100, "max_expiry_delay_ms": 300}, 500, 500),
        ({"min_expiry_delay_ms": 200}, 0, 200),
        ({"min_expiry_delay_ms": 200}, 100, 200),
        ({"min_expiry_delay_ms": 200}, 300, 300),
        ({"max_expiry_delay_ms": 200}, 0, 200),
        ({"max_expiry_delay_ms": 200}, 100, 100),
        ({"max_expiry_delay_ms": 200}, 300, 200),
        ({"min_expiry_delay_ms": 100, "max_expiry_delay_ms": 200}, 0, 200),
        ({"no_expiry": True}, 300, 0),
        ({"no_expiry": True, "expiry_delay_ms": 100}, 0, 0),
    ],
)
def test_expirations_by_address(
    values: dict[str, SettingValue], given_ms: int, expected_ms: int
) -> None:
    bench = Bench()
    bench.settings.add("orders", values)
    queue = bench.queue("orders")
    message = bench.message("orders", b"x")
    now_ms = bench.now // 1_000_000
    message.expiration = now_ms + given_ms if given_ms else 0
    bench.session().send(bench.now, message, 1)
    bench.settle()
    bench.restart()
    queue = bench.broker.queues["orders"]
    assert queue.live()[0].message.expiration == (now_ms + expected_ms if expected_ms else 0)


def test_changed_settings_hold_from_the_refresh_on(bench: Bench) -> None:
    bench.queue("orders")
    assert bench.broker.addresses["orders"].rules is None
    bench.settings.add("orders", {"expiry_delay_ms": 100})
    bench.broker.address_registry.refresh_rules(bench.broker.addresses["orders"])
    bench.session().send(bench.now, bench.message("orders", b"x"), 1)
    bench.settle()
    found = bench.broker.queues["orders"].live()[0].message
    assert found.expiration == bench.now // 1_000_000 + 100


def test_an_expiry_queue_comes_with_the_first_expired_message(bench: Bench) -> None:
    bench.settings.add(
        "#",
        {
            "expiry_address": "late",
            "auto_create_expiry_resources": True,
            "expiry_queue_prefix": "EXP.",
            "expiry_queue_suffix": ".q",
        },
    )
    bench.settings.add("orders", {"expiry_delay_ms": 100})
    bench.queue("orders")
    bench.session().send(bench.now, bench.message("orders", b"x", _AMQ_ROUTING_TYPE=1), 1)
    bench.settle()
    original = bench.broker.queues["orders"].live()[0].message
    bench.now += SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    bench.restart()
    found = bench.broker.queues["EXP.orders.q"]
    assert found.spec.address == "late"
    assert found.spec.routing_type == 0
    assert found.spec.auto_created and found.spec.auto_delete
    assert found.spec.filter_text == "_AMQ_ORIG_ADDRESS = 'orders'"
    properties = found.live()[0].message.properties
    assert properties.get("_AMQ_ORIG_ADDRESS") == "orders"
    assert properties.get("_AMQ_ORIG_QUEUE") == "orders"
    assert properties.get("_AMQ_ORIG_MESSAGE_ID") == original.id
    assert properties.get("_AMQ_ORIG_ROUTING_TYPE") == 1
    assert properties.get("_AMQ_ACTUAL_EXPIRY") == bench.now // 1_000_000 - 1_000
    assert "_AMQ_ROUTING_TYPE" not in properties


DEAD_AT_ONCE: dict[str, str | int] = {
    "dead_letter_address": "dead",
    "auto_create_dead_letter_resources": True,
    "max_delivery_attempts": 1,
}


def poisoned(bench: Bench, queue: str, address: str) -> None:
    bench.session().send(bench.now, bench.message(address, b"poison"), 1)
    rolled_back(bench, queue)


def rolled_back(bench: Bench, queue: str) -> None:
    """Somebody takes a message there, and gives it back."""
    session = bench.session(transacted=True)
    consume(session, bench, queue)
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 2)
    session.rollback(bench.now, False, 3)
    session.close_consumer(bench.now, 0)
    bench.settle()


def test_dead_letter_queues_come_by_address(bench: Bench) -> None:
    bench.settings.add("#", DEAD_AT_ONCE)
    bench.queue("orders")
    bench.queue("it's")
    poisoned(bench, "orders", "orders")
    poisoned(bench, "orders", "orders")
    poisoned(bench, "it's", "it's")
    queues = bench.broker.queues
    assert (queues["DLQ.orders"].message_count, queues["DLQ.it's"].message_count) == (2, 1)
    assert "dead" in bench.broker.addresses


@pytest.mark.parametrize("non_durable", [True, False])
def test_messages_that_are_not_durable_become_dead_letters_if_the_address_says_so(
    bench: Bench, non_durable: bool
) -> None:
    """processNonPersistent of ActiveMQ Classic: without it the dead letters grow by what nobody wanted to keep."""
    bench.settings.add("orders", {**DEAD_AT_ONCE, "expiry_address": "dead", "dead_letter_non_durable": non_durable})
    bench.queue("dead")
    bench.queue("orders")
    for durable in (True, False):
        bench.session().send(bench.now, bench.message("orders", b"poison", durable), 1)
        rolled_back(bench, "orders")
        late = bench.message("orders", b"late", durable)
        late.expiration = bench.now // 1_000_000 + 1
        bench.session().send(bench.now, late, 1)
    bench.settle()
    bench.now += SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    assert bench.broker.queues["dead"].message_count == (4 if non_durable else 2)
    assert bench.broker.queues["orders"].message_count == 0


def test_dead_letters_expire_if_the_address_says_so(bench: Bench) -> None:
    bench.settings.add("#", {"dead_letter_address": "dead", "expiry_address": "dead", "max_delivery_attempts": 1})
    bench.settings.add("orders", {"dead_letter_expiry_ms": 1_500})
    bench.queue("dead")
    bench.queue("orders")
    poisoned(bench, "orders", "orders")
    [letter] = bench.broker.queues["dead"].live()
    assert letter.message.expiration == bench.now // 1_000_000 + 1_500
    bench.now += 2 * SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    assert bench.broker.queues["dead"].message_count == 0


def test_dead_letter_queue_of_a_wildcard_queue_takes_the_message(bench: Bench) -> None:
    bench.settings.add("news.#", DEAD_AT_ONCE)
    bench.queue("reader", "news.#", 0)
    bench.queue("other", "news.eu", 0)
    poisoned(bench, "reader", "news.eu")
    assert bench.broker.queues["DLQ.news.eu"].message_count == 1


def test_what_dies_in_the_dead_letter_queue_goes_back_to_it_without_another_queue(bench: Bench) -> None:
    bench.settings.add("#", DEAD_AT_ONCE)
    bench.queue("orders")
    poisoned(bench, "orders", "orders")
    rolled_back(bench, "DLQ.orders")
    assert sorted(bench.broker.queues) == ["DLQ.orders", "orders"]


def test_a_message_without_a_queue_goes_to_the_dead_letter_address_and_says_its_id(bench: Bench) -> None:
    bench.settings.add("prices", {"send_to_dla_on_no_route": True, "dead_letter_address": "dead"})
    dead = bench.queue("dead")
    bench.queue("never", "prices", 0, "1 = 2")
    message = bench.message("prices", b"x", _AMQ_ROUTING_TYPE=0)
    message.expiration = bench.now // 1_000_000 + 5_000
    bench.session().send(bench.now, message, 1)
    bench.settle()
    found = dead.live()[0].message
    assert found.properties.get("_AMQ_ORIG_ADDRESS") == "prices"
    assert found.properties.get("_AMQ_ORIG_MESSAGE_ID") == found.id
    assert found.properties.get("_AMQ_ORIG_ROUTING_TYPE") == 0
    assert "_AMQ_ORIG_QUEUE" not in found.properties
    assert (found.expiration, found.address) == (0, "dead")


@pytest.mark.parametrize("priorities", [False, True])
@pytest.mark.parametrize("selector", [None, "n > 0"])
def test_one_turn_expires_a_bounded_number_of_messages(bench: Bench, selector: str | None, priorities: bool) -> None:
    bench.settings.add("#", {"expiry_address": "expired"})
    expired = bench.queue("expired")
    queue = bench.queue("q")
    sender = bench.session()
    for number in range(3_000):
        message = bench.message("q", str(number).encode(), n=number + 1)
        message.expiration = bench.now // 1_000_000 + 1_000
        message.priority = 4 + (number % 2 if priorities else 0)
        sender.send(bench.now, message, 0)
    bench.settle()
    bench.now += 2 * SECOND
    consume(bench.session(), bench, "q", selector)
    bench.turn()
    assert 100 < queue.expired < 1_000
    bench.settle()
    assert queue.expired == expired.message_count == 3_000 and queue.message_count == 0


def test_one_step_of_the_scan_expires_a_bounded_number_of_messages(bench: Bench) -> None:
    queue = bench.queue("q")
    sender = bench.session()
    for _ in range(3_000):
        message = bench.message("q")
        message.expiration = bench.now // 1_000_000 + 1_000
        sender.send(bench.now, message, 0)
    bench.settle()
    bench.now += 2 * SECOND
    steps = 0
    while bench.broker.expiry.scan(bench.now) or steps == 0:
        steps += 1
        assert queue.expired <= steps * 500
    assert queue.expired == 3_000


def test_dead_letters_that_expire_do_not_go_round_by_the_queue_of_a_wildcard() -> None:
    bench = Bench()
    bench.settings.add("#", {"expiry_address": "DLQ", "dead_letter_expiry_ms": 1_000})
    dead, _, all_of_it = bench.queue("DLQ"), bench.queue("news", "news", 0), bench.queue("all", "#", 0)
    message = bench.message("news", b"x")
    message.expiration = bench.now // 1_000_000 + 500
    bench.session().send(bench.now, message, 1)
    bench.settle()
    found: list[tuple[int, int]] = []
    for _ in range(5):
        bench.now += 2 * SECOND
        bench.broker.set_now(bench.now)
        while bench.broker.expiry.scan(bench.now):
            pass
        bench.settle()
        found.append((dead.message_count, all_of_it.message_count))
    assert found[-1] == (0, 0), found
