"""Queues bound to wildcard addresses receive what is sent to addresses that match."""

from __future__ import annotations

import itertools
import time

import pytest

from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.routing.wildcard_addresses import (
    AddressPattern,
    WildcardAddresses,
    is_wildcard,
)
from atalanta.kernel.settings.broker_config import BrokerConfig
from tests.kernel.broker_rig import Bench, consume, endpoint


@pytest.mark.parametrize(
    ("pattern", "address", "expected"),
    [
        ("news.#", "news", True),
        ("news.#", "news.eu", True),
        ("news.#", "news.eu.today", True),
        ("news.#", "newsletter", False),
        ("#", "anything.at.all", True),
        ("*", "one", True),
        ("*", "one.two", False),
        ("news.*", "news", False),
        ("news.*", "news.eu", True),
        ("news.*", "news.eu.today", False),
        ("*.eu.#", "news.eu", True),
        ("*.eu.#", "news.us.eu", False),
        ("#.today", "today", True),
        ("#.today", "news.eu.today", True),
        ("#.today", "news.today.eu", False),
        ("a.#.z", "a.z", True),
        ("a.#.z", "a.b.c.z", True),
        ("a.#.z", "a.z.b", False),
        ("a.#.m.#.z", "a.m.z.m.q.z", True),
        ("#.a.#", "x.y", False),
        ("ne*", "news", False),
    ],
)
def test_wildcards_stand_for_whole_words(pattern: str, address: str, expected: bool) -> None:
    assert AddressPattern(pattern, WildcardConfiguration()).matches(address) is expected


def test_many_wildcards_are_no_trap() -> None:
    pattern = AddressPattern(".".join(["#", "a"] * 200), WildcardConfiguration())
    assert not pattern.matches(".".join(["a"] * 500 + ["b"]))


def test_only_whole_words_make_a_wildcard_address() -> None:
    other = WildcardConfiguration(delimiter="/", any_words=">", single_word="+")
    assert is_wildcard("news.#", WildcardConfiguration())
    assert not is_wildcard("ne*s.c#", WildcardConfiguration())
    assert is_wildcard("+/eu/>", other)
    assert not is_wildcard("news.#", other)
    assert not is_wildcard("news.#", WildcardConfiguration(routing_enabled=False))


def bodies(bench: Bench, queue: str) -> list[bytes]:
    return [reference.message.body for reference in bench.broker.queues[queue].live()]


def send(bench: Bench, address: str, **properties: object) -> None:
    session = bench.session()
    session.send(bench.now, bench.message(address, address.encode(), True, **properties), 1)
    bench.settle()


def test_whichever_comes_first_queue_or_address(bench: Bench) -> None:
    bench.queue("eu", "news.eu", 0)
    bench.queue("all", "news.#", 0)
    bench.queue("us", "news.us", 0)
    for address in ("news.eu", "news.us", "other"):
        send(bench, address, _AMQ_ROUTING_TYPE=0)
    assert bodies(bench, "all") == [b"news.eu", b"news.us"]
    assert bodies(bench, "eu") == [b"news.eu"]
    assert bench.broker.queues["all"].live()[0].message.address == "news.eu"


def test_an_address_that_comes_with_its_first_message_matches_at_once(bench: Bench) -> None:
    bench.queue("all", "news.#", 0)
    send(bench, "news.fresh", _AMQ_ROUTING_TYPE=0)
    assert bodies(bench, "all") == [b"news.fresh"]


def test_it_works_after_a_restart(bench: Bench) -> None:
    bench.queue("all", "news.#", 0)
    bench.queue("eu", "news.eu", 0)
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=0)
    bench.restart()
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=0)
    assert bodies(bench, "all") == [b"news.eu", b"news.eu"]


def test_a_queue_with_several_matching_wildcards_gets_one_copy_each(bench: Bench) -> None:
    bench.queue("a", "news.#", 0)
    bench.queue("b", "*.eu", 0)
    bench.queue("c", "#", 0)
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=0)
    assert [len(bodies(bench, name)) for name in ("a", "b", "c")] == [1, 1, 1]


def test_filters_and_routing_types_hold(bench: Bench) -> None:
    bench.queue("filtered", "news.#", 0, "size > 1")
    bench.queue("work", "news.#", 1)
    bench.queue("news.eu", "news.eu", 1)
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=0, size=1)
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=1, size=2)
    assert bodies(bench, "filtered") == []
    assert (len(bodies(bench, "work")), len(bodies(bench, "news.eu"))) == (1, 1)


