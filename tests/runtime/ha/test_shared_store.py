"""A shared store on real folders: who may take it and when, and what a loss ends."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from atalanta.ha.folder_lease import ACTIVE, FolderRecord
from atalanta.runtime.clock import steady_ns, system_clock
from atalanta.runtime.disk.data_folder import open_data_folder
from atalanta.runtime.disk.folder_lock import DataFolderError
from atalanta.runtime.ha import shared_store
from atalanta.runtime.ha.epoch_folders import EpochFolders
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.runtime.ha.epoch_names import epochs_of
from atalanta.runtime.ha.held_epoch import HeldEpoch
from atalanta.runtime.ha.inheritance import mark_complete
from atalanta.runtime.ha.lease_file import LEASE_NAME, decode_record, encode_record, read_content
from tests.runtime.ha.store_rig import LEASE_NS, epoch_folder, new_id, store, taken
from tests.waiting import until

SECOND = 1_000_000_000


def reason(found, primary: bool = False) -> str:  # type: ignore[no-untyped-def]
    view = found.look()
    return str(found.may_take(view, primary, time.monotonic_ns()))


def test_a_holder_is_given_time_until_its_first_output(tmp_path: Path) -> None:
    """And no longer, however long its lease is: a process that stands still then would be waited for a minute."""
    found = store(tmp_path, 4 * 3600 * SECOND)
    found.look()
    held = found.take()
    assert held is not None
    starting = decode_record(read_content(held.journal))
    assert starting is not None and starting.patience_ns == 60 * SECOND
    held.hold()

    def asks_for_none() -> bool:
        serving = decode_record(read_content(held.journal))
        return serving is not None and serving.patience_ns == 0

    until(asks_for_none, lambda: "the record asks for patience")
    held.stop("released")


def test_a_new_folder_is_taken_by_a_primary_only(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    assert first.node_id == second.node_id
    assert first.look().state == "none"
    assert not reason(second, primary=False)
    assert "no node has served" in reason(first, primary=True)
    held = taken(first)
    held.check()
    held.hold()
    assert held.epoch == 1 and held.journal == epoch_folder(tmp_path, 1) and held.journal.is_dir()
    assert held.pages.is_dir() and held.large.is_dir()
    held.stop("released")


def test_only_one_of_two_takers_gets_the_epoch(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    first.look()
    second.look()
    held = first.take()
    assert held is not None
    assert second.take() is None
    held.stop("released")


def test_a_holder_that_renews_is_left_alone(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    held = taken(first)
    end = time.monotonic() + 3 * LEASE_NS / 1e9
    while time.monotonic() < end:
        assert not reason(second)
        held.hold()
        time.sleep(0.02)
    held.stop("released")


def test_a_released_folder_is_taken_at_once(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    taken(first).stop("released")
    assert second.look().released
    assert reason(second) == "the holder has released the folder"
    begin = time.monotonic()
    held = second.take()
    assert held is not None and held.epoch == 2
    assert time.monotonic() - begin < LEASE_NS / 1e9
    held.stop("released")


def test_a_stopped_folder_is_taken_by_a_primary_only(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    taken(first).stop("stopped")
    assert not reason(second, primary=False)
    assert reason(second, primary=True) == "the holder was stopped"


def test_the_lock_of_a_holder_that_ended_is_proof_of_its_end(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    held = taken(first)
    view = second.look()
    assert view.lock == held.journal / "holder.lock" and not view.holder_gone
    held.abandon()
    assert reason(second) == "the holder's process has ended"


def test_a_holder_whose_lock_was_lost_locks_it_again(tmp_path: Path) -> None:
    """A network file system takes the lock of a process that it does not reach for long; then it reaches it again."""
    held, second = taken(store(tmp_path)), store(tmp_path)
    assert second.look().locked
    fcntl.flock(held._lock._file, fcntl.LOCK_UN)
    until(lambda: second.look().locked, "the lock stays free")
    assert not reason(second)
    held.stop("released")


def test_a_lock_that_was_never_seen_locked_proves_nothing_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store(tmp_path)
    taken(first).abandon()
    second = store(tmp_path)
    monkeypatch.setattr(second, "_boot", "another")
    assert not reason(second)
    time.sleep(1.1 * LEASE_NS / 1e9)
    assert reason(second).startswith("no renewal for 0.")


def test_a_holder_whose_lease_is_not_over_ends_when_it_is_taken_over(tmp_path: Path) -> None:
    """An operator's command takes the store at any time: it waits until nobody else may serve."""
    first, second = store(tmp_path), store(tmp_path)
    held = taken(first)
    lost: list[str] = []
    held.start(lost.append, time.time_ns)
    renewed_ns = time.monotonic_ns()
    successor = taken(second)
    assert time.monotonic_ns() - renewed_ns >= LEASE_NS
    with pytest.raises(EpochLost, match="taken epoch 2"):
        held.check()
    with pytest.raises(EpochLost):
        held.hold()
    assert len(lost) == 1
    successor.check()
    successor.hold()
    held.abandon()
    successor.stop("released")


