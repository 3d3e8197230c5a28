"""Which addresses keep their last messages, and until when."""

from __future__ import annotations

from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.settings.broker_config import BrokerConfig, QueueConfig
from tests.kernel.broker_rig import SECOND, Bench
from tests.kernel.registry.retroactive_rig import (
    ADDRESS,
    DIVERT,
    PREFIX,
    bodies,
    change,
    numbers,
    repository,
    restart,
    send,
    started,
    subscribe,
)


# -- addresses ------------------------------------------------------------------------------------
def test_an_automatic_address_keeps_its_messages_between_its_queues() -> None:
    bench = Bench(BrokerConfig(), repository())
    send(bench, *numbers(1, 2), _AMQ_ROUTING_TYPE=1)
    bench.settle()
    assert bench.broker.addresses["prices"].auto_created
    bench.broker.queues["prices"].usage.was_used = True
    bench.session().delete_queue(bench.now, "prices")
    for _ in range(3):
        bench.now += SECOND
        bench.broker.on_timer(bench.now, SWEEP_TIMER)
    bench.settle()
    restart(bench)
    assert bodies(subscribe(bench, kind=1)) == [b"1", b"2"]


def test_the_address_goes_with_all_that_is_its_own() -> None:
    bench = started()
    send(bench, b"x")
    bench.settle()
    bench.broker.address_registry.delete(bench.broker.now, "prices")
    bench.settle()
    assert not bench.broker.queues and not bench.broker.diverts.by_name
    assert ADDRESS not in bench.broker.addresses
    bench.config.addresses = []
    restart(bench)
    assert not bench.broker.queues and not bench.broker.diverts.by_name
    assert ADDRESS not in bench.broker.addresses


def test_deletion_of_what_the_file_does_not_name_spares_what_is_kept() -> None:
    bench = started(config_delete_addresses="FORCE", config_delete_queues="FORCE", match="#")
    send(bench, b"x")
    bench.settle()
    restart(bench)
    change(bench, repository("#", config_delete_addresses="FORCE"))
    assert bodies(subscribe(bench)) == [b"x"]


def test_a_queue_with_a_lasting_address_makes_it_keep_messages() -> None:
    bench = Bench(BrokerConfig(), repository())
    bench.queue("mine", "prices", 0, durable=False, temporary=True)
    send(bench, b"x")
    bench.settle()
    bench.broker.queue_registry.delete(bench.now, "mine", "gone")
    assert bodies(subscribe(bench)) == [b"x"]


def test_the_own_address_of_a_temporary_queue_keeps_nothing() -> None:
    bench = Bench(BrokerConfig(), repository("#"))
    bench.queue("reply", "reply", 1, durable=False, temporary=True)
    assert list(bench.broker.queues) == ["reply"]
    bench.broker.queue_registry.delete(bench.now, "reply", "gone")
    assert "reply" not in bench.broker.addresses


def test_addresses_of_the_broker_keep_nothing() -> None:
    bench = started("#")
    bench.queue(PREFIX + "sf.x", PREFIX + "sf.x", 0, internal=True)
    assert sorted(bench.broker.diverts.by_name) == [DIVERT]
    assert len(bench.broker.queues) == 3


def test_the_last_messages_of_all_addresses_of_a_wildcard() -> None:
    bench = Bench(BrokerConfig(), repository("#"))
    bench.queue("all", "news.#", 0)
    for name in ("news.a", "news.b"):
        bench.queue(name, name, 0)
        send(bench, name.encode(), address=name)
    bench.settle()
    late = subscribe(bench, address="news.#")
    assert bodies(late) == [b"news.a", b"news.b"]
    assert [each.message.address for each in late.live()] == ["news.a", "news.b"]
    assert bodies(subscribe(bench, "one", address="news.a")) == [b"news.a"]


