"""Diverts: messages go, or go also, to another address, in one record with the original."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.kernel.errors import DUPLICATE_ID, BrokerError
from atalanta.kernel.routing.divert_config import ANYCAST, MULTICAST, PASS, DivertConfig
from atalanta.kernel.settings.broker_config import BrokerConfig
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


def test_a_copy_goes_on_and_the_original_stays(bench: Bench) -> None:
    bench.queue("orders")
    bench.queue("audit")
    divert(bench, "d", "orders", "audit")
    send(bench, "orders", b"x", _AMQ_ROUTING_TYPE=1)
    assert (bodies(bench, "orders"), bodies(bench, "audit")) == ([b"x"], [b"x"])
    original = bench.broker.queues["orders"].live()[0].message
    copy = bench.broker.queues["audit"].live()[0].message
    assert copy.id != original.id
    assert copy.address == "audit"
    assert copy.routing_type == -1
    assert copy.properties.get("_AMQ_ORIG_ADDRESS") == "orders"
    assert copy.properties.get("_AMQ_ORIG_QUEUE") == "d"
    assert copy.properties.get("_AMQ_ORIG_MESSAGE_ID") == original.id
    assert copy.properties.get("_AMQ_ORIG_ROUTING_TYPE") == 1


def test_both_are_in_one_record(bench: Bench) -> None:
    bench.queue("orders")
    bench.queue("audit")
    divert(bench, "d", "orders", "audit")
    bench.settle()
    before = bench.journal.last
    send(bench, "orders", b"x")
    assert bench.journal.last == before + 1
    bench.restart()
    assert (bodies(bench, "orders"), bodies(bench, "audit")) == ([b"x"], [b"x"])
    bench.compact(bench.journal.last)
    bench.restart()
    assert (bodies(bench, "orders"), bodies(bench, "audit")) == ([b"x"], [b"x"])


def test_an_exclusive_divert_takes_what_its_filter_takes(bench: Bench) -> None:
    bench.queue("orders")
    bench.queue("large")
    divert(bench, "d", "orders", "large", exclusive=True, filter_text="size > 10")
    send(bench, "orders", b"small", size=1)
    send(bench, "orders", b"large", size=11)
    assert (bodies(bench, "orders"), bodies(bench, "large")) == ([b"small"], [b"large"])
    assert bench.broker.addresses["orders"].routed == 2


def test_what_an_exclusive_divert_took_is_not_dead(bench: Bench) -> None:
    bench.settings.add("orders", {"send_to_dla_on_no_route": True, "dead_letter_address": "dead"})
    for name in ("orders", "other", "dead"):
        bench.queue(name)
    divert(bench, "d", "orders", "other", exclusive=True)
    send(bench, "orders", b"x")
    assert (bodies(bench, "other"), bodies(bench, "dead")) == ([b"x"], [])


def test_several_targets_and_expiration_and_headers(bench: Bench) -> None:
    for name in ("orders", "one", "two"):
        bench.queue(name)
    divert(bench, "d", "orders", "one, two", headers={"from": "divert"})
    message = bench.message("orders", b"x")
    message.expiration = bench.now // 1_000_000 + 5_000
    bench.session().send(bench.now, message, 1)
    bench.settle()
    for name in ("one", "two"):
        copy = bench.broker.queues[name].live()[0].message
        assert copy.expiration == message.expiration
        assert copy.properties.get("from") == "divert"
    assert "from" not in bench.broker.queues["orders"].live()[0].message.properties


@pytest.mark.parametrize(
    ("routing_type", "anycast", "multicast"),
    [(ANYCAST, 1, 0), (MULTICAST, 0, 1), (PASS, 0, 1)],
)
def test_the_routing_type_of_copies(bench: Bench, routing_type: int, anycast: int, multicast: int) -> None:
    bench.queue("topic", "prices", 0)
    bench.queue("work", "target", 1)
    bench.queue("subscription", "target", 0)
    divert(bench, "d", "prices", "target", routing_type=routing_type)
    send(bench, "prices", b"x", _AMQ_ROUTING_TYPE=0)
    assert len(bodies(bench, "work")) == anycast
    assert len(bodies(bench, "subscription")) == multicast


def test_an_address_that_is_missing_is_created_if_its_type_is_known(bench: Bench) -> None:
    bench.queue("orders")
    divert(bench, "any", "orders", "made", routing_type=ANYCAST)
    divert(bench, "stripped", "orders", "unknown")
    send(bench, "orders", b"x")
    assert bodies(bench, "made") == [b"x"]
    assert bench.broker.queues["made"].spec.auto_created
    assert "unknown" not in bench.broker.addresses
    assert bench.trace.counters["diverted_nowhere"] == 1


def test_where_nothing_may_be_created_the_sender_is_told(bench: Bench) -> None:
    bench.settings.add("made", {"auto_create_addresses": False})
    bench.queue("orders")
    divert(bench, "any", "orders", "made", routing_type=ANYCAST)
    with pytest.raises(BrokerError, match="made"):
        bench.session().send(bench.now, bench.message("orders", b"x"), 1)
    bench.settle()
    assert bodies(bench, "orders") == []


def test_diverts_that_lead_to_each_other_end(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.queue(name)
    divert(bench, "ab", "a", "b")
    divert(bench, "bc", "b", "c")
    divert(bench, "ca", "c", "a")
    send(bench, "a", b"x")
    assert [len(bodies(bench, name)) for name in ("a", "b", "c")] == [2, 1, 1]


def test_exclusive_diverts_in_a_ring_lose_nothing(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.queue(name)
    divert(bench, "ab", "a", "b", exclusive=True)
    divert(bench, "ba", "b", "a", exclusive=True)
    send(bench, "a", b"x")
    assert (bodies(bench, "a"), bodies(bench, "b")) == ([b"x"], [])


def test_a_chain_makes_copies_of_copies(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.queue(name)
    divert(bench, "bc", "b", "c")
    divert(bench, "ab", "a", "b", exclusive=True)
    send(bench, "a", b"x")
    assert [len(bodies(bench, name)) for name in ("a", "b", "c")] == [0, 1, 1]
    last = bench.broker.queues["c"].live()[0].message
    middle = bench.broker.queues["b"].live()[0].message
    assert last.properties.get("_AMQ_ORIG_ADDRESS") == "b"
    assert last.properties.get("_AMQ_ORIG_MESSAGE_ID") == middle.id


def test_a_repeat_is_diverted_no_second_time(bench: Bench) -> None:
    for name in ("orders", "audit"):
        bench.queue(name)
    divert(bench, "d", "orders", "audit", exclusive=True)
    send(bench, "orders", b"x", _AMQ_DUPL_ID="1")
    send(bench, "orders", b"x", _AMQ_DUPL_ID="1")
    bench.restart()
    divert(bench, "d", "orders", "audit", exclusive=True)
    send(bench, "orders", b"x", _AMQ_DUPL_ID="1")
    assert (bodies(bench, "orders"), bodies(bench, "audit")) == ([], [b"x"])


def test_transactions_divert_at_commit(bench: Bench) -> None:
    for name in ("orders", "audit"):
        bench.queue(name)
    divert(bench, "d", "orders", "audit")
    session = bench.session(transacted=True)
    session.send(bench.now, bench.message("orders", b"x", _AMQ_DUPL_ID="1"), 1)
    session.rollback(bench.now, False, 2)
    session.send(bench.now, bench.message("orders", b"y", _AMQ_DUPL_ID="1"), 3)
    session.commit(bench.now, 4)
    bench.settle()
    assert (bodies(bench, "orders"), bodies(bench, "audit")) == ([b"y"], [b"y"])
    session.send(bench.now, bench.message("orders", b"z", _AMQ_DUPL_ID="1"), 5)
    session.commit(bench.now, 6)
    bench.settle()
    assert endpoint(session).errors == [(6, DUPLICATE_ID)]
    assert bodies(bench, "audit") == [b"y"]


def test_dead_and_expired_messages_are_diverted_too(bench: Bench) -> None:
    bench.settings.add("orders", {"expiry_address": "late"})
    for name in ("orders", "late", "alarm"):
        bench.queue(name)
    divert(bench, "d", "late", "alarm")
    message = bench.message("orders", b"x")
    message.expiration = bench.now // 1_000_000 + 10
    bench.session().send(bench.now, message, 1)
    bench.settle()
    bench.now += SECOND
    bench.broker.expiry.scan(bench.now)
    bench.settle()
    assert (bodies(bench, "late"), bodies(bench, "alarm")) == ([b"x"], [b"x"])


def test_a_wildcard_divert_covers_all_that_matches_but_itself_only_once(bench: Bench) -> None:
    for name in ("news.eu", "news.us", "audit"):
        bench.queue(name)
    divert(bench, "d", "#", "audit")
    for name in ("news.eu", "news.us", "audit"):
        send(bench, name, name.encode())
    assert bodies(bench, "audit") == [b"news.eu", b"news.us", b"audit", b"audit"]


def with_rules(bench: Bench) -> list[str]:
    return [name for name, found in bench.broker.addresses.items() if found.rules is not None]


def test_addresses_without_diverts_have_no_rules(bench: Bench) -> None:
    for name in ("orders", "audit"):
        bench.queue(name)
    divert(bench, "d", "orders", "audit")
    assert with_rules(bench) == ["orders"]
    bench.broker.diverts.delete(bench.now, "d")
    assert with_rules(bench) == []
    send(bench, "orders", b"x")
    assert bodies(bench, "audit") == []


def test_created_by_management_they_survive_a_restart(bench: Bench) -> None:
    bench.queue("orders")
    bench.queue("audit")
    config = DivertConfig("d", "orders", "audit", ANYCAST, True, "name", "size > 1", {"key": "value"})
    bench.broker.diverts.create(config, True)
    bench.settle()
    for _ in range(2):
        bench.compact(bench.journal.last)
        bench.restart()
        bench.broker.resources.create(bench.now)
    assert bench.broker.diverts.by_name["d"].config == config
    bench.broker.diverts.delete(bench.now, "d")
    bench.settle()
    bench.restart()
    bench.broker.resources.create(bench.now)
    assert not bench.broker.diverts.by_name


def test_an_update_takes_effect_at_once_and_a_wrong_one_none(bench: Bench) -> None:
    for name in ("orders", "audit", "other"):
        bench.queue(name)
    bench.broker.diverts.create(DivertConfig("d", "orders", "audit"), True)
    with pytest.raises(BrokerError, match="invalid filter"):
        bench.broker.diverts.update(DivertConfig("d", "", "other", filter_text="x >"))
    with pytest.raises(BrokerError, match="does not exist"):
        bench.broker.diverts.update(DivertConfig("e", "orders", "other"))
    send(bench, "orders", b"1", size=5)
    bench.broker.diverts.update(
        DivertConfig("d", "ignored", "other", exclusive=True, filter_text="size > 3")
    )
    send(bench, "orders", b"2", size=5)
    send(bench, "orders", b"3", size=1)
    assert bodies(bench, "audit") == [b"1"]
    assert bodies(bench, "other") == [b"2"]
    assert bodies(bench, "orders") == [b"1", b"2", b"3"]
    bench.restart()
    bench.broker.resources.create(bench.now)
    assert bench.broker.diverts.by_name["d"].config.forwarding_address == "other"


def test_diverts_of_one_routing_name_take_turns(bench: Bench) -> None:
    for name in ("orders", "one", "two", "all"):
        bench.queue(name)
    divert(bench, "d1", "orders", "one", routing_name="shared")
    divert(bench, "d2", "orders", "two", routing_name="shared", filter_text="size < 3")
    divert(bench, "d3", "orders", "all")
    for size in range(5):
        send(bench, "orders", b"%d" % size, size=size)
    assert bodies(bench, "one") == [b"0", b"2", b"3", b"4"]
    assert bodies(bench, "two") == [b"1"]
    assert len(bodies(bench, "all")) == 5


def test_those_of_the_configuration_are_there_from_the_start() -> None:
    bench = Bench(BrokerConfig(diverts=[DivertConfig("d", "orders", "audit", exclusive=True)]))
    bench.broker.resources.create(bench.now)
    for name in ("orders", "audit"):
        bench.queue(name)
    send(bench, "orders", b"x")
    assert bodies(bench, "audit") == [b"x"]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (DivertConfig("", "a", "b"), "needs a name"),
        (DivertConfig("orders", "a", "b"), "already exists"),
        (DivertConfig("d", "", "b"), "needs an address"),
        (DivertConfig("d", "a", " , "), "needs a forwarding-address"),
        (DivertConfig("d", "a", "b, a::q"), "its own address"),
        (DivertConfig("d", "a", "b", filter_text="x >"), "invalid filter"),
    ],
)
def test_a_divert_that_makes_no_sense_is_refused(bench: Bench, config: DivertConfig, why: str) -> None:
    bench.queue("orders")
    with pytest.raises(BrokerError, match=why):
        bench.broker.diverts.create(config, True)
    assert not bench.broker.diverts.by_name and not bench.broker.values.keys()


def test_a_divert_keeps_its_address(bench: Bench) -> None:
    divert(bench, "d", "orders", "audit")
    bench.queue("orders")
    session = bench.session()
    consume(session, bench, "orders")
    session.close_consumer(bench.now, 0)
    session.delete_queue(bench.now, "orders")
    for _ in range(3):
        bench.broker.on_timer(bench.now, SWEEP_TIMER)
    assert "orders" in bench.broker.addresses
    bench.broker.diverts.delete(bench.now, "d")
    for _ in range(3):
        bench.broker.on_timer(bench.now, SWEEP_TIMER)
    assert "orders" not in bench.broker.addresses


def test_scheduled_copies_wait_as_well(bench: Bench) -> None:
    for name in ("orders", "audit"):
        bench.queue(name)
    divert(bench, "d", "orders", "audit")
    send(bench, "orders", b"x", _AMQ_SCHED_DELIVERY=bench.now // 1_000_000 + 1_000)
    assert bench.broker.queues["audit"].scheduled_count == 1
