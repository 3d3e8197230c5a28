"""A passive member behind a real active node: what was confirmed is served by whoever takes over."""

from __future__ import annotations

import pytest

from atalanta.cluster.replication.member_codec import StoredFiles
from atalanta.cluster.replication.member_handshake import member_key
from atalanta.cluster.replication.passive.backup_config import MemberIdentity, TakenOver
from atalanta.cluster.replication.passive.follower_files import FollowerFiles
from atalanta.ha.register import CompareAndSet, found, take_over
from atalanta.store.config import JournalConfig
from atalanta.store.pages import page_name
from tests.cluster.replication.group_rig import (
    JOURNAL_ID,
    LEASE,
    MS,
    begin_large,
    publish,
    send_piece,
)
from tests.cluster.replication.machine_rig import Machine, different
from tests.cluster.replication.replica_rig import World, client, drain, paging

BODY = bytes(range(256)) * 2_000
SMALL = JournalConfig(JOURNAL_ID, segment_size_bytes=4096, compact_min_segments=2, compact_percentage=50)


def send(world: World, conn: int, texts: list[str]) -> None:
    """Sends and waits until all are confirmed."""
    for index, text in enumerate(texts):
        publish(world.node, conn, text, -100 - index)
        world.run(2)
    world.run(50)
    assert len(world.node.confirmed(conn)) == len(texts)


def send_large(world: World, conn: int, body: bytes = BODY) -> None:
    begin_large(world.node, conn)
    half = len(body) // 2
    send_piece(world.node, conn, body[:half], len(body))
    world.run(20)
    send_piece(world.node, conn, body[half:], len(body), -9)
    world.run(100)
    assert world.node.confirmed(conn) == [-9]


def numbered(first: int, count: int, padding: int = 0) -> list[str]:
    return [f"{number} {'x' * padding}" for number in range(first, first + count)]


# --- following and taking over ------------------------------------------------------------------------------


def test_a_follower_enters_the_in_sync_set_and_takes_over() -> None:
    world = World()
    a, b = world["a"], world["b"]
    a.follow()
    world.until(lambda: world.serves("a"))
    conn = client(world)
    send(world, conn, numbered(0, 5))
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    send(world, conn, numbered(5, 5))
    assert different(a, b) == []
    assert b.backup is not None and b.backup.status().behind == 0
    a.crash()
    before = world.schedule.now
    world.until(lambda: world.serves("b"))
    assert world.schedule.now - before >= LEASE.length_ns * 3 // 4  # from the last heartbeat on
    assert world.in_sync() == ["b"]
    assert drain(world) == numbered(0, 10)


def test_the_former_active_node_returns_without_its_unconfirmed_tail() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    conn = client(world)
    send(world, conn, numbered(0, 5))
    b.break_pipes()
    publish(a, conn, "unconfirmed", -7)
    world.run(20)
    assert a.confirmed(conn) == []
    a.crash()
    world.until(lambda: world.serves("b"))
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    [cut] = a.happened("replica_tail_cut")
    assert "confirmed" not in cut
    assert str(cut["files"]) in a.disk.files
    conn = client(world)
    send(world, conn, numbered(5, 5))
    b.crash()
    world.until(lambda: world.serves("a"))
    assert drain(world) == numbered(0, 10)


def test_a_handover_needs_no_wait() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    before = world.schedule.now
    world.stop("a")
    world.until(lambda: world["b"].serving())
    assert world.schedule.now - before < 300 * MS
    world["a"].follow()
    assert world["b"].happened("replica_takes_over")[-1]["why"] == "a has handed over, or its process has ended"
    world.run(30_000)  # it is in sync, and lets the new active node live
    assert world["b"].serving()
    assert world.in_sync() == ["a", "b"]
    assert drain(world) == numbered(0, 5)


def test_a_member_in_sync_leaves_the_new_active_node_time_to_read_its_journal() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    a, b = world["a"], world["b"]
    b.disk.slow = 20_000  # it has taken over, and cannot serve yet
    world.stop("a")
    a.follow()
    world.run(20_000)
    assert world.manager.value is not None and world.manager.value.active == "b"
    b.crash()
    world.until(lambda: world.serves("a"), 90_000)
    assert drain(world) == numbered(0, 5)


