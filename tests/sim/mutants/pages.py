"""Messages in page files."""

from __future__ import annotations

from atalanta.kernel.ports import Disk
from atalanta.kernel.queue.paging import paging
from atalanta.kernel.queue.paging.page import Page, encode_page
from atalanta.store.pages import PageFiles
from tests.sim.mutants.patching import Patch


class LateDisk(Disk):
    """Keeps what should be created."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, int, bytes]] = []

    def create(self, name: str, size: int, head: bytes) -> None:
        self.kept.append((name, size, head))


def page_named_before_its_file(patch: Patch) -> None:
    """The record says that messages lie in a file that is written after it."""
    write = PageFiles.write
    late: dict[int, LateDisk] = {}

    def hasty(self: PageFiles, number: int, blocks: list[bytes]) -> int:
        disk = self.disk
        late[number] = LateDisk()
        self.disk = late[number]
        size = write(self, number, blocks)
        self.disk = disk
        return size

    def at_last(self: PageFiles, number: int) -> None:
        for name, size, head in late.pop(number).kept:
            self.disk.create(name, size, head)

    patch.setattr(PageFiles, "write", hasty)
    patch.setattr(PageFiles, "settled", at_last)


def page_forgets_which_messages_it_replaces(patch: Patch) -> None:
    def forgetful(page: Page, message_ids: list[int]) -> bytes:
        return encode_page(page, [])

    patch.setattr(paging, "encode_page", forgetful)
