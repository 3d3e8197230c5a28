"""Epochs that go on with the files of an earlier one: what a broker that is alone costs, and when it must not be so."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from atalanta.runtime.disk.data_folder import open_data_folder
from atalanta.runtime.disk.folder_lock import DataFolderDamaged, DataFolderError
from atalanta.runtime.ha.epoch_folders import ADOPTED_NAME
from atalanta.runtime.ha.held_epoch import HeldEpoch
from atalanta.runtime.ha.member_file import MemberRecord, SilentMembers, remove_member, write_member
from tests.runtime.ha.epoch_writer import EpochWriter
from tests.runtime.ha.store_rig import epoch_folder, new_id, store, taken
from tests.waiting import until

HOUR_NS = 3_600_000_000_000
OTHER = MemberRecord("other", "primary", {}, "", 1)


def begun(folder: Path) -> HeldEpoch:
    """Returns the next epoch of a process that has just started, which must not wait: its lease is an hour."""
    process = store(folder, HOUR_NS, adopts=True)
    view = process.look()
    assert process.may_take(view, True, time.monotonic_ns())
    held = process.take("test")
    assert held is not None
    held.start(lambda why: None, time.time_ns)
    return held


def written(held: HeldEpoch, folder: Path, records: int) -> int:
    """Writes records into the epoch's journal, as its node would. Returns how many there are."""
    writer = EpochWriter(held.journal, store(folder).node_id.bytes, check=held.check)
    writer.begin()
    for _ in range(records):
        writer.commit(1)
    durable = writer.journal.durable
    writer.close()
    return int(durable)


def test_a_folder_of_a_node_without_a_pair_is_taken_as_it_is(tmp_path: Path) -> None:
    plain = open_data_folder(tmp_path / "journal", new_id, tmp_path / "journal")
    writer = EpochWriter(plain.journal, plain.node_id.bytes)
    writer.begin()
    writer.commit(3)
    durable = writer.journal.durable
    writer.close()
    plain.close()
    held = begun(tmp_path)
    assert held.journal == tmp_path / "journal"
    assert held.pages.name == held.large.name == str(plain.node_id)
    assert written(held, tmp_path, 0) == durable
    held.stop("released")
    # An earlier build refuses the folder, and finds everything when the epochs are moved away.
    with pytest.raises(DataFolderError, match="belongs to a pair with a shared store"):
        open_data_folder(tmp_path / "journal", new_id, tmp_path / "journal")
    (tmp_path / "journal" / "epochs").rename(tmp_path / "epochs")
    again = open_data_folder(tmp_path / "journal", new_id, tmp_path / "journal")
    assert again.node_id == plain.node_id
    again.close()


@pytest.mark.parametrize("end", ["released", "killed"])
def test_a_restart_makes_nothing_but_its_marks(tmp_path: Path, end: str) -> None:
    first = begun(tmp_path)
    durable = written(first, tmp_path, 5)
    for number in (2, 3):
        files = sorted(os.listdir(tmp_path / "journal"))
        if end == "killed":
            first.abandon()
        else:
            first.stop(end)
        second = begun(tmp_path)
        assert second.epoch == number and sorted(os.listdir(tmp_path / "journal")) == files
        assert sorted(os.listdir(epoch_folder(tmp_path, number))) == [ADOPTED_NAME, "holder.lock", "lease"]
        assert written(second, tmp_path, 0) == durable
        first = second
    until(lambda: not os.listdir(epoch_folder(tmp_path, 1)) + os.listdir(epoch_folder(tmp_path, 2)), "marks stay")
    first.stop("released")  # a stop ends the removal, too


def test_the_files_of_a_holder_that_may_live_are_inherited(tmp_path: Path) -> None:
    """Its lease is over, and it may still write: so they are linked and copied, and later epochs adopt the copies."""
    late = taken(store(tmp_path, adopts=True))
    assert late.journal == tmp_path / "journal"
    durable = written(late, tmp_path, 5)
    second = taken(store(tmp_path, adopts=True))
    assert second.journal == epoch_folder(tmp_path, 2) and not (second.journal / ADOPTED_NAME).exists()
    second.start(lambda why: None, time.time_ns)
    second.stop("released")
    third = begun(tmp_path)
    assert third.journal == second.journal
    assert written(third, tmp_path, 0) == durable
    late.abandon()
    third.stop("released")
    last = begun(tmp_path)
    assert written(last, tmp_path, 0) == durable
    last.stop("released")


