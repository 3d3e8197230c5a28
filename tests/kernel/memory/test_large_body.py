"""Files of large messages in every place a message can be: pages, transactions in doubt, expired, diverted, purged."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.settings.repository import SettingValue
from tests.kernel.broker_rig import consume, endpoint
from tests.kernel.memory.large_rig import LargeBench, fill

SMALL: dict[str, SettingValue] = {"max_size_bytes": 40_000, "page_size_bytes": 16_000}


def files(bench: LargeBench) -> int:
    return len(bench.folder.contents)


def take_all(bench: LargeBench) -> int:
    """Consume what there is; how many had their body."""
    session = bench.session()
    consume(session, bench, "orders", credits=0)
    seen = endpoint(session)
    whole = 0
    while True:
        before = len(seen.delivered)
        session.add_credits(0, 10_000)
        bench.settle()
        held = session.consumers[0].unacknowledged.values()
        whole += sum(1 for reference in held if reference.message.large is not None)
        if len(seen.delivered) == before:
            return whole
        session.acknowledge(bench.now, 0, seen.message_ids[-1], False, 0)
        bench.settle()


@pytest.mark.parametrize("durable", [True, False])
def test_pages_keep_the_files(durable: bool) -> None:
    bench = LargeBench(SMALL)
    fill(bench, 100, durable)
    assert bench.pages is not None and len(bench.pages.files) > 3
    assert files(bench) == 100
    assert take_all(bench) == 100
    assert files(bench) == 0 and bench.broker.large.bodies == {}


def test_pages_find_the_files_again_after_a_restart() -> None:
    bench = LargeBench(SMALL)
    fill(bench, 60)
    session = bench.session()
    consume(session, bench, "orders", credits=5_000)
    bench.settle()
    session.acknowledge(bench.now, 0, endpoint(session).message_ids[-1], False, 0)
    bench.settle()
    taken = len(endpoint(session).message_ids)
    assert 0 < taken < 20 and files(bench) == 60 - taken
    for _ in range(2):
        bench.power_cut()
        assert files(bench) == 60 - taken
    invariants.validate(bench.broker)
    assert take_all(bench) == 60 - taken
    assert files(bench) == 0 and bench.broker.large.bodies == {}


def test_non_durable_ones_in_pages_end_with_the_node() -> None:
    bench = LargeBench(SMALL)
    for number in range(60):
        bench.publish("orders", durable=number % 2 == 0, head=1_000)
        bench.settle()
    bench.power_cut()
    assert files(bench) == 30
    assert take_all(bench) == 30 and files(bench) == 0


def test_a_damaged_file_in_a_page_costs_its_message_only() -> None:
    bench = LargeBench(SMALL)
    fill(bench, 60)
    bench.folder.damage(list(bench.folder.contents)[30], 10)
    bench.power_cut()
    assert [name for name, _ in bench.trace.events if name == "large_message_damaged"]
    assert bench.broker.queues["orders"].message_count == 59
    assert take_all(bench) == 59 and files(bench) == 0


@pytest.mark.parametrize("paged", [True, False])
def test_a_purge_takes_all_files(paged: bool) -> None:
    bench = LargeBench(SMALL if paged else None)
    fill(bench, 60)
    bench.broker.mover.purge(bench.broker.queues["orders"], "test")
    bench.settle()
    assert files(bench) == 0 and bench.broker.large.bodies == {}
    bench.power_cut()
    assert bench.broker.queues["orders"].message_count == 0


def test_an_expired_message_takes_its_file_to_the_expiry_address() -> None:
    bench = LargeBench({"expiry_address": "expired"})
    bench.queue("expired")
    bench.publish("orders")
    bench.settle()
    (reference,) = bench.broker.queues["orders"].live()
    bench.broker.expiry.expire(bench.now, [reference])
    bench.settle()
    assert files(bench) == 1
    bench.power_cut()
    (reference,) = bench.broker.queues["expired"].live()
    assert reference.message.large is not None and files(bench) == 1
    bench.broker.store.acknowledge([reference], None, 0)
    bench.settle()
    assert files(bench) == 0


def test_a_queue_that_does_not_outlive_the_node_leaves_no_file() -> None:
    bench = LargeBench()
    bench.queue("passing", durable=False)
    bench.publish("passing")
    bench.settle()
    assert files(bench) == 1
    bench.power_cut()
    assert files(bench) == 0