def test_the_end_that_an_active_node_tells_itself_needs_no_wait() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    world["a"].disk.fail_next_sync()
    publish(world["a"], conn, "lost", -7)
    before = world.schedule.now
    world.until(lambda: world.serves("b"))
    assert world.schedule.now - before < 400 * MS
    assert "lost" not in drain(world)[:5]


def test_a_group_of_three_goes_on_with_two() -> None:
    world = World(names="abc")
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    world["a"].crash()
    world.until(lambda: any(world.serves(name) for name in "bc"))
    world.until(lambda: world.in_sync() == ["b", "c"])
    conn = client(world)
    send(world, conn, numbered(5, 5))
    world.node.crash()
    world.until(lambda: any(world.serves(name) for name in "bc"))
    assert drain(world) == numbered(0, 10)


def test_a_member_whose_connection_is_dead_at_the_other_end_only_connects_again() -> None:
    """The end of a connection may be told to one side only: by a reset whose packet, or its answer, got lost."""
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    [pipe] = [each for each in a.pipes if each.open and b in [end[0] for end in each.ends]]
    pipe.open = False
    conn = next(conn for machine, _, conn in pipe.ends if machine is a)
    a.input("on_closed", conn, "Connection reset by peer")
    world.until(lambda: world.in_sync() == ["a"])
    world.until(lambda: world.in_sync() == ["a", "b"], 10_000)
    assert "said nothing" in str(b.happened("replication_link_lost"))


def test_at_a_cold_start_the_primary_goes_first() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    world.settle()
    a.crash()
    b.crash()
    b.follow()
    world.run(100)
    a.follow()
    world.until(lambda: any(world.serves(name) for name in "ab"))
    assert a.serving()
    world.until(lambda: world.in_sync() == ["a", "b"])


def test_a_backup_that_is_in_sync_serves_when_its_primary_stays_away() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    world["a"].crash()
    world["b"].crash()
    world["b"].follow()
    world.until(lambda: world.serves("b"))
    assert drain(world) == numbered(0, 5)


def test_a_member_that_is_not_in_sync_waits_and_says_for_whom() -> None:
    world = World()
    world.begin()
    conn = client(world)
    a, b = world["a"], world["b"]
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    send(world, conn, numbered(0, 5))
    a.crash()
    b.follow()
    world.run(20_000)
    assert b.backup is not None and b.backup.outcome is None
    [waits] = b.happened("replica_waits")
    assert "in sync are a" in str(waits["why"])
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    assert drain(world) == numbered(0, 5)


def test_an_operator_promotes_a_member_that_is_not_in_sync() -> None:
    world = World()
    world.begin()
    conn = client(world)
    send(world, conn, numbered(0, 5))
    a, b = world["a"], world["b"]
    b.crash()
    world.until(lambda: world.in_sync() == ["a"])
    send(world, conn, numbered(5, 5))
    a.crash()
    b.follow()
    world.run(5_000)
    b.input("promote", True)
    world.until(lambda: world.serves("b"))
    a.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    [cut] = a.happened("replica_tail_cut")
    assert "perhaps" in str(cut["confirmed"])
    assert drain(world) == numbered(0, 5)
    assert b.happened("replica_takes_over")[-1]["why"] == "an operator promoted this member"


# --- the register -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_the_answer_to_the_takeover_is_lost(lost: int) -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.manager.writes_lost = lost
    world.until(lambda: world.serves("b"))
    assert len(world["b"].happened("register_uncertain")) == 1
    assert world.manager.value is not None and world.manager.value.epoch == 2


def test_a_manager_that_is_away_delays_the_takeover() -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.manager.reachable = False
    world.run(30_000)
    assert not world["b"].serving()
    assert len(world["b"].happened("register_uncertain")) == 2, "once a run, and the first one ends with its doors"
    world.manager.reachable = True
    world.until(lambda: world.serves("b"))


def test_a_member_that_lost_the_race_follows_the_winner() -> None:
    world = World(names="abc")
    world.begin()
    world["a"].crash()
    world.until(lambda: any(world[name].outcomes[-1:] for name in "bc"), 20_000)
    world.until(lambda: len(world.in_sync()) == 2)
    assert sum(len(world[name].outcomes) for name in "bc") == 1


