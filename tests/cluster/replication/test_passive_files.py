"""The journal, page files and large bodies of a passive member: they are those of the active node."""

from __future__ import annotations

import pytest

from atalanta.cluster.replication.member_codec import StoredFiles
from atalanta.cluster.replication.passive.backup_config import TakenOver
from atalanta.cluster.replication.passive.follower_files import FollowerFiles
from atalanta.ha.register import CompareAndSet, found
from atalanta.store.config import JournalConfig
from atalanta.store.pages import page_name
from tests.cluster.replication.group_rig import begin_large, publish, send_piece
from tests.cluster.replication.machine_rig import Machine, different
from tests.cluster.replication.member_rig import JOURNAL_ID
from tests.cluster.replication.replica_rig import (
    World,
    client,
    drain,
    numbered,
    paging,
    send,
    send_large,
)

BODY = bytes(range(256)) * 2_000
SMALL = JournalConfig(JOURNAL_ID, segment_size_bytes=4096, compact_min_segments=2, compact_percentage=50)


def test_paged_and_large_messages_survive_a_takeover() -> None:
    world = World(settings=paging)
    world["a"].follow()
    world.until(lambda: world.serves("a"))
    conn = client(world)
    send(world, conn, numbered(0, 30, 1000))
    send_large(world, conn, BODY)
    world["b"].follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    send(world, conn, numbered(30, 30, 1000))
    send_large(world, conn, BODY[:300_000])
    world.settle()
    assert different(world["a"], world["b"]) == []
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    texts = drain(world)
    assert texts == [*numbered(0, 30, 1000), BODY, *numbered(30, 30, 1000), BODY[:300_000]]


def test_files_that_went_while_a_follower_was_away_go_there_too() -> None:
    world = World(settings=paging)
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    send(world, conn, numbered(0, 60, 1000))
    send_large(world, conn, BODY)
    world.settle()
    assert any(name.startswith("page-") for name in b.disk.files) and b.large.contents
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    assert len(drain(world)) == 61
    assert not a.large.contents
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    conn = client(world)
    send(world, conn, ["more"])
    world.settle()
    assert not any(name.startswith("page-") for name in b.disk.files)
    assert not b.large.contents


