"""Damaged page files and log-view readers: what a group has not acknowledged is a lost range."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.paging.page import Page
from atalanta.kernel.settings.repository import SettingValue
from atalanta.store.pages import PageFiles, page_name
from tests.kernel.broker_rig import SECOND, Bench, RecordingEndpoint
from tests.kernel.memory.large_rig import LargeBench, fill
from tests.kernel.queue.paging.damage_rig import bench_on, flip, memory_disk, pages_of, restart
from tests.kernel.queue.paging.paging_rig import SMALL, Taker, send

HOUR_MS = 3_600_000
BLOCKS: dict[str, SettingValue] = {"max_size_bytes": 600_000, "page_size_bytes": 300_000}  # three in a file


def lease(bench: Bench, retention_ms: int = 0) -> int:
    views = bench.broker.log_views
    answers = RecordingEndpoint()
    epoch = views.lease(bench.now, "orders", "g", "me", 60 * SECOND, 0, answers, 1).epoch
    if retention_ms:
        views.retain("orders", "", "g", epoch, retention_ms, 0, -1, answers, 2)
    bench.settle()
    return epoch


def acknowledge(bench: Bench, epoch: int, end: int) -> None:
    bench.broker.log_views.ack_through("orders", "", "g", epoch, end, RecordingEndpoint(), 3)
    bench.settle()


def rows(bench: Bench, start: int, end: int) -> list[int]:
    """The sequences that a reader gets."""
    found: list[int] = []
    while start < end:
        chunk = bench.broker.log_views.read("orders", "", start, end, 0, None)
        found += [reference.sequence for reference in chunk.references]
        start = chunk.next
    return found


def lost(bench: Bench, start: int = 0, end: int = 10_000, queue: str = "orders") -> list[int]:
    """The sequences that a reader is told of; the reason is always the same."""
    ranges = bench.broker.log_views.lost_ranges(queue, "", start, end)
    assert all(why == "the page file is damaged" for _, _, why in ranges)
    return [sequence for low, high, _ in ranges for sequence in range(low, high + 1)]


def read_anew(bench: Bench) -> None:
    """Makes the node read the files again, instead of what it has in memory."""
    files = bench.broker.paging.files
    assert isinstance(files, PageFiles)
    files._tables.clear()
    bench.broker.paging.reader.forget()


@pytest.mark.parametrize("where", ["head", "block", "missing"])
@pytest.mark.parametrize("acknowledged", [0, 50, 100, 119])
def test_a_restart_tells_the_group_of_everything_that_it_had_not_acknowledged(where: str, acknowledged: int) -> None:
    disk = memory_disk()
    bench = bench_on(disk)
    number = pages_of(bench, "orders")[1]
    page = bench.broker.paging.pages[number]
    assert (page.first, page.last) == (81, 120)
    acknowledge(bench, lease(bench), acknowledged)
    taken_away = list(range(max(page.first, acknowledged + 1), page.last + 1))
    if where == "missing":
        disk.delete(page_name(number))
    else:
        flip(disk, number, 20 if where == "head" else disk.size(page_name(number)) - 1)
    for _ in range(3):
        restart(bench, disk)
        bench.settle()
        wanted = [each for each in range(acknowledged + 1, 201) if each not in taken_away]
        assert rows(bench, acknowledged, 200) == wanted
        assert lost(bench, acknowledged) == lost(bench) == taken_away
        assert lost(bench, page.last) == [] == lost(bench, queue="other")
        invariants.validate(bench.broker)
        bench.compact(bench.journal.last)


@pytest.mark.parametrize("values", [SMALL, BLOCKS])
def test_a_reader_that_finds_the_damage_is_told_at_once(values: dict[str, SettingValue]) -> None:
    disk = memory_disk()
    count = 200 if values is SMALL else 2_400
    bench = bench_on(disk, count, values)
    lease(bench)
    number = pages_of(bench, "orders")[0]
    page = bench.broker.paging.pages[number]
    block = len(page.starts) - 1
    taken_away = list(range(page.firsts[block], page.last + 1))
    assert (len(page.starts) > 1) == (values is BLOCKS)
    flip(disk, number, disk.size(page_name(number)) - 1)
    read_anew(bench)
    got = rows(bench, 0, count)
    assert lost(bench) == taken_away
    assert got == [each for each in range(1, count + 1) if each not in taken_away]
    bench.settle()
    restart(bench, disk)
    assert (rows(bench, 0, count), lost(bench)) == (got, taken_away)
    invariants.validate(bench.broker)


def test_messages_that_a_consumer_took_before_are_not_lost() -> None:
    disk = memory_disk()
    bench = bench_on(disk)
    taker = Taker(bench)
    taker.take(60)
    taker.session.close(bench.now, False)
    bench.settle()
    lease(bench)
    for number in pages_of(bench, "orders"):
        flip(disk, number, 20)
    read_anew(bench)
    got = rows(bench, 0, 200)
    assert got and lost(bench) and sorted(got + lost(bench)) == list(range(len(taker.taken) + 1, 201))


def test_without_a_group_nothing_is_listed() -> None:
    disk = memory_disk()
    bench = bench_on(disk)
    flip(disk, pages_of(bench, "orders")[1], 20)
    restart(bench, disk)
    bench.settle()
    lease(bench)
    assert lost(bench) == []


def test_retained_messages_in_the_block_are_lost_for_a_replay_only() -> None:
    disk = memory_disk()
    bench = bench_on(disk)
    epoch = lease(bench, HOUR_MS)
    number = pages_of(bench, "orders")[1]
    page = bench.broker.paging.pages[number]
    middle = page.first + 10
    acknowledge(bench, epoch, middle)
    flip(disk, number, 20)
    restart(bench, disk)
    bench.settle()
    assert lost(bench, middle) == list(range(middle + 1, page.last + 1))
    assert lost(bench) == list(range(page.first, page.last + 1))
    assert {*rows(bench, 0, 200), *lost(bench)} == set(range(1, 201))
    invariants.validate(bench.broker)


def test_acknowledgements_of_other_pages_end_no_damaged_message() -> None:
    """A delayed message has an old id, so that the ids of its page span those of all pages before it."""
    disk = memory_disk()
    bench = bench_on(disk, 0)
    session = bench.session()
    at_ms = bench.now // 1_000_000 + 60_000
    delayed = bench.message("orders", bytes(404), _AMQ_SCHED_DELIVERY=at_ms)
    session.send(bench.now, delayed, 1)
    bench.settle()
    send(bench, range(150))
    bench.now += 120 * SECOND
    bench.broker.on_timer(bench.now, "kernel.scheduled")
    bench.settle()
    send(bench, range(150, 200))
    number = next(each for each in pages_of(bench, "orders") if bench.broker.paging.pages[each].id_min == delayed.id)
    page = bench.broker.paging.pages[number]
    taker = Taker(bench)
    taker.take(page.first - 20)  # a part of the page before, too
    taker.session.close(bench.now, False)
    bench.settle()
    lease(bench)
    restart(bench, disk)
    assert rows(bench, 0, 201) == list(range(len(taker.taken) + 1, 202))
    flip(disk, number, 20)
    restart(bench, disk)
    bench.settle()
    assert set(range(page.first, page.last + 1)) <= set(lost(bench))
    assert {*rows(bench, 0, 201), *lost(bench)} >= set(range(page.first, 202))
    invariants.validate(bench.broker)


def test_a_large_message_in_a_damaged_block_is_lost_whatever_its_own_file() -> None:
    bench = LargeBench({"max_size_bytes": 20_000, "page_size_bytes": 8_000})
    lease(bench)
    fill(bench, 40)
    page = min(bench.broker.paging.pages.values(), key=lambda each: each.first)
    bench.folder.damage(sorted(bench.folder.contents)[page.first], 10)
    assert bench.pages is not None
    bench.pages.files[page.number] = [b"broken" for _ in bench.pages.files[page.number]]
    for _ in range(2):
        bench.power_cut()
        assert lost(bench) == list(range(page.first, page.last + 1))
        assert rows(bench, 0, 40) == [each for each in range(1, 41) if each not in lost(bench)]


@pytest.mark.parametrize("seed", range(40))
def test_the_ranges_of_a_block_hold_every_unread_message(seed: int) -> None:
    chance = random.Random(seed)
    dense = seed % 2 == 0
    page = Page(1, 2)
    sequences = list(range(100, 160)) if dense else sorted(chance.sample(range(100, 400), 60))
    page.entries, page.first, page.last = 60, sequences[0], sequences[-1]
    page.starts = [0, *sorted(chance.sample(range(1, 60), 3))]
    page.firsts = [sequences[index] for index in page.starts]
    page.read = chance.choice([0, chance.randrange(60)])
    for index in chance.sample(range(60), chance.randrange(60)):
        page.finish(index)
    floor = chance.choice([0, chance.randrange(90, 200)])
    for block in range(4):
        indexes = range(max(page.read, page.starts[block]), page.end_of(block))
        wanted = {sequences[index] for index in indexes if not page.is_finished(index)}
        wanted = {each for each in wanted if each > floor}
        ranges = page.unread_ranges(block, floor)
        found = [each for low, high in ranges for each in range(low, high + 1)]
        assert len(found) == len(set(found)) and min(found, default=floor + 1) > floor
        assert wanted <= set(found) <= set(range(page.firsts[block], page.last_of(block) + 1))
        assert not dense or found == sorted(wanted)


@pytest.mark.parametrize("seed", range(24))
def test_a_reader_gets_every_message_or_is_told_of_it(seed: int) -> None:
    """Random damage, restarts, compactions and acknowledgements, with a retention in every third play."""
    chance = random.Random(seed)
    disk = memory_disk()
    bench = bench_on(disk, 0, BLOCKS if seed % 4 == 0 else SMALL)
    epoch = lease(bench, HOUR_MS if seed % 3 == 0 else 0)
    sent = acknowledged = 0
    for step in range(25):
        count = chance.choice([0, 20, 60])
        send(bench, range(sent, sent + count))
        sent += count
        deed = chance.choice(["flip", "flip", "delete", "acknowledge", "restart", "compact", "read"])
        pages = pages_of(bench, "orders")
        number = chance.choice(pages) if pages else 0
        if deed == "flip" and number and page_name(number) in disk.names():
            flip(disk, number, chance.randrange(disk.size(page_name(number))))
        elif deed == "delete" and number and page_name(number) in disk.names():
            disk.delete(page_name(number))
        elif deed == "acknowledge":
            rows(bench, acknowledged, sent)
            acknowledged = chance.randint(acknowledged, sent)
            acknowledge(bench, epoch, acknowledged)
        elif deed == "compact":
            bench.compact(bench.journal.last)
        elif deed == "restart":
            restart(bench, disk)
        read_anew(bench)
        got = rows(bench, acknowledged, sent)
        told = lost(bench, acknowledged, sent)
        assert sorted(got + told) == list(range(acknowledged + 1, sent + 1)), (step, deed)
        bench.settle()
        invariants.validate(bench.broker)
    released = bench.broker.queues["orders"].log.released_through()
    again = {*rows(bench, released, sent), *lost(bench, released, sent)}
    assert again == set(range(released + 1, sent + 1))