def test_a_backup_waits_for_the_register_that_its_primary_founds() -> None:
    world = World()
    b = world["b"]
    b.follow()
    world.run(2_000)
    [waits] = b.happened("replica_waits")
    assert "start its primary" in str(waits["why"])
    world["a"].follow()
    world.until(lambda: world.manager.value is not None and world.in_sync() == ["a", "b"])


def test_a_primary_whose_register_is_gone_founds_no_other_one() -> None:
    world = World(names="a")
    world["a"].follow()
    world.until(lambda: world.serves("a"))
    world.run(100)
    world["a"].crash()
    world.manager.value, world.manager.version = None, 0
    world["a"].follow()
    world.run(5_000)
    [waits] = world["a"].happened("replica_waits")
    assert "restore the register" in str(waits["why"])
    assert world.manager.value is None
    world["a"].input("promote", True)
    world.until(lambda: world.serves("a"))


def lose_register(world: World) -> None:
    """Gives the group a manager that knows nothing."""
    world.manager.value, world.manager.version = None, 0


def with_a_lost_primary(world: World) -> Machine:
    """Lets "b" serve, and returns the primary with an empty disk. It does not run yet."""
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    send(world, client(world), numbered(0, 5))
    replaced = world.machines["a"] = Machine(world, "a", True)
    replaced.member_name = "a2"
    return replaced


@pytest.mark.parametrize("learned", [False, True])
def test_a_primary_with_an_empty_disk_founds_no_second_register_beside_the_member_that_serves(learned: bool) -> None:
    world = World()
    a = with_a_lost_primary(world)
    lose_register(world)
    a.learned = learned  # else the node id is that of its configuration
    a.follow()
    world.run(8_000)
    assert world.manager.value is None
    assert a.backup is not None and world.serves("b")
    [waits] = a.happened("replica_waits")
    assert "the register of the group is gone" in str(waits["why"])
    assert "start the one that served last" in str(waits["why"])


def test_a_primary_that_has_learned_its_node_id_founds_nothing_when_nobody_serves() -> None:
    world = World()
    a = world["a"]
    a.learned = True
    a.follow()
    world.run(8_000)
    assert world.manager.value is None


def test_the_member_that_serves_alone_writes_the_register_again_that_went_with_the_disk_of_the_other() -> None:
    world = World()
    world["b"].restores_register = True
    a = with_a_lost_primary(world)
    lose_register(world)
    a.follow()
    world.until(lambda: world.in_sync() == ["a2", "b"], 20_000)
    [restored] = world["b"].happened("register_restored")
    assert (restored["epoch"], restored["active"]) == (2, "b")
    assert not a.happened("replica_waits")
    assert drain(world) == numbered(0, 5)
    world["b"].crash()
    world.until(lambda: world.serves("a"), 20_000)


def test_a_member_whose_journal_is_newer_than_the_register_keeps_it() -> None:
    world = World()
    a = with_a_lost_primary(world)
    b = world["b"]
    b.crash()
    lose_register(world)
    a.follow()  # nobody serves: it founds the group again
    world.until(lambda: world.serves("a"))
    b.follow()
    world.run(8_000)
    [waits] = b.happened("replica_waits")
    assert "has epoch 1, but the journal of this member has epoch 2" in str(waits["why"])
    assert not b.happened("replica_tail_cut")
    assert b.backup is not None and b.backup.outcome is None
    assert world.serves("a") and not a.outcomes[1:]  # it is not sent to epoch 2
    a.crash()
    b.input("promote", True)
    world.until(lambda: world.serves("b"), 20_000)
    assert drain(world) == numbered(0, 5)


def test_a_member_that_serves_tells_of_another_register_once() -> None:
    world = World()
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    lose_register(world)
    world.manager.set(CompareAndSet(0, take_over(found("c", 0, b"f" * 16), "c", b"t" * 16)))
    world.run(8_000)
    [told] = world["b"].happened("register_replaced")
    assert (told["epoch"], told["found"], told["active"]) == (2, 1, "c")
    assert world.serves("b")


