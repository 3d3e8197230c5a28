"""The LargeFiles port in memory, for `persistence-enabled` false, with a limit on the total size."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.kernel.ports import LargeFiles


class MemoryLargeFiles(LargeFiles):
    """Large files in memory. Answers come in the next event-loop iteration. `limit_bytes` < 0: no limit."""

    def __init__(
        self,
        limit_bytes: int,
        call_soon: Callable[..., object],
        written: Callable[[int, int], None],
        synced: Callable[[int], None],
        failed: Callable[[int, str], None],
        read_back: Callable[[int, bytes], None],
    ) -> None:
        self.limit_bytes = limit_bytes
        self.bytes = 0
        self._call_soon = call_soon
        self._written = written
        self._synced = synced
        self._failed = failed
        self._read_back = read_back
        self._files: dict[int, bytearray] = {}
        self._given_up: dict[int, bool] = {}

    def close(self) -> None:
        """Drops all files."""
        self._files.clear()

    def files(self) -> dict[int, int]:
        """Implements LargeFiles.files."""
        return {number: len(data) for number, data in self._files.items()}

    def create(self, file: int, will_sync: bool) -> None:
        """Implements LargeFiles.create."""
        self._files[file] = bytearray()

    def append(self, file: int, data: bytes) -> None:
        """Implements LargeFiles.append."""
        if file in self._given_up:
            return
        if 0 <= self.limit_bytes < self.bytes + len(data):
            self._given_up[file] = True
            why = f"large messages may take {self.limit_bytes} bytes of memory (global-max-size)"
            self._call_soon(self._failed, file, why)
            return
        self.bytes += len(data)
        self._files[file] += data
        self._call_soon(self._written, file, len(data))

    def sync(self, file: int) -> None:
        """Implements LargeFiles.sync."""
        if file not in self._given_up:
            self._call_soon(self._synced, file)

    def read(self, file: int, offset: int, size: int, token: int) -> None:
        """Implements LargeFiles.read."""
        data = self._files.get(file, bytearray())[offset : offset + size]
        self._call_soon(self._read_back, token, bytes(data))

    def delete(self, file: int) -> None:
        """Implements LargeFiles.delete."""
        self._given_up.pop(file, None)
        data = self._files.pop(file, None)
        if data is not None:
            self.bytes -= len(data)