def test_a_loss_is_found_although_later_epochs_have_emptied_the_folders(tmp_path: Path) -> None:
    """Directories of epochs are never removed: neither is a number used twice, nor is a loss overlooked."""
    paused = taken(store(tmp_path))
    paused._stopping.set()  # its lease thread stands still
    for _ in range(2):
        held = taken(store(tmp_path))
        held._empty_earlier()
        held.stop("released")
    assert not list(epoch_folder(tmp_path, 2).iterdir())
    with pytest.raises(EpochLost):
        paused.check()
    paused.abandon()


def test_output_waits_for_a_late_renewal(tmp_path: Path) -> None:
    held = taken(store(tmp_path))
    held._until_ns = 0
    begin = time.monotonic()
    held.hold()
    assert 0 < time.monotonic() - begin < LEASE_NS / 1e9
    held.stop("released")


def test_a_waiting_sender_hears_of_the_loss(tmp_path: Path) -> None:
    held = taken(store(tmp_path))
    held._stopping.set()
    held._thread.join()
    held._until_ns = 0
    heard: list[str] = []

    def send() -> None:
        try:
            held.hold()
        except EpochLost as error:
            heard.append(str(error))

    sender = threading.Thread(target=send)
    sender.start()
    held._lose("a test says so")
    sender.join(5)
    assert heard == ["a test says so"]
    held.abandon()


def test_a_folder_that_cannot_be_looked_at_loses_the_epoch(tmp_path: Path) -> None:
    held = taken(store(tmp_path))
    os.rename(tmp_path / "journal", tmp_path / "unmounted")
    with pytest.raises(EpochLost, match="cannot be read"):
        held.check()
    held.abandon()


def test_an_epoch_that_was_begun_only_is_skipped(tmp_path: Path) -> None:
    first, second = store(tmp_path), store(tmp_path)
    held = taken(first)
    (held.journal / "management-settings.xml").write_text("settings")
    held.stop("released")
    epoch_folder(tmp_path, 2).mkdir()  # a taker that crashed at once
    assert not reason(second)
    time.sleep(1.1 * LEASE_NS / 1e9)
    assert reason(second).startswith("no renewal")
    successor = second.take()
    assert successor is not None and (successor.epoch, successor.source) == (3, 1)
    assert (successor.journal / "management-settings.xml").read_text() == "settings"
    successor.stop("released")


def test_a_take_that_fails_tries_again_without_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = store(tmp_path), store(tmp_path)
    held = taken(first)
    (held.journal / "management-settings.xml").write_text("settings")
    held.stop("released")
    with monkeypatch.context() as patched:
        patched.setattr(shared_store, "inherit", no_room)
        for _ in range(3):
            assert reason(second) == "the holder has released the folder"
            with pytest.raises(OSError, match="no space"):
                second.take()
    assert epochs_of(tmp_path / "journal") == [1, 2]
    successor = second.take()
    assert successor is not None and (successor.epoch, successor.source) == (3, 1)
    assert (successor.journal / "management-settings.xml").read_text() == "settings"
    assert not (epoch_folder(tmp_path, 2) / "management-settings.xml").exists()
    successor.stop("released")


def test_another_process_takes_the_store_after_a_take_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = store(tmp_path), store(tmp_path)
    taken(first).stop("released")
    with monkeypatch.context() as patched:
        patched.setattr(shared_store, "inherit", no_room)
        with pytest.raises(OSError, match="no space"):
            second.take()
    assert reason(first) == "the holder has released the folder"
    successor = taken(first)
    assert (successor.epoch, successor.source) == (3, 1)
    assert not reason(second)
    successor.stop("released")


