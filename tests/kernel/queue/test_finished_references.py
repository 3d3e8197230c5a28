"""Finished messages leave memory soon, in whatever order that is; what a session remembers is no older than that."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.queue import FINISHED_MIN, FINISHED_SHARE
from atalanta.kernel.queue.reference import Reference
from tests.kernel.broker_rig import Bench, consume, endpoint

SENT = 60


def test_what_is_acknowledged_in_order_does_not_stay_in_the_list(bench: Bench) -> None:
    queue = bench.queue("in")
    sender = bench.session()
    for number in range(SENT):
        sender.send(bench.now, bench.message("in", b"%d" % number), 1)
    reader = bench.session()
    consume(reader, bench, "in")
    bench.settle()
    for done, message_id in enumerate(endpoint(reader).message_ids, 1):
        reader.acknowledge(bench.now, 0, message_id, False, 2)
        live = SENT - done
        assert len(queue.references) <= live + max(FINISHED_MIN, live // (FINISHED_SHARE - 1) + 1)
        validate(bench.broker)
    bench.settle()
    assert queue.message_count == 0
    assert bench.broker.store.messages == {}


def test_a_long_list_is_not_moved_for_each_message_that_ends_at_its_front(bench: Bench) -> None:
    queue = bench.queue("in")
    readers = [bench.session(), bench.session()]
    for reader in readers:
        consume(reader, bench, "in")
    sender = bench.session()
    for number in range(SENT):
        sender.send(bench.now, bench.message("in", b"%d" % number), 1)
    bench.settle()
    first, second = (endpoint(reader).message_ids for reader in readers)
    for message_id in second[: SENT // 3]:  # between those that the first reader still has
        readers[1].acknowledge(bench.now, 0, message_id, True, 2)
    assert len(queue.references) == SENT
    lengths = []
    for message_id in first:
        readers[0].acknowledge(bench.now, 0, message_id, True, 2)
        lengths.append(len(queue.references))
        validate(bench.broker)
    moves = [length for before, length in zip(lengths, lengths[1:], strict=False) if length < before and length > 2]
    assert len(moves) <= 3 * FINISHED_SHARE, lengths
    assert lengths[: SENT // FINISHED_SHARE // 2 - 1] == [SENT] * (SENT // FINISHED_SHARE // 2 - 1)


def test_a_message_that_enters_before_finished_ones_is_not_taken_for_one_of_them(bench: Bench) -> None:
    """As one from a page, or of a branch that was in doubt."""
    queue = bench.queue("in")
    readers = [bench.session(), bench.session()]
    for reader in readers:
        consume(reader, bench, "in")
    sender = bench.session()
    late = Reference(bench.message("in", b"late", durable=False), queue, queue.take_sequence(), b"")
    for number in range(SENT):
        sender.send(bench.now, bench.message("in", b"%d" % number), 1)
    bench.settle()
    first, second = (list(endpoint(reader).message_ids) for reader in readers)
    for message_id in second[:7] + first[:4]:
        readers[message_id in second].acknowledge(bench.now, 0, message_id, True, 2)
        validate(bench.broker)
    queue.count_in(late)
    queue.enter(late)
    for reader, message_ids in zip(readers, (first[4:], second[7:]), strict=True):
        for message_id in message_ids:
            reader.acknowledge(bench.now, 0, message_id, True, 2)
    assert queue.live() == [late]
    queue.remove(late)  # no other part knows it


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_what_is_left_comes_again_in_its_order(seed: int) -> None:
    chance = random.Random(seed)
    bench = Bench()
    queue = bench.queue("in")
    sender = bench.session()
    reader = bench.session()
    consume(reader, bench, "in")
    left: dict[int, bytes] = {}
    for number in range(SENT):
        sender.send(bench.now, bench.message("in", b"%d" % number, chance.random() < 0.5), 1)
        bench.settle()
        left[endpoint(reader).message_ids[-1]] = b"%d" % number
        while left and chance.random() < 0.4:
            first = chance.random() < 0.7
            message_id = min(left) if first else chance.choice(sorted(left))
            reader.acknowledge(bench.now, 0, message_id, True, 2)
            del left[message_id]
            validate(bench.broker)
    reader.close(bench.now, False)
    again = bench.session()
    consume(again, bench, "in")
    bench.settle()
    assert endpoint(again).bodies() == [left[message_id] for message_id in sorted(left)]
    assert queue.message_count == len(left)


def test_an_address_that_was_deleted_and_came_again_gets_what_is_sent_to_it(bench: Bench) -> None:
    sender = bench.session()
    for _ in range(2):
        queue = bench.queue("out")
        sender.send(bench.now, bench.message("out", b"a"), 1)
        bench.settle()
        assert queue.message_count == 1
        bench.broker.queue_registry.delete(bench.now, "out", "deleted")
        if "out" in bench.broker.addresses:
            bench.broker.address_registry.delete(bench.broker.now, "out")
    bench.settings.add("#", {"auto_create_addresses": False})
    with pytest.raises(BrokerError) as refused:
        sender.send(bench.now, bench.message("out", b"b"), 2)
    assert refused.value.code == ADDRESS_DOES_NOT_EXIST


def test_a_consumer_of_the_same_number_is_another_one(bench: Bench) -> None:
    bench.queue("a")
    bench.queue("b")
    reader = bench.session()
    sender = bench.session()
    for name in ("a", "b"):
        sender.send(bench.now, bench.message(name, b"1"), 1)
        sender.send(bench.now, bench.message(name, b"2"), 1)
    consume(reader, bench, "a")
    bench.settle()
    first, second = endpoint(reader).message_ids
    reader.acknowledge(bench.now, 0, first, False, 2)
    reader.close_consumer(bench.now, 0)
    with pytest.raises(BrokerError) as refused:
        reader.acknowledge(bench.now, 0, second, False, 3)
    assert refused.value.code == ILLEGAL_STATE
    consume(reader, bench, "b")
    bench.settle()
    reader.acknowledge(bench.now, 0, endpoint(reader).message_ids[-2], False, 4)
    assert bench.broker.queues["b"].message_count == 1
    assert bench.broker.queues["a"].message_count == 1
