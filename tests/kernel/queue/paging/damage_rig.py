"""Page files on a disk, which a test damages."""

from __future__ import annotations

from typing import cast

from atalanta.kernel.settings.repository import SettingValue
from atalanta.runtime.disk.memory_disk import MemoryDisk
from atalanta.store.pages import PageFiles, page_name
from tests.kernel.broker_rig import Bench, MemoryPages
from tests.kernel.queue.paging.paging_rig import SMALL, bench_with, send


def bench_on(disk: MemoryDisk, count: int = 200, values: dict[str, SettingValue] = SMALL) -> Bench:
    """Two queues with messages in page files on the disk."""
    bench = bench_with(values)
    bench.queue("other")
    bench.settle()
    restart(bench, disk)
    for address in ("orders", "other"):
        send(bench, range(count), address=address)
    return bench


def restart(bench: Bench, disk: MemoryDisk) -> None:
    bench.pages = cast(MemoryPages, PageFiles(disk, bytes(16)))
    bench.restart()


def memory_disk() -> MemoryDisk:
    return MemoryDisk(lambda *_: None, lambda _: None)


def pages_of(bench: Bench, queue: str) -> list[int]:
    """The numbers of the pages with messages of the queue, the oldest first."""
    wanted = bench.broker.queues[queue].id
    pages = bench.broker.paging.pages.values()
    return [page.number for page in pages if page.queue_id == wanted]


def flip(disk: MemoryDisk, number: int, offset: int) -> None:
    disk.repair(page_name(number), offset, bytes([disk.read(page_name(number), offset, 1)[0] ^ 1]))


def reports(bench: Bench) -> list[dict[str, object]]:
    return [fields for name, fields in bench.trace.events if name == "page_file_damaged"]
