"""Page files: what was written is read back block by block, and damage is named."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.ports import PageError
from atalanta.sim.world.disk import SimDisk
from atalanta.store.pages import PageFiles, page_name, page_number

ID = bytes(range(16))
BLOCKS = [b"first" * 100, b"", b"third" * 5_000]


class Rig:
    """A disk whose jobs are done when `work` is called."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, object]] = []
        self.disk = SimDisk(lambda delay, call: self.waiting.append((delay, call)), random.Random(1))
        self.pages = PageFiles(self.disk, ID)

    def work(self) -> None:
        while self.waiting:
            call = self.waiting.pop(0)[1]
            assert callable(call)
            call()


def read_all(pages: PageFiles, number: int) -> list[bytes]:
    return [pages.read(number, block) for block in range(len(BLOCKS))]


def test_blocks_are_read_while_the_file_is_on_its_way_and_after() -> None:
    rig = Rig()
    size = rig.pages.write(7, BLOCKS)
    assert read_all(rig.pages, 7) == BLOCKS
    rig.work()
    rig.pages.settled(7)
    assert read_all(rig.pages, 7) == BLOCKS
    assert rig.disk.size(page_name(7)) == size
    later = PageFiles(rig.disk, ID)
    assert later.numbers() == [7]
    assert read_all(later, 7) == BLOCKS
    later.delete(7)
    rig.work()
    assert later.numbers() == []


@pytest.mark.parametrize("place", ["head", "table", "block", "end", "file", "beyond"])
def test_damage_is_named(place: str) -> None:
    rig = Rig()
    rig.pages.write(7, BLOCKS)
    rig.work()
    name = page_name(7)
    if place == "file":
        del rig.disk.files[name]
    elif place == "end":
        del rig.disk.files[name][-1:]
    elif place != "beyond":
        rig.disk.flip_bit(name, {"head": 2, "table": 40, "block": 400}[place])
    pages = PageFiles(rig.disk, ID)
    with pytest.raises(PageError, match=name):
        for block in range(len(BLOCKS) + 1):
            pages.read(7, block)


def test_another_nodes_page_is_refused() -> None:
    rig = Rig()
    rig.pages.write(7, BLOCKS)
    rig.work()
    with pytest.raises(PageError, match="another node"):
        PageFiles(rig.disk, bytes(16)).read(7, 0)


@pytest.mark.parametrize("name", ["page-7.page", "journal-1.log", "page-.page", "page-" + "x" * 20])
def test_other_names_are_no_pages(name: str) -> None:
    assert page_number(name) == 0