def test_a_lock_that_was_lost_on_another_machine_proves_nothing(tmp_path: Path) -> None:
    """A network file system takes locks from a machine that it does not reach."""
    elsewhere = store(tmp_path, adopts=True)
    elsewhere._boot = "another machine"
    elsewhere.look()
    first = elsewhere.take("elsewhere")
    assert first is not None
    first._file.write(replace(first._holder.record, boot="another machine"))
    process = store(tmp_path, adopts=True)
    assert not process.look().holder_gone  # and it has seen the lock locked
    first.abandon()
    assert process.look().holder_gone
    second = process.take("here")
    assert second is not None and second.journal == epoch_folder(tmp_path, 2)
    second.stop("released")


def test_a_crash_in_the_first_start_costs_no_wait(tmp_path: Path) -> None:
    process = store(tmp_path, HOUR_NS, adopts=True)
    process.look()
    crashed = epoch_folder(tmp_path, 1)
    crashed.mkdir()
    held = HeldEpoch(process._epochs, process._epochs.with_base(1, 0), process.terms, "test", 0, 0)
    held.abandon()  # before it was complete
    second = begun(tmp_path)
    assert (second.epoch, second.journal) == (2, tmp_path / "journal")
    second.stop("released")


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_crash_at_any_step_of_a_start_costs_no_wait(tmp_path: Path, earlier: int) -> None:
    """Unless the crash left an epoch without a record: it might be that of a process that lives."""
    silent = 0
    for step in range(1, 100):
        folder = tmp_path / f"{step}"
        folder.mkdir()
        if earlier:
            begun(folder).abandon()
        if not crashed_start(folder, step):
            break
        view = store(folder, HOUR_NS, adopts=True).look()
        if view.epoch > earlier and view.record is None:
            silent += 1
            continue
        held = begun(folder)
        assert held.journal == folder / "journal"
        held.stop("released")
    assert 0 < silent < 6 < step


def crashed_start(folder: Path, step: int) -> bool:
    """Lets a process die before the n-th change of the folder in its start; False if the start has fewer."""
    child = os.fork()
    if child == 0:
        calls, opened = iter(range(1, step)), os.open

        def dying(call: Callable[..., object]) -> Callable[..., object]:
            def called(*arguments: object, **options: object) -> object:
                changes = call is not opened or arguments[1] & os.O_CREAT  # type: ignore[operator]
                if changes and next(calls, None) is None:
                    os._exit(1)
                return call(*arguments, **options)

            return called

        for name in ("mkdir", "open", "rename", "replace", "fsync", "fdatasync"):
            setattr(os, name, dying(getattr(os, name)))
        try:
            process = store(folder, HOUR_NS, adopts=True)
            process.look()
            process.take("test")
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_mark_that_is_gone_or_damaged_stops_the_start_by_name(tmp_path: Path) -> None:
    first = begun(tmp_path)
    first.hold()
    first._renew()
    first.abandon()
    mark = epoch_folder(tmp_path, 1) / ADOPTED_NAME
    text = mark.read_text()
    for damage, says in (("x", "has no number of an epoch"), ("", "adopted is missing: epoch 1 was served")):
        mark.unlink()
        if damage:
            mark.write_text(damage)
        with pytest.raises(DataFolderDamaged, match=says):
            begun(tmp_path)
        mark.write_text(text)
    begun(tmp_path).stop("released")


def test_a_holder_writes_only_while_it_knows_of_another_process(tmp_path: Path) -> None:
    process = store(tmp_path, 40_000_000, adopts=True)
    process.look()
    held = process.take("test")
    assert held is not None
    held.hold()
    lease = epoch_folder(tmp_path, 1) / "lease"
    until(lambda: b'"patience_ns":0' in lease.read_bytes(), "it does not say that it serves")
    records: list[bytes] = []
    for _ in range(20):
        until_ns = held._until_ns
        until(lambda: held._until_ns > until_ns, "the lease is not renewed")  # noqa: B023
        records.append(lease.read_bytes())
    assert len(set(records)) == 1
    write_member(process.members_folder, OTHER)
    until(lambda: lease.read_bytes() != records[0], "it does not write for the other one")
    remove_member(process.members_folder, OTHER.name)
    held.stop("released")


def test_the_file_of_a_process_that_has_ended_long_ago_is_removed(tmp_path: Path) -> None:
    silent = SilentMembers(tmp_path)
    for second in range(200):
        write_member(tmp_path, replace(OTHER, name="alive", beat=second))
        write_member(tmp_path, replace(OTHER, name="late", beat=second // 50))
        write_member(tmp_path, OTHER)
        silent.remove(second * 1_000_000_000)
        gone = [name for name in ("alive", "late", "other") if not (tmp_path / f"{name}.json").exists()]
        assert gone == (["other"] if second in (60, 121, 182) else []), second
