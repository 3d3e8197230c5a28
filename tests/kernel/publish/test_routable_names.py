"""Names without an address of their own: a divert or a wildcard queue alone makes them routable."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.routing.divert_config import ANYCAST, DivertConfig
from atalanta.message.message import ROUTE_TO
from tests.kernel.broker_rig import SECOND, Bench, consume, endpoint


def divert(bench: Bench, name: str, source: str, target: str, **values: object) -> None:
    config = DivertConfig(name=name, address=source, forwarding_address=target)
    for attribute, value in values.items():
        setattr(config, attribute, value)
    bench.broker.diverts.create(config, False)


def send(bench: Bench, address: str, body: bytes, **properties: object) -> None:
    bench.session().send(bench.now, bench.message(address, body, True, **properties), 1)
    bench.settle()


def bodies(bench: Bench, queue: str) -> list[bytes]:
    return [reference.message.body for reference in bench.broker.queues[queue].live()]


def events(bench: Bench, name: str) -> int:
    return sum(1 for event, _ in bench.trace.events if event == name)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("order", [("ab", "bc", "cd"), ("cd", "bc", "ab")])
def test_a_chain_of_diverts_needs_no_address_between_them(
    bench: Bench, exclusive: bool, order: tuple[str, ...]
) -> None:
    bench.queue("a")
    bench.queue("d")
    for name in order:
        divert(bench, name, name[0], name[1], exclusive=exclusive)
    send(bench, "a", b"x")
    assert bodies(bench, "d") == [b"x"]
    assert bodies(bench, "a") == ([] if exclusive else [b"x"])
    assert sorted(bench.broker.addresses) == ["a", "d"], "the names between are in no list"
    bench.restart()
    assert bodies(bench, "d") == [b"x"]


def test_a_change_of_the_diverts_between_takes_effect_at_once(bench: Bench) -> None:
    for name in ("a", "c", "d"):
        bench.queue(name)
    divert(bench, "ab", "a", "b", exclusive=True)
    divert(bench, "bc", "b", "c", exclusive=True)
    send(bench, "a", b"1")
    bench.broker.diverts.update(DivertConfig("bc", "b", "d", exclusive=True))
    send(bench, "a", b"2")
    bench.broker.diverts.delete(bench.now, "bc")
    bench.queue("b")
    send(bench, "a", b"3")
    assert [bodies(bench, name) for name in "bcd"] == [[b"3"], [b"1"], [b"2"]]


def test_diverts_that_take_turns_do_so_at_a_name_without_an_address(bench: Bench) -> None:
    for name in ("a", "c", "d"):
        bench.queue(name)
    divert(bench, "ab", "a", "b")
    divert(bench, "bc", "b", "c", routing_name="turns")
    divert(bench, "bd", "b", "d", routing_name="turns")
    for number in range(4):
        send(bench, "a", b"%d" % number)
    assert (bodies(bench, "c"), bodies(bench, "d")) == ([b"0", b"2"], [b"1", b"3"])


@pytest.mark.parametrize("pattern", ["late.#", "late.orders"])
def test_expired_messages_reach_a_divert_or_a_wildcard_queue_of_their_expiry_address(
    bench: Bench,
    pattern: str,
) -> None:
    bench.settings.add("orders", {"expiry_address": "late.orders"})
    bench.queue("orders")
    if pattern == "late.#":
        bench.queue("all", pattern, 0)
    else:
        bench.queue("all")
        divert(bench, "d", pattern, "all", exclusive=True)
    message = bench.message("orders", b"x")
    message.expiration = bench.now // 1_000_000 + 10
    bench.session().send(bench.now, message, 1)
    bench.settle()
    bench.now += SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    assert bodies(bench, "all") == [b"x"]
    assert events(bench, "moved_message_lost") == 0


def test_dead_letters_reach_a_divert_whose_own_address_must_be_created(bench: Bench) -> None:
    bench.settings.add("orders", {"dead_letter_address": "dead", "max_delivery_attempts": 1})
    bench.queue("orders")
    divert(bench, "d", "dead", "graves", routing_type=ANYCAST, exclusive=True)
    send(bench, "orders", b"x")
    session = bench.session(transacted=True)
    consume(session, bench, "orders")
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], True, 1)
    session.rollback(bench.now, True, 2)
    bench.settle()
    assert bodies(bench, "graves") == [b"x"]


def test_what_no_queue_takes_reaches_a_divert_of_its_dead_letter_address(bench: Bench) -> None:
    bench.settings.add("topic", {"send_to_dla_on_no_route": True, "dead_letter_address": "dead"})
    bench.queue("graves")
    bench.broker.address_registry.create(bench.now, "topic", False, True, False)
    divert(bench, "d", "dead", "graves", exclusive=True)
    send(bench, "topic", b"x", _AMQ_ROUTING_TYPE=0)
    assert bodies(bench, "graves") == [b"x"]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_a_copy_that_no_queue_takes_goes_to_the_dead_letter_address_of_its_own(
    bench: Bench, exclusive: bool, exists: bool
) -> None:
    bench.settings.add("topic", {"send_to_dla_on_no_route": True, "dead_letter_address": "dead"})
    bench.queue("dead")
    bench.queue("orders")
    if exists:
        bench.broker.address_registry.create(bench.now, "topic", False, True, False)
    divert(bench, "d", "orders", "topic", exclusive=exclusive)
    send(bench, "orders", b"x")
    assert bodies(bench, "dead") == [b"x"]
    assert bodies(bench, "orders") == ([] if exclusive else [b"x"])
    copy = bench.broker.queues["dead"].live()[0].message
    assert copy.properties.get("_AMQ_ORIG_ADDRESS") == "topic"
    bench.restart()
    assert bodies(bench, "dead") == [b"x"]


def test_a_divert_of_the_dead_letter_address_back_to_the_topic_ends(bench: Bench) -> None:
    bench.settings.add("topic", {"send_to_dla_on_no_route": True, "dead_letter_address": "dead"})
    bench.queue("orders")
    bench.queue("dead")
    divert(bench, "d", "orders", "topic")
    divert(bench, "back", "dead", "topic")
    send(bench, "orders", b"x")
    assert bodies(bench, "dead") == [b"x", b"x"]


def test_an_original_counts_as_routed_only_if_a_queue_took_a_copy(bench: Bench) -> None:
    bench.settings.add("orders", {"send_to_dla_on_no_route": True, "dead_letter_address": "dead"})
    bench.queue("dead")
    bench.queue("orders")
    divert(bench, "d", "orders", "nowhere", exclusive=True)
    send(bench, "orders", b"x")
    assert bodies(bench, "dead") == [b"x"]
    address = bench.broker.addresses["orders"]
    assert (address.routed, address.unrouted) == (0, 1)


def test_a_peers_message_that_an_exclusive_divert_takes_gets_its_address(bench: Bench) -> None:
    queue = bench.queue("orders")
    divert(bench, "d", "orders", "made", routing_type=ANYCAST, exclusive=True)
    message = bench.message("orders", b"x")
    message.properties.put(ROUTE_TO, queue.id.to_bytes(8, "big"))
    message.properties_changed()
    bench.broker.publisher.publish(bench.now, message, None, 0)
    bench.settle()
    assert (bodies(bench, "orders"), bodies(bench, "made")) == ([], [b"x"])


def test_senders_of_no_routing_type_need_no_address_where_a_divert_takes_their_messages(bench: Bench) -> None:
    bench.settings.add("#", {"auto_create_addresses": False})
    bench.queue("orders")
    with pytest.raises(BrokerError, match="relay"):
        bench.session().send(bench.now, bench.message("relay", b"x"), 1)
    divert(bench, "d", "relay", "orders")
    send(bench, "relay", b"x")
    assert bodies(bench, "orders") == [b"x"]
    with pytest.raises(BrokerError, match="relay"):
        bench.session().send(bench.now, bench.message("relay", b"y", _AMQ_ROUTING_TYPE=1), 1)


def test_a_sender_of_no_routing_type_makes_the_queue_again_that_was_deleted_meanwhile(bench: Bench) -> None:
    bench.settings.add("work", {"default_address_routing_type": 1, "auto_delete_addresses": False})
    session = bench.session()
    session.send(bench.now, bench.message("work", b"1"), 1)
    bench.settle()
    bench.broker.queue_registry.delete(bench.now, "work", "deleted")
    session.send(bench.now, bench.message("work", b"2"), 2)
    bench.settle()
    assert bodies(bench, "work") == [b"2"]
