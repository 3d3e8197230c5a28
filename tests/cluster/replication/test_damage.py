"""Flipped bits in the journal of a member: it is repaired from the active node, or nobody serves what is damaged."""

from __future__ import annotations

import random

import pytest

from atalanta.store.config import JournalConfig
from atalanta.store.pages import page_number
from atalanta.store.segment import segment_number
from atalanta.store.tail_cut import DAMAGED_PREFIX
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.session import SessionStart
from tests.cluster.replication.group_rig import begin_large, send_piece
from tests.cluster.replication.machine_rig import Machine, different
from tests.cluster.replication.member_rig import JOURNAL_ID
from tests.cluster.replication.replica_rig import World, client, drain, numbered, paging, send


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


# --- while they run -----------------------------------------------------------------------------------------


def page_of(machine: Machine) -> str:
    return min(name for name in machine.disk.files if page_number(name))


def test_a_follower_reads_its_segments_again_and_is_repaired_before_it_is_needed() -> None:
    world = World(journal=JournalConfig(JOURNAL_ID, segment_size_bytes=4096))
    world.begin()
    a, b = world["a"], world["b"]
    send(world, client(world), numbered(0, 60))
    flip(b, 0.5)
    world.run(3_600_000)
    world.until(lambda: world.in_sync() == ["a", "b'"])
    assert different(a, b) == []
    a.crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(0, 60)


def test_a_follower_reads_its_page_files_again_and_gets_a_damaged_one_from_the_active_node() -> None:
    world = World(settings=paging)
    world.begin()
    a, b = world["a"], world["b"]
    send(world, client(world), numbered(0, 60, 1000))
    world.settle()
    b.crash()
    b.disk.flip_bit(page_of(b), 2_000)
    b.follow()
    world.until(lambda: bool(b.happened("replica_file_damaged")))
    world.run(1_000)
    [event] = b.happened("replica_file_damaged")
    assert page_of(b) in str(event["why"])
    assert world.in_sync() == ["a", "b"]
    world.settle()
    assert different(a, b) == []
    a.crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(0, 60, 1000)


def test_an_active_node_with_a_damaged_page_leaves_the_service_to_the_follower_and_is_repaired() -> None:
    world = World(settings=paging)
    world.begin()
    a, b = world["a"], world["b"]
    send(world, client(world), numbered(0, 60, 1000))
    world.settle()
    a.disk.flip_bit(page_of(a), 2_000)
    conn = client(world)
    for packet in (CreateConsumer(consumer_id=1, queue="orders"), SessionStart(), FlowToken(1, 1 << 30)):
        if world.serves("a"):
            a.send(conn, packet)
    world.until(lambda: world.serves("b"))
    assert any("a member in sync has another copy" in why for why in a.why)
    world.until(lambda: world.in_sync() == ["a", "b"])
    assert different(b, a) == []
    assert drain(world) == numbered(0, 60, 1000)


def test_two_damaged_copies_of_a_page_are_told_and_do_not_send_the_service_to_and_fro() -> None:
    world = World(settings=paging)
    world.begin()
    a, b = world["a"], world["b"]
    send(world, client(world), numbered(0, 60, 1000))
    world.settle()
    for machine in (a, b):
        machine.disk.flip_bit(page_of(machine), 2_000)

    def told() -> list[dict[str, object]]:
        return [*a.happened("page_file_damaged"), *b.happened("page_file_damaged")]

    found: list[str | bytes] = []
    while not found:
        world.until(lambda: world.active() is not None)
        try:
            found = drain(world)
        except (AssertionError, KeyError):
            world.run(5_000)
    assert told() and told()[-1]["queue"] == "orders"
    lost = [text for text in numbered(0, 60, 1000) if text not in found]
    assert 0 < len(lost) < 60 and found == [text for text in numbered(0, 60, 1000) if text not in lost]
    assert a.manager.value is not None and a.manager.value.epoch <= 3


def test_an_active_node_with_a_damaged_large_message_leaves_the_service_to_the_follower() -> None:
    world = World()
    world.begin()
    a = world["a"]
    conn = client(world)
    body = bytes(range(256)) * 2_000
    begin_large(a, conn)
    send_piece(a, conn, body, len(body), -9)
    world.until(lambda: a.confirmed(conn) == [-9])
    world.settle()
    [file] = a.large.contents
    a.large.contents[file][1000] ^= 1
    for packet in (CreateConsumer(consumer_id=1, queue="orders"), SessionStart(), FlowToken(1, 1 << 30)):
        a.send(conn, packet)
    world.until(lambda: world.serves("b"))
    world.until(lambda: world.in_sync() == ["a", "b"])
    assert bytes(a.large.contents[file]) == body
    assert drain(world) == [body]


def test_what_is_still_being_written_is_not_taken_for_damage() -> None:
    """The check of a follower's disk reads only what was written when it began."""
    world = World(journal=JournalConfig(JOURNAL_ID, segment_size_bytes=4096))
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    send(world, conn, numbered(0, 60))
    b.disk.slow = 100
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"], 60_000)
    assert not b.happened("journal_damaged")
    b.disk.slow = 1
    world.settle()
    assert different(a, b) == []
