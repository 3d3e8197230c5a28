"""An earlier holder that goes on while another process inherits, and after it: real journals, its acts in any order.

Its commits are answered by nobody here (the check of its disk would end it); the bytes are written all the same, as by
a process that was paused in the middle.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from atalanta.runtime.ha import inheritance
from atalanta.runtime.ha.epoch_folders import EpochFolders
from atalanta.store.errors import JournalDamaged
from tests.runtime.ha.epoch_writer import EpochWriter

JOURNAL_ID = bytes(16)
SEEDS = 8


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """The journals of a test, which are closed at its end."""
    with ExitStack() as found:
        yield found


def folders(root: Path, number: int) -> EpochFolders:
    own = root / f"{number}"
    found = EpochFolders(number, own, root / f"{number}p", root / f"{number}l", own, number)
    for folder in (found.journal, found.pages, found.large):
        folder.mkdir()
    return found


def journal(found: EpochFolders, opened: ExitStack) -> EpochWriter:
    """Recovers and checks every record. The disk of the writer never reuses a file."""
    writer = EpochWriter(found.journal, JOURNAL_ID, check=lambda: None)
    opened.callback(writer.close)
    writer.begin()
    return writer


def play(root: Path, seed: int, opened: ExitStack) -> None:
    """Lets three holders follow each other; each goes on to write while, and after, it is succeeded."""
    random_ = random.Random(seed)
    holders: list[EpochWriter] = []
    place = folders(root, 1)
    holders.append(journal(place, opened))
    for number in (2, 3):
        holder = holders[-1]
        for _ in range(random_.randrange(12)):
            holder.commit(random_.randrange(1, 12))
        confirmed = holder.journal.durable
        acts = meddling(holders, random_)
        target = folders(root, number)
        inheritance.inherit(place, target, JOURNAL_ID, acts)
        heir = journal(target, opened)
        assert heir.records.count >= confirmed, f"seed {seed}: {heir.records.count} of {confirmed}"
        place = target
        holders.append(heir)
        for _ in range(6):
            heir.commit(random_.randrange(1, 12))
            acts()
    last = holders[-1]
    wanted = last.journal.durable
    for writer in holders:
        writer.close()
    again = journal(place, opened)
    assert again.records.count == wanted, f"seed {seed}: {again.records.count} of {wanted}"


def meddling(holders: list[EpochWriter], random_: random.Random) -> Callable[[], None]:
    """Returns a function with which the holders of so far write something, or nothing."""
    late = list(holders)

    def act() -> None:
        for writer in late:
            if random_.random() < 0.6:
                writer.commit(random_.randrange(1, 12))

    return act


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_late_holder_changes_nothing_of_its_successor(tmp_path: Path, opened: ExitStack, seed: int) -> None:
    play(tmp_path, seed, opened)


def test_links_to_files_that_are_still_written_are_found(
    tmp_path: Path, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: every segment is linked."""
    monkeypatch.setattr(inheritance, "copy_file", os.link)
    found = 0
    for seed in range(SEEDS):
        (tmp_path / f"{seed}").mkdir()
        try:
            play(tmp_path / f"{seed}", seed, opened)
        except (AssertionError, JournalDamaged, ValueError):
            found += 1
    assert found > 0


def test_files_used_again_are_found(tmp_path: Path, opened: ExitStack) -> None:
    """The planted fault: a sealed segment becomes a new one, in place, though a successor has linked it."""
    place, target = folders(tmp_path, 1), folders(tmp_path, 2)
    holder = journal(place, opened)
    for _ in range(40):
        holder.commit(8)
    inheritance.inherit(place, target, JOURNAL_ID, lambda: None)
    names = sorted(name for name in os.listdir(place.journal) if name.startswith("journal-"))
    holder.disk.reuse(names[0], "journal-00000000000000000099.log", b"a new head")
    holder.close()
    with pytest.raises(JournalDamaged):
        journal(target, opened)