def test_what_no_wildcard_matches_is_not_kept_for_one() -> None:
    """Requests of management are there already, when a wildcard address begins to keep its messages."""
    bench = Bench(BrokerConfig(), repository("#"))
    management = bench.config.management_address
    bench.queue("requests", management, 0)
    bench.queue("all", "#", 0)
    send(bench, b"secret", address=management)
    bench.settle()
    assert bodies(subscribe(bench, address="#")) == []


def test_each_message_that_its_address_took_is_kept() -> None:
    """One duplicate id at two addresses is two messages; and one at an address that came anew."""
    bench = Bench(BrokerConfig(), repository("#"))
    bench.queue("all", "news.#", 0)
    for name in ("news.a", "news.b", "news.b"):
        bench.queue(f"{name}.{bench.ids.count}", name, 0)
        send(bench, name.encode(), address=name, _AMQ_DUPL_ID=b"same")
    bench.settle()
    assert bodies(subscribe(bench, address="news.#")) == [b"news.a", b"news.b"]
    assert f"{PREFIX}news.a.address.retro" not in bench.broker.caches.by_name


def test_a_divert_of_all_addresses_sees_each_message_once() -> None:
    bench = started()
    bench.queue("audit", "audit", 1)
    config = DivertConfig(name="d", address="#", forwarding_address="audit", exclusive=False)
    bench.broker.diverts.create(config, False)
    send(bench, b"x")
    bench.settle()
    assert bodies(bench.broker.queues["audit"]) == [b"x"]
    assert bodies(subscribe(bench)) == [b"x"]


def test_a_queue_that_the_file_names_from_a_restart_on_begins_with_them() -> None:
    bench = started()
    send(bench, *numbers(1, 5))
    bench.settle()
    bench.config.addresses[0].queues.append(QueueConfig("named", "prices", routing_type=0))
    restart(bench)
    assert bodies(bench.broker.queues["named"]) == numbers(3, 5)


def test_copies_of_great_messages_are_no_record_that_is_too_large() -> None:
    """The journal takes records of up to 1 GiB: a thousand messages may be more than that."""
    bench = started(count=5)
    body = bytes(12 << 20)
    send(bench, *[b"%d" % number + body for number in range(5)])
    bench.settle()
    known = len(bench.journal.records)
    assert len(bodies(subscribe(bench))) == 5
    assert max(len(payload) for _, _, payload in bench.journal.records[known:]) < 48 << 20
    restart(bench)
    assert [body[:1] for body in bodies(bench.broker.queues["late"])] == [b"0", b"1", b"2", b"3", b"4"]


# -- settings change ------------------------------------------------------------------------------
def test_another_count_makes_another_ring() -> None:
    bench = started()
    send(bench, *numbers(1, 5))
    bench.settle()
    change(bench, repository(count=5))
    send(bench, *numbers(6, 9))
    bench.settle()
    assert bodies(subscribe(bench)) == numbers(5, 9)
    change(bench, repository(count=2))
    assert bodies(subscribe(bench, "few")) == numbers(8, 9)
    restart(bench)
    assert bodies(subscribe(bench, "again")) == numbers(8, 9)


def test_an_address_that_is_there_begins_to_keep_and_ends() -> None:
    bench = started(count=0)
    assert not bench.broker.queues and not bench.broker.diverts.by_name
    assert bench.broker.addresses["prices"].rules is None
    send(bench, b"before")
    bench.settle()
    change(bench, repository())
    send(bench, b"after")
    bench.settle()
    assert bodies(subscribe(bench)) == [b"after"]
    change(bench, repository(count=0))
    assert list(bench.broker.queues) == ["late"]
    assert not bench.broker.diverts.by_name and ADDRESS not in bench.broker.addresses
    assert bench.broker.addresses["prices"].rules is None
    assert bodies(subscribe(bench, "none")) == []


def test_a_count_of_none_at_a_start_takes_it_away() -> None:
    bench = started()
    send(bench, b"x")
    bench.settle()
    bench.settings = repository(count=0)
    restart(bench)
    assert not bench.broker.queues and not bench.broker.diverts.by_name
    assert ADDRESS not in bench.broker.addresses
    assert bench.broker.memory.used_bytes == 0
