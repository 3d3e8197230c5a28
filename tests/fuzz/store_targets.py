"""Decoders of what lies on the disk: journal files, the records in them, page files."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.kernel.broker.recovery import Recovery
from atalanta.kernel.journal.records import BATCH, VALUE, encode_value
from atalanta.kernel.ports import PageError
from atalanta.kernel.queue.paging.page import decode_block, decode_page
from atalanta.kernel.registry import diverts
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.management.pauses import Pauses
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.sim.world.disk import SimDisk
from atalanta.store.block import BLOCK_HEAD_SIZE
from atalanta.store.errors import JournalDamaged, JournalForeign
from atalanta.store.pages import PageFiles, page_name
from atalanta.store.recovery import read_back
from atalanta.store.segment import Segment, segment_name
from tests.fuzz.mutator import FrameMutator, Mutator
from tests.fuzz.target import KIB, Target
from tests.kernel.broker_rig import Bench
from tests.store.blocks import encode_record
from tests.store.journal_rig import JOURNAL_ID, Collector, Rig, config, encode_block
from tests.wire.core.server.random_client import Chaos

SEGMENT_BYTES = 4096
PAGE = 7


def chaos_records() -> list[tuple[int, bytes]]:
    """Returns what a broker wrote while its clients did all they can."""
    found: list[tuple[int, bytes]] = []
    for seed in range(6):
        chaos = Chaos(seed)
        for _ in range(300):
            client = chaos.client()
            client.send(chaos.packet())
            chaos.server.turn()
            if chaos.random.random() < 0.2:
                chaos.server.settle()
        found += [(kind, payload) for _, kind, payload in chaos.server.journal.records]
    return [record for record in found if len(record[1]) < KIB]


def as_frames(records: list[tuple[int, bytes]]) -> list[bytes]:
    """i32 length · i8 kind · 8 bytes of no meaning · payload: what FrameMutator knows how to change."""
    made = []
    for kind, payload in records:
        made.append((len(payload) + 9).to_bytes(4, "big") + bytes([kind]) + bytes(8) + payload)
    return made


class RecordTarget(Target):
    """Records, each with its length and kind, replayed into a broker that then comes to rest.

    Records that contradict each other have passed their checksums: what they make need not be sound, only bounded.
    """

    name = "records"
    refusals = (DecodeError,)
    base_bytes = 2 << 20
    bytes_per_byte = 512

    def __init__(self) -> None:
        self.frames = as_frames(chaos_records())

    def mutator(self) -> Mutator:
        return FrameMutator(self.size_max, 1, self.frames)

    def seeds(self) -> list[bytes]:
        frames = self.frames
        made = [b"\x00" + b"".join(frames[at : at + 12]) for at in range(0, len(frames), 40)]
        divert = DivertConfig("d", "a", "b", headers={"k": "v"})
        values = [encode_value(diverts.KEY_PREFIX + "d", diverts.encode(divert))]
        frames = frames + as_frames([(VALUE, value) for value in values])
        kinds: dict[int, bytes] = {frame[4]: frame for frame in frames}
        nested = b""
        for _ in range(20):
            nested = (1).to_bytes(4, "big") + bytes([BATCH]) + len(nested).to_bytes(4, "big") + nested
        return [*made, *(b"\x00" + frame for frame in kinds.values()), b"\x00" + as_frames([(BATCH, nested)])[0]]

    def run(self, data: bytes) -> None:
        bench = Bench(paging=True)
        recovery = Recovery(bench.broker)
        at = 1
        lsn = 0
        while at + 13 <= len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if end < at + 13 or end > len(data):
                break
            lsn += 1
            recovery.on_record(lsn, data[at + 4], data[at + 13 : end])
            at = end
        bench.journal.last = bench.journal.durable = lsn
        recovery.finish(bench.now)
        bench.broker.scheduled.running = True
        bench.broker.diverts.deploy()
        broker = bench.broker
        Pauses(broker.values, broker.dispatches).restore(broker.queues, broker.addresses)
        bench.settle()


class JournalTarget(Target):
    """Two journal files: what is read back is a beginning of what was written, or the damage is named."""

    name = "journal"
    refusals = (JournalDamaged, JournalForeign)
    base_bytes = 1 << 20
    size_max = 2 * SEGMENT_BYTES + 64

    def seeds(self) -> list[bytes]:
        rig = Rig(config(SEGMENT_BYTES))
        rig.start()
        for size in (1, 40, 900, 5, 1200, 100, 800, 700, 300):
            rig.append(bytes([size & 0xFF]) * size)
            rig.journal.flush(rig.schedule.now)
            while rig.schedule.step():
                pass
        files = b"".join(bytes(rig.disk.files[name]) for name in rig.disk.names()[:2])
        return [files, files[:SEGMENT_BYTES], b""]

    def mutator(self) -> Mutator:
        seal = Segment(JOURNAL_ID, 1, SEGMENT_BYTES, False).seal
        block = encode_block(seal, 3, 1, encode_record(1, b"x" * 40))
        wrong = encode_block(seal, 1, 2, encode_record(1, b"y"))
        long = encode_block(seal, 1, 1, b"\x7f\xff\xff\xff\x01")
        return Mutator(self.size_max, (block, wrong, long, b"ATBK", bytes(500), block[:BLOCK_HEAD_SIZE]))

    def run(self, data: bytes) -> None:
        disk = SimDisk(no_calls, random.Random(1))
        for number in (1, 2):
            piece = data[(number - 1) * SEGMENT_BYTES : number * SEGMENT_BYTES]
            if piece:
                disk.files[segment_name(number)] = bytearray(piece)
        before = {name: bytes(file) for name, file in disk.files.items()}
        try:
            replay = Collector()
            read_back(disk, config(SEGMENT_BYTES), replay)
        except (JournalDamaged, JournalForeign):
            assert {name: bytes(file) for name, file in disk.files.items()} == before
            raise
        again = Collector()
        read_back(disk, config(SEGMENT_BYTES), again)
        assert again.records == replay.records


class PageTarget(Target):
    """u8 what · a page file, a block of one, or the record of one."""

    name = "pages"
    refusals = (PageError, DecodeError)
    base_bytes = 1 << 20

    def seeds(self) -> list[bytes]:
        calls: list[Callable[[], None]] = []
        disk = SimDisk(lambda _, call: calls.append(call), random.Random(1))
        PageFiles(disk, JOURNAL_ID).write(PAGE, [b"first" * 10, b"", b"third" * 100])
        while calls:
            calls.pop(0)()
        page = b"\x00" + bytes(disk.files[page_name(PAGE)])
        return [page, *self._of_a_broker()]

    def _of_a_broker(self) -> list[bytes]:
        """Blocks and records that paging wrote."""
        bench = Bench(paging=True)
        bench.settings.add(
            "#", {"address_full_policy": "PAGE", "max_size_bytes": 1000, "page_size_bytes": 2000}
        )
        bench.queue("q")
        session = bench.session()
        for _ in range(30):
            session.send(bench.now, bench.message("q", b"x" * 200), 0)
            bench.settle()
        assert bench.pages is not None
        blocks = [b"\x01" + block for blocks in bench.pages.files.values() for block in blocks]
        records = [b"\x02" + payload for _, kind, payload in bench.journal.records if kind == 19]
        assert blocks and records
        return blocks[:2] + records[:2]

    def run(self, data: bytes) -> None:
        what = data[0] % 3 if data else 0
        if what == 1:
            decode_block(data[1:])
        elif what == 2:
            decode_page(Reader(data[1:]))
        else:
            disk = SimDisk(no_calls, random.Random(1))
            disk.files[page_name(PAGE)] = bytearray(data[1:])
            pages = PageFiles(disk, JOURNAL_ID)
            for block in range(5):
                pages.read(PAGE, block)


def no_calls(delay_ns: int, call: Callable[[], None]) -> None:
    raise AssertionError("nothing is written while a journal is read")
