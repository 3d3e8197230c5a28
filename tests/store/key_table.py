"""A tiny kernel for the journal: a table of keys, kept by records, as the broker keeps messages."""

from __future__ import annotations

import random

from atalanta.store.config import JournalConfig
from atalanta.store.journal import Journal
from tests.store.journal_rig import Rig

PUT = 1
DELETE = 2
COUNTER = 3


def apply(table: dict[int, tuple[int, bytes]], lsn: int, kind: int, payload: bytes) -> None:
    """Applies a record: a later put replaces, a delete of nothing is ignored."""
    key = int.from_bytes(payload[:4], "big")
    if kind == PUT:
        table[key] = (lsn, payload)
    elif kind == DELETE:
        table.pop(key, None)


class Table:
    """Writes the journal, remembers all it wrote, and knows the live records."""

    def __init__(self, settings: JournalConfig, seed: int = 1, counted: bool = True) -> None:
        self.rig = Rig(settings, seed)
        self.live: dict[int, tuple[int, bytes]] = {}
        self.live_size = 0
        # Every record ever appended, by lsn - 1, whether it became durable or not.
        self.written: list[tuple[int, bytes]] = []
        self.relocated = 0
        self.looked_at = 0
        # The journal counts what is alive, and leaves files unread where nothing is.
        self.counted = counted
        self.guess_percentage = 100

    @property
    def journal(self) -> Journal:
        return self.rig.journal

    # --- the live records -------------------------------------------------------------------------------

    def live_bytes(self) -> int:
        return self.live_size * self.guess_percentage // 100

    def before_compaction(self, now: int, first_segment: int) -> None:
        self.write(COUNTER, b"\0" * 8)

    def relocate(self, lsn: int, kind: int, payload: bytes) -> None:
        self.looked_at += 1
        key = int.from_bytes(payload[:4], "big")
        if kind == PUT and self.live.get(key, (0, b""))[0] == lsn:
            self.relocated += 1
            self.write(PUT, payload)

    # --- writing ----------------------------------------------------------------------------------

    def write(self, kind: int, payload: bytes) -> int:
        lsn = self.journal.append(kind, payload)
        assert lsn == len(self.written) + 1
        self.written.append((kind, payload))
        before = self.live.get(int.from_bytes(payload[:4], "big"))
        if kind in (PUT, DELETE) and before is not None:
            if self.counted:
                self.journal.forget(before[0])
            self.live_size -= len(before[1]) + 17
        apply(self.live, lsn, kind, payload)
        if kind == PUT:
            self.live_size += len(payload) + 17
        return lsn

    def put(self, key: int, size: int) -> int:
        return self.write(PUT, key.to_bytes(4, "big") + key.to_bytes(2, "big", signed=False) * size)

    def delete(self, key: int) -> int:
        return self.write(DELETE, key.to_bytes(4, "big"))

    def compact(self, steps: int = 1_000_000) -> None:
        """As the node does: some steps, then a flush."""
        while steps > 0 and self.journal.wants_compaction():
            self.journal.compact_step(self.rig.schedule.now)
            steps -= 1
        self.rig.flush()

    # --- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, and check: all that was durable, no more than was written, and exactly so."""
        confirmed = self.rig.durable[-1] if self.rig.durable else 0
        replay = self.rig.start(self)
        if self.counted:
            self.journal.plain_kind = PUT
            self.journal.passing_kinds = bytes([DELETE, COUNTER])
        last = self.journal.last
        assert confirmed <= last <= len(self.written), "a confirmed record is gone"
        del self.written[last:]
        expected: dict[int, tuple[int, bytes]] = {}
        for index, (kind, payload) in enumerate(self.written):
            apply(expected, index + 1, kind, payload)
        found: dict[int, tuple[int, bytes]] = {}
        for lsn, kind, payload in replay.records:
            apply(found, lsn, kind, payload)
        assert found == expected, "what was recovered is not what was written"
        self.live = found
        self.live_size = sum(len(payload) + 17 for _, payload in found.values())

    def crash(self) -> None:
        durable = self.rig.durable[-1:]
        self.rig.disk.crash()
        # `start` begins with what this life confirmed, or the one before it.
        self.rig.durable = durable or self.rig.durable

    def work(self, draw: random.Random, turns: int, keys: int, size_max: int) -> None:
        """Random turns: puts, deletes, compaction, and as many steps of the disk."""
        for _ in range(turns):
            for _ in range(draw.randint(0, 6)):
                key = draw.randrange(keys)
                if key in self.live and draw.random() < 0.7:
                    self.delete(key)
                else:
                    self.put(key, draw.randint(0, size_max))
            self.rig.flush()
            if draw.random() < 0.5:
                self.compact(draw.randint(1, 3))
            for _ in range(draw.randint(0, 3)):
                self.rig.schedule.step()
