"""The definition of a queue: defaults of its address, and updates."""

from __future__ import annotations

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from tests.kernel.broker_rig import Bench
from tests.kernel.queue.queue_rig import held, reader, send


def test_address_settings_are_the_defaults_of_new_queues(bench: Bench) -> None:
    bench.settings.add(
        "q",
        {
            "default_exclusive_queue": True,
            "default_last_value_key": "symbol",
            "default_non_destructive": True,
            "default_consumers_before_dispatch": 2,
            "default_delay_before_dispatch_ms": 9,
            "default_ring_size": 5,
            "default_group_buckets": 4,
            "default_group_first_key": "first",
            "default_group_rebalance": True,
            "default_group_rebalance_pause_dispatch": True,
        },
    )
    session = bench.session()
    message = bench.message("q", b"x")
    message.put_property("_AMQ_ROUTING_TYPE", 1)
    session.send(bench.now, message, 0)
    bench.settle()
    bench.restart()
    spec = bench.broker.queues["q"].spec
    assert (spec.exclusive, spec.last_value_key, spec.non_destructive) == (True, "symbol", True)
    assert (spec.consumers_before_dispatch, spec.delay_before_dispatch_ms) == (2, 9)
    assert (spec.ring_size, spec.group_buckets, spec.group_first_key) == (5, 4, "first")
    assert (spec.group_rebalance, spec.group_rebalance_pause_dispatch) == (True, True)


def test_a_disabled_queue_takes_no_messages(bench: Bench) -> None:
    queue = bench.queue("q")
    changes = QueueChanges()
    changes.enabled = False
    bench.broker.queue_registry.update(bench.now, "q", changes)
    send(bench, bench.session(), "1")
    bench.settle()
    assert queue.message_count == 0
    bench.restart()
    changes.enabled = True
    bench.broker.queue_registry.update(bench.now, "q", changes)
    send(bench, bench.session(), "2")
    bench.settle()
    assert held(bench.broker.queues["q"]) == [b"2"]


def test_updates_that_cannot_be_change_nothing(bench: Bench) -> None:
    queue = bench.queue("q")
    reader(bench)
    reader(bench)
    wrong = (
        ("max_consumers", 1),
        ("routing_type", 0),
        ("filter_text", "a >"),
        ("group_buckets", 1 << 31),
        ("ring_size", -2),
    )
    for field, value in wrong:
        changes = QueueChanges()
        changes.exclusive = True
        setattr(changes, field, value)
        with pytest.raises(BrokerError):
            bench.broker.queue_registry.update(bench.now, "q", changes)
        assert not queue.spec.exclusive and queue.filter is None


def test_an_update_of_filter_and_routing_type(bench: Bench) -> None:
    bench.queue("q")
    bench.broker.address_registry.ensure(bench.broker.now, "q", 0, False, True)
    changes = QueueChanges()
    changes.filter_text = "n > 1"
    changes.routing_type = 0
    bench.broker.queue_registry.update(bench.now, "q", changes)
    session = bench.session()
    for n in (1, 2):
        session.send(bench.now, bench.message("q", str(n).encode(), n=n), 0)
    bench.settle()
    bench.restart()
    queue = bench.broker.queues["q"]
    assert held(queue) == [b"2"] and queue.spec.routing_type == 0
    changes = QueueChanges()
    changes.filter_text = ""
    bench.broker.queue_registry.update(bench.now, "q", changes)
    assert queue.filter is None
