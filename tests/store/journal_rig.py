"""A journal on a virtual disk, driven by hand: time passes only when a test says so."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from atalanta.kernel.ports import Timers, Trace
from atalanta.sim.world.disk import SimDisk
from atalanta.store.block import BLOCK_HEAD_SIZE, encode_block_head
from atalanta.store.config import JournalConfig
from atalanta.store.journal import Journal
from atalanta.store.ports import LiveRecordsPort
from atalanta.store.recovery_report import RecoveryReport
from atalanta.store.segment import SEGMENT_HEAD_SIZE

JOURNAL_ID = bytes(range(16))
FIRST = "journal-00000000000000000001.log"
SECOND = "journal-00000000000000000002.log"


def config(segment_size_bytes: int = 4096, **settings: int) -> JournalConfig:
    """Small segments, and compaction as soon as two of them are in use."""
    settings.setdefault("compact_min_segments", 2)
    settings.setdefault("compact_percentage", 50)
    return JournalConfig(JOURNAL_ID, segment_size_bytes=segment_size_bytes, **settings)


def encode_block(seal: bytes, first: int, count: int, records: bytes, epoch: int = 0) -> bytes:
    """The whole block, as it lies in a file."""
    return encode_block_head(seal, first, count, records, epoch) + records


class Schedule:
    """Virtual time for one disk."""

    def __init__(self) -> None:
        self.now = 0
        self._order = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []

    def at(self, delay_ns: int, call: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._heap, (self.now + delay_ns, self._order, call))

    def due(self) -> int:
        """The time of the next call; far away without any."""
        return self._heap[0][0] if self._heap else 1 << 62

    def step(self) -> bool:
        if not self._heap:
            return False
        self.now, _, call = heapq.heappop(self._heap)
        call()
        return True


class CollectingTrace(Trace):
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def count(self, name: str, n: int = 1) -> None:
        pass

    def event(self, name: str, fields: dict[str, object]) -> None:
        self.events.append((name, fields))


class Collector:
    """A replay that keeps everything."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int, bytes]] = []

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        self.records.append((lsn, kind, payload))

    def payloads(self) -> list[bytes]:
        return [payload for _, _, payload in self.records]


class RigTimers(Timers):
    """The timers that were set; none comes by itself."""

    def __init__(self) -> None:
        self.at: dict[str, int] = {}

    def set(self, key: str, at_ns: int) -> None:
        self.at[key] = at_ns


class Rig:
    """Owner of journals on one disk; `start` is a process start, `crash` a power cut."""

    def __init__(self, settings: JournalConfig | None = None, seed: int = 1) -> None:
        self.config = settings or config()
        self.schedule = Schedule()
        self.disk = SimDisk(self.schedule.at, random.Random(seed))
        self.trace = CollectingTrace()
        self.timers = RigTimers()
        self.durable: list[int] = []
        self.failures: list[str] = []
        self.journal: Journal
        self.report: RecoveryReport

    # --- the listener --------------------------------------------------------------------------------

    def on_durable(self, now: int, lsn: int) -> None:
        self.durable.append(lsn)

    def on_failed(self, now: int, why: str) -> None:
        self.failures.append(why)

    # --- life -------------------------------------------------------------------------------------

    def start(self, live_records: LiveRecordsPort | None = None) -> Collector:
        """A new journal on the disk, recovered; returns what was replayed."""
        replay = Collector()
        self.durable = []
        self.failures = []
        journal = Journal(self.disk, self.config, self.timers, self.trace)
        journal.listen(self, self.on_failed)
        self.disk.attach(
            lambda token: journal.on_committed(self.schedule.now, token),
            lambda why: journal.on_failed(self.schedule.now, why),
        )
        self.journal = journal
        self.report = journal.recover(replay, live_records)
        return replay

    def restart(self) -> Collector:
        self.disk.crash()
        return self.start()

    # --- work -------------------------------------------------------------------------------------

    def append(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.journal.append(1, payload)

    def flush(self) -> None:
        self.journal.flush(self.schedule.now)

    def settle(self) -> None:
        """Let the disk do everything it has to do."""
        while self.schedule.step():
            pass

    def commit(self, *payloads: bytes) -> None:
        """Append and make durable, in one block if it fits."""
        self.append(*payloads)
        self.flush()
        self.settle()

    def end_of_first_block(self) -> int:
        """Where the second block of the first segment begins, by the length in the header."""
        head = self.disk.read(FIRST, SEGMENT_HEAD_SIZE, BLOCK_HEAD_SIZE)
        return SEGMENT_HEAD_SIZE + BLOCK_HEAD_SIZE + int.from_bytes(head[4:8], "big")
