"""What a consumer holds: taken out in order, out of order, and again after a redelivery."""

from __future__ import annotations

import random

from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.queue.unacknowledged_references import TRIM_MIN, Unacknowledged
from atalanta.message.message import Message

QUEUE = Queue(1, QueueSpec("orders", "orders", ANYCAST), None, "incarnation")


def reference(message_id: int) -> Reference:
    return Reference(Message(message_id, b""), QUEUE, message_id, b"")


def ids(held: Unacknowledged) -> list[int]:
    return [int(kept.message.id) for kept in held.values()]


def filled(*message_ids: int) -> Unacknowledged:
    held = Unacknowledged()
    for message_id in message_ids:
        held.add(reference(message_id))
    return held


def test_in_order() -> None:
    held = filled(1, 2, 3)
    assert held.pop_first(2) is None
    first = held.pop_first(1)
    assert first is not None and first.message.id == 1
    assert ids(held) == [2, 3] and len(held) == 2 and 1 not in held


def test_from_the_middle_and_through() -> None:
    held = filled(5, 3, 9, 7, 8)
    assert held.pop(9) is not None
    assert held.pop(9) is None
    assert [int(taken.message.id) for taken in held.pop_through(7)] == [5, 3, 7]
    assert ids(held) == [8]
    assert held.pop_through(7) == [] and ids(held) == [8]


def test_redelivered_after_it_was_taken() -> None:
    held = filled(1, 2, 3)
    assert held.pop(2) is not None
    held.add(reference(2))
    assert ids(held) == [1, 3, 2]
    assert len(held.pop_through(2)) == 3 and len(held) == 0


def test_like_a_dict_in_any_order() -> None:
    dice = random.Random(7)
    held = Unacknowledged()
    model: dict[int, bool] = {}
    next_id = 0
    for _ in range(20 * TRIM_MIN):
        step = dice.random()
        if step < 0.55 or not model:
            next_id += 1
            held.add(reference(next_id))
            model[next_id] = True
        elif step < 0.8:
            first = next(iter(model))
            assert held.pop_first(first) is not None
            del model[first]
        elif step < 0.95:
            some = dice.choice(list(model)[:50])
            assert held.pop(some) is not None
            del model[some]
        else:
            some = dice.choice(list(model)[:50])
            taken = [int(kept.message.id) for kept in held.pop_through(some)]
            before = list(model)
            assert taken == before[: before.index(some) + 1]
            for gone in taken:
                del model[gone]
    assert ids(held) == list(model) and len(held) == len(model)
    held.clear()
    assert ids(held) == [] and next_id not in held