def test_an_epoch_that_others_may_have_seen_complete_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is there, and its sync has failed: the next taker may read this epoch already."""
    first, second = store(tmp_path), store(tmp_path)
    held = taken(first)
    (held.journal / "management-settings.xml").write_text("settings")
    held.stop("released")

    def marked_without_sync(target: EpochFolders) -> None:
        mark_complete(target)
        raise OSError(errno.EIO, "input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(shared_store, "mark_complete", marked_without_sync)
        with pytest.raises(OSError, match="input/output"):
            second.take()
    successor = taken(first)
    assert (successor.epoch, successor.source) == (3, 2)
    assert (successor.journal / "management-settings.xml").read_text() == "settings"
    successor.stop("released")


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_a_taker_over_an_incomplete_epoch_waits_for_the_lease_before_it(tmp_path: Path) -> None:
    held = taken(store(tmp_path))
    epoch_folder(tmp_path, 2).mkdir()
    second = store(tmp_path)
    begin = time.monotonic()
    successor = taken(second)
    assert time.monotonic() - begin >= LEASE_NS / 1e9
    held.abandon()
    successor.stop("released")


class Seconds:
    """A clock of tests, in ns: it stands until a test moves it."""

    def __init__(self) -> None:
        self.ns = 1_000 * SECOND

    def __call__(self) -> int:
        return self.ns


@pytest.mark.parametrize("ends", ["released", "killed"])
def test_a_successor_knows_the_last_instant_of_the_holders_clock(ends: str, tmp_path: Path) -> None:
    """Plus what has passed since it was seen, and no lease, however the holder ended."""
    steady = Seconds()
    first, second = store(tmp_path), store(tmp_path)
    second._monotonic_ns = steady
    ahead = time.time_ns() + 30 * SECOND
    held = taken(first)
    held.start(lambda why: None, lambda: ahead)
    held._renew()
    if ends == "released":
        held.stop("released")
    else:
        held.abandon()
    second.look()
    steady.ns += 5 * SECOND
    successor = second.take()
    assert successor is not None
    begun = time.monotonic_ns()
    assert 0 <= successor.last_ns() - (ahead + 5 * SECOND) <= 2 * LEASE_NS
    # So says its record, too, until its node begins: it might end before that.
    successor._renew()
    record = decode_record(read_content(successor.journal))
    assert record is not None and 0 <= successor.last_ns() - record.clock_ns <= time.monotonic_ns() - begun
    successor.stop("released")


def test_six_takeovers_in_a_row_leave_the_clock_where_the_wall_clock_is(tmp_path: Path) -> None:
    """Each node's clock begins as `Shell.begin_clock` lets it."""
    before: HeldEpoch | None = None
    for number in range(6):
        held = taken(store(tmp_path))
        clock = system_clock(steady_ns)
        assert clock.begin(held.last_ns()) == 0
        held.start(lambda why: None, clock.now)
        held._renew()
        assert abs(clock.now() - time.time_ns()) < SECOND // 10
        if before is not None:
            before.abandon()
        if number % 2:
            held.stop("released")
            before = None
        else:
            before = held  # killed, and nothing proves it: the successor waits for its lease
    if before is not None:
        before.abandon()


def test_a_torn_record_is_a_change_and_no_record(tmp_path: Path) -> None:
    record = FolderRecord(7, "process 1 of h\xf6st", 3, ACTIVE, SECOND, 5, "boot")
    data = encode_record(record)
    found = decode_record(data)
    assert len(data) == 512 and found is not None and found.renewals == 3
    for end in range(0, 500, 7):
        assert decode_record(data[:end]) is None or data[:end].strip() == data.strip()
    held = taken(store(tmp_path))
    held._stopping.set()
    held._thread.join()
    (held.journal / LEASE_NAME).write_bytes(data[:40])
    second = store(tmp_path)
    second._boot = "another"
    assert not reason(second)
    time.sleep(1.1 * LEASE_NS / 1e9)
    assert reason(second).startswith("no renewal")
    held.abandon()


def test_a_node_without_a_pair_refuses_the_folder(tmp_path: Path) -> None:
    store(tmp_path)
    with pytest.raises(DataFolderError, match="belongs to a pair with a shared store"):
        open_data_folder(tmp_path / "journal", new_id, tmp_path / "journal")


def test_a_folder_that_a_node_uses_does_not_become_one_of_a_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atalanta.runtime.ha.shared_store.FOUND_WAIT_S", 0.0)
    plain = open_data_folder(tmp_path / "journal", new_id, tmp_path / "journal")
    with pytest.raises(DataFolderError, match="in use by process"):
        store(tmp_path)
    plain.close()
    assert store(tmp_path).node_id == plain.node_id


def test_a_lease_thread_that_fails_gives_the_epoch_up(tmp_path: Path) -> None:
    """Output must not wait for ever for a thread that has ended."""
    held = taken(store(tmp_path))
    lost: list[str] = []

    def broken() -> int:
        raise ValueError("no clock")

    held.start(lost.append, broken)
    held._thread.join(10)
    with pytest.raises(EpochLost, match="no clock"):
        held.hold()
    assert len(lost) == 1
    held.abandon()


def test_a_lease_that_cannot_be_written_is_given_up_after_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = taken(store(tmp_path))

    def refused(record: FolderRecord) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(held._file, "write", refused)
    begin = time.monotonic()
    held._thread.join(10)
    assert time.monotonic() - begin > LEASE_NS / 1e9
    with pytest.raises(EpochLost, match="read-only"):
        held.check()
    held.abandon()