def test_no_file_goes_while_an_offer_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that a follower names must be there, and its journal is cut only when nothing else is written."""
    world = World(settings=paging)
    world.begin()
    b = world["b"]
    conn = client(world)
    send(world, conn, numbered(0, 60, 1000))
    world.settle()
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    drain(world)
    busy: list[bool] = []
    stored = FollowerFiles.stored

    def note(files: FollowerFiles) -> StoredFiles:
        busy.append(b.disk.busy())
        return stored(files)

    monkeypatch.setattr(FollowerFiles, "stored", note)
    b.disk.slow = 100
    b.follow()
    world.until(lambda: len(busy) == 1)
    world.run(20)
    assert b.disk.busy()
    b.break_pipes()
    world.until(lambda: len(busy) == 2)
    assert busy == [False, False]
    b.disk.slow = 1
    world.until(lambda: world.in_sync() == ["a", "b"])
    world.settle()
    assert different(world["a"], b) == []


def test_a_page_file_that_was_being_written_at_a_crash_is_sent_again() -> None:
    world = World(settings=paging)
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    send(world, conn, numbered(0, 60, 1000))
    world.settle()
    b.crash()
    torn = max(name for name in b.disk.files if name.startswith("page-"))
    b.disk.files[torn][-500:] = bytes(500)
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    world.settle()
    assert different(a, b) == []


def test_a_large_body_is_complete_under_its_number_or_not_there() -> None:
    world = World()
    world.begin()
    b = world["b"]
    conn = client(world)
    begin_large(world.node, conn)
    send_piece(world.node, conn, BODY[:300_000], len(BODY))
    world.run(50)
    [file] = b.large.contents
    assert file >= 1 << 62
    send_piece(world.node, conn, BODY[300_000:], len(BODY), -9)
    world.settle()
    [file] = b.large.contents
    assert file < 1 << 62 and bytes(b.large.contents[file]) == BODY


def test_incomplete_bodies_go_before_a_takeover() -> None:
    world = World()
    world.begin()
    conn = client(world)
    begin_large(world.node, conn)
    send_piece(world.node, conn, BODY[:300_000], len(BODY))
    world.run(50)
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    assert not world["b"].large.contents


def test_the_stored_settings_of_the_active_node_arrive() -> None:
    world = World()
    world["a"].stored_settings = b"<settings/>"
    world.begin()
    assert world["b"].stored_settings == b"<settings/>"


def test_a_follower_that_the_compaction_has_overtaken_begins_again() -> None:
    world = World(journal=SMALL)
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    send(world, conn, numbered(0, 5))
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    for _ in range(6):
        send(world, conn, numbered(0, 30, 100))
        drain(world)
    send(world, conn, numbered(5, 5))
    first = min(name for name in a.disk.files if name.startswith("journal-0"))
    assert first not in b.disk.files
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    world.settle()
    a.crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(5, 5)


def test_an_empty_member_follows_a_journal_whose_beginning_is_gone() -> None:
    world = World(journal=SMALL)
    world["a"].follow()
    world.until(lambda: world.serves("a"))
    conn = client(world)
    for _ in range(6):
        send(world, conn, numbered(0, 30, 100))
        drain(world)
    send(world, conn, numbered(5, 5))
    assert "journal-00000000000000000001.log" not in world["a"].disk.files
    world["b"].follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(5, 5)


def test_a_damaged_stream_begins_again() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    damaged: list[bytes] = []

    def damage(sender: Machine, data: bytes) -> bytes:
        if sender is a and b"needle" in data.replace(b"\0", b"") and len(damaged) < 3:
            damaged.append(data)
            middle = len(data) // 2
            return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        return data

    world.on_bytes = damage
    publish(a, conn, "needle", -7)
    world.until(lambda: len(damaged) == 3)
    world.run(2_000)
    assert world.in_sync() == ["a", "b"]
    assert a.confirmed(conn) == [-7]
    send(world, conn, ["more"])
    world.settle()
    assert different(a, b) == []
    lost = b.happened("replication_link_lost")
    assert any("does not match its checksum" in str(event["why"]) for event in lost)


def test_too_much_that_waits_for_the_disk_stops_the_reader() -> None:
    world = World(settings=paging)
    world.begin()
    b = world["b"]
    conn = client(world)
    begin_large(world.node, conn)
    b.large.bytes_per_ms = 1_000
    for _ in range(40):
        send_piece(world.node, conn, bytes(500_000), 40 * 500_000)
        world.run(1)
    world.run(200)
    wire = b.wire
    assert wire.paused
    world.until(lambda: bool(wire.resumed), 60_000)
    assert b.outcomes == []  # it has read no heartbeats, but the active node is there


def test_a_disk_that_fails_ends_the_member_with_the_reason() -> None:
    world = World()
    world.begin()
    b = world["b"]
    conn = client(world)
    b.disk.fail_next_sync()
    publish(world.node, conn, "a", -7)
    world.until(lambda: bool(b.why))
    assert "does not sync" in b.why[-1]
    world.until(lambda: world.in_sync() == ["a"])
    world.run(50)
    assert world.node.confirmed(conn) == [-7]


def test_a_large_file_that_cannot_be_written_ends_the_member_with_the_reason() -> None:
    world = World()
    world.begin()
    b = world["b"]
    b.large.full_at = 1000
    conn = client(world)
    begin_large(world.node, conn)
    send_piece(world.node, conn, BODY, len(BODY), -9)
    world.until(lambda: bool(b.why))
    assert "cannot be written: no space left" in b.why[-1]


def test_a_page_is_noted_before_it_is_written() -> None:
    """So that a start knows which one may be torn."""
    world = World(settings=paging)
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 60, 1000))
    world.settle()
    disk = world["b"].disk
    number = int.from_bytes(disk.files["replica-barrier"][:8], "big")
    assert page_name(number) in disk.files


def test_the_outcome_has_the_follower_that_the_node_goes_on_with() -> None:
    world = World(names="a")
    world.manager.set(CompareAndSet(0, found("a", 0, bytes(16))))
    world["a"].follow()
    world.until(lambda: bool(world["a"].outcomes))
    [outcome] = world["a"].outcomes
    assert isinstance(outcome, TakenOver)
    assert outcome.follower.view.known == world.manager.value
    assert outcome.why == "it is the first member of its group"


def test_a_takeover_has_its_reason() -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    assert world["b"].happened("replica_takes_over")[-1]["why"] == "a was silent for the lease, or cannot be reached"
    world["b"].crash()
    world["b"].follow()
    world.until(lambda: world.serves("b"))
    reason = "it was active before it was started again"
    assert world["b"].happened("replica_takes_over")[-1]["why"] == reason
