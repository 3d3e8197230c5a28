"""The bodies of large messages in a data folder, read-only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from atalanta.client import ClientError, MessageTooLarge, ReceivedMessage
from atalanta.client.message import inflate
from atalanta.kernel.memory.large_body import next_crc
from atalanta.kernel.ports import LargeFiles
from atalanta.kernel.queue.reference import Reference
from atalanta.message.message import COMPRESSED
from atalanta.runtime.disk.large_files import SUFFIX, sizes_of_files

BODY_BYTES_MAX: Final = 180 << 20  # in base64 it is less than a line may have (cli/messages/source.py)


class ReadOnlyLargeFiles(LargeFiles):
    """The existing files. What a recovery would create or delete is left as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> dict[int, int]:
        return sizes_of_files(self.folder) if self.folder.is_dir() else {}

    def create(self, file: int, will_sync: bool) -> None:
        return None

    def append(self, file: int, data: bytes) -> None:
        return None

    def sync(self, file: int) -> None:
        return None

    def rename(self, file: int, number: int) -> None:
        return None

    def delete(self, file: int) -> None:
        return None


class FolderMessage(ReceivedMessage):
    """A message of a data folder, as clients see it; `delivery_count` is the number of deliveries so far."""

    __slots__ = ("_folder", "_large")

    def __init__(self, reference: Reference, folder: Path) -> None:
        super().__init__(reference.message, reference.queue.name, delivery_count=reference.delivery_count)
        self._large = reference.message.large
        self._folder = folder

    @property
    def body(self) -> bytes:
        """Returns the body. Raises MessageTooLarge, or ClientError for a file that is not as it was written."""
        if self._large is None:
            return super().body
        if self._body is None:
            body = self.stored_body
            self._body = inflate(body, BODY_BYTES_MAX) if self._message.has_property(COMPRESSED) else body
        return self._body

    @property
    def stored_body(self) -> bytes:
        """Returns the body as its sender gave it to the broker. Raises as `body` does."""
        large = self._large
        if large is None:
            return super().stored_body
        if large.size > BODY_BYTES_MAX:
            raise MessageTooLarge(f"its body has {large.size:,} bytes, more than the {BODY_BYTES_MAX:,} of a line")
        path = self._folder / f"{large.file}{SUFFIX}"
        body = path.read_bytes()[: large.size]
        if len(body) != large.size or next_crc(0, body) != large.crc:
            raise ClientError(f"{path}: the body is damaged")
        return body

    @property
    def body_bytes(self) -> int:
        return super().body_bytes if self._large is None else self._large.size
