"""The Disk port in memory, for `persistence-enabled` false: files exist as long as the node.

The journal still runs and is compacted, so its size in memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from atalanta.kernel.ports import Disk


class MemoryDisk(Disk):
    """Files in memory. Commits are answered in the next event-loop iteration."""

    def __init__(self, call_soon: Callable[..., object], committed: Callable[[int], None]) -> None:
        self._call_soon = call_soon
        self._committed = committed
        self._files: dict[str, bytearray] = {}
        self._open_jobs = 0
        self.busy_since = 0.0  # as of FileDisk: no job is ever under way

    def idle(self) -> bool:
        """Returns whether every commit was answered."""
        return self._open_jobs == 0

    def close(self) -> None:
        """Drops all files."""
        self._files.clear()

    def names(self) -> list[str]:
        """Implements Disk.names."""
        return sorted(self._files)

    def size(self, name: str) -> int:
        """Implements Disk.size."""
        return len(self._file(name))

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Implements Disk.read."""
        return bytes(self._file(name)[offset : offset + size])

    def repair(self, name: str, offset: int, data: bytes) -> None:
        """Implements Disk.repair."""
        self._file(name)[offset : offset + len(data)] = data

    def create(self, name: str, size: int, head: bytes) -> None:
        """Implements Disk.create; the zeros are added when they are overwritten."""
        self._files[name] = bytearray(head[:size])

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        """Implements Disk.commit."""
        file = self._file(name)
        if len(file) < offset:
            file.extend(bytes(offset - len(file)))
        file[offset : offset + len(data) + len(more)] = data + more
        self._open_jobs += 1
        self._call_soon(self._answer, token)

    def delete(self, name: str) -> None:
        """Implements Disk.delete."""
        self._files.pop(name, None)

    def set_aside(self, name: str, spare_name: str) -> None:
        """Implements Disk.set_aside."""
        if name in self._files:
            self._files[spare_name] = self._files.pop(name)

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        """Implements Disk.reuse."""
        file = self._files.pop(spare_name)
        file[: len(head)] = head
        self._files[name] = file

    def _answer(self, token: int) -> None:
        self._open_jobs -= 1
        self._committed(token)

    def _file(self, name: str) -> bytearray:
        file = self._files.get(name)
        if file is None:
            raise FileNotFoundError(f"{name}: no such file in memory")
        return file