def test_a_takeover_by_another_member_ends_the_stream_of_the_old_epoch() -> None:
    world = World()
    world.begin()
    a, b = world["a"], world["b"]
    before = world.manager.value
    assert before is not None
    world.manager.set(CompareAndSet(world.manager.version, take_over(before, "a", b"t" * 16)))
    b.input("on_register", world.manager.version, world.manager.value)
    world.until(lambda: len(a.outcomes) == 2)
    world.until(lambda: world.serves("a") and world.in_sync() == ["a", "b"], 20_000)
    [lost] = b.happened("replication_link_lost")
    assert "epoch 2" in str(lost["why"])


# --- the node id --------------------------------------------------------------------------------------------


def test_a_fresh_backup_learns_the_node_id_from_the_active_node() -> None:
    world = World()
    b = world["b"]
    b.node_id = None
    b.follow()
    world.run(1_000)
    assert b.outcomes == []
    world["a"].follow()
    world.until(lambda: bool(b.outcomes))
    assert b.outcomes == [MemberIdentity(JOURNAL_ID)]
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])


def test_a_fresh_primary_follows_an_active_node_and_else_makes_a_node_id() -> None:
    world = World()
    a = world["a"]
    a.node_id = None
    a.follow()
    world.until(lambda: bool(a.outcomes))
    [made] = a.outcomes
    assert isinstance(made, MemberIdentity) and len(made.node_id) == 16

    world = World()
    world.begin()
    world["a"].crash()
    world.until(lambda: world.serves("b"))
    replaced = world.machines["a"] = Machine(world, "a", True)
    replaced.node_id = None
    replaced.follow()
    world.until(lambda: bool(replaced.outcomes))
    assert replaced.outcomes == [MemberIdentity(JOURNAL_ID)]


def test_a_folder_of_another_group_is_refused_with_its_name() -> None:
    world = World()
    a, b = world["a"], world["b"]
    a.follow()
    world.until(lambda: world.serves("a"))
    b.node_id = bytes(16)[:-1] + b"\7"
    b.follow()
    world.run(5_000)
    [refused] = b.happened("replication_refused")
    assert "/data/b has data of node 00000000000000000000000000000007" in str(refused["why"])
    assert "give it another data folder, and keep the one that it has" in str(refused["why"])
    assert "empty" not in str(refused["why"])


def test_another_password_and_another_group_are_told_once() -> None:
    world = World(names="abc")
    a, b, c = (world[name] for name in "abc")
    a.follow()
    world.until(lambda: world.serves("a"))
    b.key = member_key("user", "wrong")
    c.group_name = "another"
    b.follow()
    c.follow()
    world.run(5_000)
    told = [event for event in b.happened("replication_refused") if event["remote"] == "a:1"]
    assert len(told) == 1 and "cluster-password" in str(told[0]["why"])
    told = [event for event in c.happened("other_group_met") if event["remote"] == "a:1"]
    assert len(told) == 1 and "another group" in str(told[0]["why"])
    assert world.in_sync() == ["a"]


def test_two_groups_with_names_of_their_own_warn_of_nothing_and_both_serve() -> None:
    """Their members may dial each other: every pair of a cluster has the connectors of all."""
    world = World(names="abc")
    a, b, c = (world[name] for name in "abc")
    c.group_name = "two"
    a.follow()
    world.until(lambda: world.serves("a"))
    b.follow()
    c.primary = True
    c.node_id = None
    c.follow()
    world.until(lambda: bool(c.outcomes) and world.in_sync() == ["a", "b"])
    assert isinstance(c.outcomes[0], MemberIdentity) and c.outcomes[0].founded
    world.run(5_000)
    assert {event["why"] for event in c.happened("other_group_met")} == {
        "another group: it is of 'two', this node of 'g'"
    }
    assert not c.happened("replication_refused")
    assert not a.happened("replica_refused")


# --- page files and large bodies ----------------------------------------------------------------------------


def test_paged_and_large_messages_survive_a_takeover() -> None:
    world = World(settings=paging)
    world["a"].follow()
    world.until(lambda: world.serves("a"))
    conn = client(world)
    send(world, conn, numbered(0, 30, 1000))
    send_large(world, conn)
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
    send_large(world, conn)
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


# --- the journal --------------------------------------------------------------------------------------------


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
