"""Damaged page files: their queue loses the messages of the damaged blocks, by name; all else goes on."""

from __future__ import annotations

from typing import cast

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.memory.large_body import LargeBody
from atalanta.kernel.queue.paging.page import Page, decode_page, encode_page
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.store.pages import PageFiles, page_name
from tests.kernel.broker_rig import consume, endpoint
from tests.kernel.queue.paging.damage_rig import (
    bench_on,
    flip,
    memory_disk,
    pages_of,
    reports,
    restart,
)
from tests.kernel.queue.paging.paging_rig import Taker, held, numbers_of


@pytest.mark.parametrize("where", ["head", "block", "missing"])
@pytest.mark.parametrize("taken", [0, 75])
def test_a_restart_with_a_damaged_file_names_it_once_and_goes_on(where: str, taken: int) -> None:
    disk = memory_disk()
    bench = bench_on(disk)
    Taker(bench).take(taken)
    before = held(bench)
    number = pages_of(bench, "orders")[1]
    if where == "missing":
        disk.delete(page_name(number))
    else:
        flip(disk, number, 20 if where == "head" else disk.size(page_name(number)) - 1)
    restart(bench, disk)
    got = Taker(bench).take(200)
    (report,) = reports(bench)
    assert report["queue"] == "orders" and page_name(number) in str(report["why"])
    lost = [each for each in before if each not in got]
    assert report["messages"] == len(lost) > 0
    assert report["sequences"] == f"{min(lost) + 1}-{max(lost) + 1}"
    assert got == [each for each in before if each not in lost]
    invariants.validate(bench.broker)
    assert bench.broker.queues["orders"].message_count == 0
    restart(bench, disk)
    assert Taker(bench, "other").take(200) == list(range(200))
    assert len(reports(bench)) == 1
    invariants.validate(bench.broker)
    kept = [name for name in disk.names() if name.startswith(page_name(number))]
    assert kept == ([] if where == "missing" else [page_name(number) + ".damaged"])


def test_damage_found_while_running_ends_nothing() -> None:
    disk = memory_disk()
    bench = bench_on(disk)
    first, second = pages_of(bench, "orders")[:2]
    flip(disk, first, disk.size(page_name(first)) - 1)
    browser = bench.session()
    consume(browser, bench, "orders", browse=True)
    bench.settle()
    seen = numbers_of([body for _, _, body in endpoint(browser).delivered])
    flip(disk, second, 0)
    bench.broker.paging.files = bench.broker.paging.reader.files = PageFiles(disk, bytes(16))
    bench.broker.paging.reader._cache.clear()
    got = Taker(bench).take(200)
    assert len(reports(bench)) == 2
    assert 0 < len(seen) < 200 and set(got) < set(seen)
    assert len(got) + sum(cast(int, each["messages"]) for each in reports(bench)) == 200
    assert Taker(bench, "other").take(200) == list(range(200))
    invariants.validate(bench.broker)


def test_no_flipped_byte_of_a_page_file_keeps_a_node_from_starting() -> None:
    disk = memory_disk()
    bench = bench_on(disk, 130)
    Taker(bench).take(70)
    records = list(bench.journal.records)
    number = pages_of(bench, "orders")[0]
    expected = held(bench)
    files = {name: disk.read(name, 0, disk.size(name)) for name in disk.names()}
    for offset in range(0, disk.size(page_name(number)), 97):
        bench.journal.records = list(records)
        bench.trace.events.clear()
        flip(disk, number, offset)
        restart(bench, disk)
        got = held(bench)
        bench.settle()
        (report,) = reports(bench)
        assert len(got) >= len(expected) - cast(int, report["messages"]), offset
        assert set(got) < set(expected)
        invariants.validate(bench.broker)
        for name, data in files.items():
            disk.create(name, len(data), data)


@pytest.mark.parametrize(("bits", "large", "field"), [(6, [], "page.bits"), (0, [610], "page.large_index")])
def test_a_page_record_with_impossible_entries_is_refused(bits: int, large: list[int], field: str) -> None:
    """Found by the fuzz target `records`."""
    page = Page(1, 2)
    page.entries = 610
    page.finished = bytearray(bits)
    page.bodies = {index: LargeBody(3, None) for index in large}
    with pytest.raises(DecodeError, match=field):
        decode_page(Reader(encode_page(page, [])))