def test_competing_consumers_of_a_wildcard_queue_share(bench: Bench) -> None:
    bench.queue("one", "news.#", 1)
    bench.queue("two", "news.#", 1)
    for number in range(4):
        send(bench, f"news.{number}")
    assert (len(bodies(bench, "one")), len(bodies(bench, "two"))) == (2, 2)


def test_a_wildcard_queue_that_goes_receives_nothing_more(bench: Bench) -> None:
    bench.queue("all", "news.#", 0)
    bench.queue("eu", "news.eu", 0)
    bench.broker.queue_registry.delete(bench.now, "all", "deleted")
    assert "news.#" not in bench.broker.addresses
    assert bench.broker.addresses["news.eu"].wildcards is None
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=0)
    assert bodies(bench, "eu") == [b"news.eu"]


def test_management_and_what_is_internal_is_not_matched(bench: Bench) -> None:
    bench.broker.resources.create(bench.now)
    bench.queue("all", "#", 0)
    for name in ("activemq.notifications", "activemq.management", "$.artemis.internal.sf.x"):
        bench.queue("q." + name, name, 0)
        assert bench.broker.addresses[name].wildcards is None


def test_it_can_be_switched_off_and_have_other_characters() -> None:
    off = Bench(BrokerConfig(wildcard=WildcardConfiguration(routing_enabled=False)))
    off.queue("all", "news.#", 0)
    send(off, "news.eu", _AMQ_ROUTING_TYPE=0)
    assert bodies(off, "all") == []
    other = Bench(
        BrokerConfig(wildcard=WildcardConfiguration(delimiter="/", any_words=">", single_word="+"))
    )
    other.queue("all", "+/eu/>", 0)
    send(other, "news/eu/today", _AMQ_ROUTING_TYPE=0)
    assert bodies(other, "all") == [b"news/eu/today"]


def test_a_consumer_of_the_wildcard_queue_acknowledges_as_ever(bench: Bench) -> None:
    bench.queue("all", "news.#", 0)
    session = bench.session()
    consume(session, bench, "all")
    send(bench, "news.eu", _AMQ_ROUTING_TYPE=0)
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[0], False, 2)
    bench.settle()
    assert bench.broker.queues["all"].message_count == 0


def test_patterns_are_found_by_their_words_as_one_by_one() -> None:
    """Those with the same words, with none, and with empty ones; in order of creation, also when some have gone."""
    words = ["", "a", "b", "*", "#"]
    names = [".".join(each) for size in (1, 2, 3) for each in itertools.product(words, repeat=size)]
    registry = WildcardAddresses(WildcardConfiguration(), [], "$")
    patterns = [Address(name, False, True, False) for name in names if is_wildcard(name, WildcardConfiguration())]
    ordinary = [name for name in names if not is_wildcard(name, WildcardConfiguration())]
    for address in patterns:
        registry.enter(address, {})
    for gone in (0, 3):
        for address in patterns[:gone]:
            registry.leave(address, {})
        for name in ordinary:
            expected = [
                each for each in patterns[gone:] if AddressPattern(each.name, WildcardConfiguration()).matches(name)
            ]
            assert registry.matching(name) == expected, name
    for address in patterns[3:]:
        registry.leave(address, {})
    assert registry.by_word == {} and registry.matching("a") == []


def test_many_wildcard_addresses_do_not_slow_others_down() -> None:
    """Any user who may create queues can have 20,000 of them; each address of anybody was compared with all, and all
    with all at a restart."""
    registry = WildcardAddresses(WildcardConfiguration(), [], "$")
    for number in range(20_000):
        registry.enter(Address(f"a.#.x{number}.#", False, True, False), {})
    begin = time.process_time()
    again = WildcardAddresses(WildcardConfiguration(), [], "$")
    ordinary = [Address(f"a.b.x{number}.c", False, True, False) for number in range(20_000)]
    again.enter_all([*ordinary, *[known.address for known in registry.known.values()]])
    assert all(len(address.wildcards or []) == 1 for address in ordinary)
    for number in range(1_000):
        assert [each.name for each in registry.matching(f"a.b.x{number}.c")] == [f"a.#.x{number}.#"]
    assert time.process_time() - begin < 10  # one by one: minutes
