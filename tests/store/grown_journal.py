"""A journal of some segments and two epochs, for the tests of its cuts."""

from __future__ import annotations

from tests.store.journal_rig import Rig, config

SEGMENT = 1024


def grown(count: int = 40) -> tuple[Rig, list[int]]:
    """Returns a journal of some segments and two epochs, with the last lsn of each block."""
    rig = Rig(config(SEGMENT))
    rig.start()
    ends = []
    for number in range(count):
        if number == count // 2:
            rig.journal.begin_epoch(7)
        rig.commit(*[f"record {number}.{part}".encode() * 4 for part in range(1 + number % 3)])
        ends.append(rig.journal.last)
    rig.commit(b"large" * SEGMENT)
    rig.commit(b"behind it")
    ends += [rig.journal.last - 1, rig.journal.last]
    return rig, ends


def images(rig: Rig) -> dict[str, bytes]:
    return {name: bytes(content) for name, content in rig.disk.files.items()}
