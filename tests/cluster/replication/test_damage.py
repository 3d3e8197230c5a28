"""Flipped bits in the journal of a member: it is repaired from the active node, or nobody serves what is damaged."""

from __future__ import annotations

import random

import pytest

from atalanta.store.segment import segment_number
from atalanta.store.tail_cut import DAMAGED_PREFIX
from tests.cluster.replication.group_rig import publish
from tests.cluster.replication.machine_rig import Machine, different
from tests.cluster.replication.replica_rig import World, client, drain


def send(world: World, conn: int, texts: list[str]) -> None:
    """Sends and waits until all are confirmed."""
    for index, text in enumerate(texts):
        publish(world.node, conn, text, -100 - index)
        world.run(2)
    confirmed: list[int] = []

    def done() -> bool:
        confirmed.extend(world.node.confirmed(conn))
        return len(confirmed) == len(texts)

    world.until(done)


def numbered(first: int, count: int) -> list[str]:
    return [f"{number} {'x' * 50}" for number in range(first, first + count)]


def flip(machine: Machine, place: float, word: bytes = b"") -> str:
    """Flips a bit of a member that is down, in the next `word` behind a part of what its first segment has. Returns
    the name of the file."""
    name = min(name for name in machine.disk.files if segment_number(name))
    content = bytes(machine.disk.files[name])
    machine.disk.flip_bit(name, content.index(word, int(len(content.rstrip(b"\0")) * place)), 3)
    return name


def begun() -> World:
    world = World()
    world.begin()
    send(world, client(world), numbered(0, 20))
    return world


def test_a_member_with_a_damaged_journal_gets_what_is_lost_from_the_active_node() -> None:
    world = begun()
    a, b = world["a"], world["b"]
    b.crash()
    damaged = flip(b, 0.5, "xx".encode("utf-16-le"))
    b.follow()
    [event] = b.happened("journal_damaged")
    assert damaged in str(event["why"]) and "of orders" in str(event["why"])
    world.until(lambda: world.in_sync() == ["a", "b'"])
    [cut] = b.happened("journal_damage_cut")
    assert cut["files"] == DAMAGED_PREFIX + damaged
    assert different(a, b) == []
    conn = client(world)
    send(world, conn, numbered(20, 5))
    a.crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(0, 25)


def test_the_former_active_node_is_repaired_by_its_successor() -> None:
    world = begun()
    a, b = world["a"], world["b"]
    a.crash()
    flip(a, 0.4)
    world.until(lambda: world.serves("b"))
    a.follow()
    world.until(lambda: world.in_sync() == ["a'", "b"])
    assert different(b, a) == []
    b.crash()
    world.until(lambda: world.serves("a"))
    assert drain(world) == numbered(0, 20)


def test_a_damaged_member_leaves_the_service_to_the_other_one_that_is_in_sync() -> None:
    world = begun()
    a, b = world["a"], world["b"]
    a.crash()
    b.crash()
    flip(a, 0.4)
    a.follow()
    world.run(10_000)
    assert not a.serving() and world.in_sync() == ["a", "b"]
    assert "the journal is damaged" in str(a.happened("replica_waits")[0]["why"])
    b.follow()
    world.until(lambda: world.serves("b"))
    world.until(lambda: world.in_sync() == ["a'", "b"])
    assert drain(world) == numbered(0, 20)


def test_the_only_good_copy_is_damaged_and_nobody_serves_it() -> None:
    world = begun()
    a, b = world["a"], world["b"]
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    send(world, client(world), numbered(20, 5))
    a.crash()
    whole = {name: bytes(content) for name, content in a.disk.files.items()}
    flip(a, 0.4)
    damaged = {name: bytes(content) for name, content in a.disk.files.items()}
    a.follow()
    b.follow()
    world.run(10_000)
    a.input("promote", True)
    world.run(10_000)
    assert world.active() is None and world.in_sync() == ["a"]
    assert any("cannot be promoted" in str(event["why"]) for event in a.happened("replica_waits"))
    assert {name: bytes(content) for name, content in a.disk.files.items()} == damaged, "nothing was changed"
    # The operator restores a copy of the folder.
    a.crash()
    a.disk.files = {name: bytearray(content) for name, content in whole.items()}
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    assert drain(world) == numbered(0, 25)


@pytest.mark.parametrize("seed", range(20))
def test_a_bit_flips_anywhere_and_the_member_is_repaired(seed: int) -> None:
    draw = random.Random(seed)
    world = begun()
    a, b = world["a"], world["b"]
    b.crash()
    flip(b, draw.random() * 0.9)
    b.follow()
    send(world, client(world), numbered(20, 5))
    world.until(lambda: len(world.in_sync()) == 2 and world.in_sync() != ["a", "b"])
    assert different(a, b) == []
    a.crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(0, 25)
