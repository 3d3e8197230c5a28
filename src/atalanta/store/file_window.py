"""Sequential reading of one file in bounded memory."""

from __future__ import annotations

from atalanta.kernel.ports import Disk


class FileWindow:
    """Holds about `read_size` bytes of a file, or the size of the last request if that is larger."""

    def __init__(self, disk: Disk, name: str, read_size: int) -> None:
        self.name = name
        self.size: int = disk.size(name)
        self._disk = disk
        self._read_size = read_size
        self._start = 0
        self._data = b""

    def get(self, offset: int, size: int) -> bytes:
        """Returns `size` bytes from `offset` on, fewer only at the end of the file. Raises OSError."""
        begin = offset - self._start
        if begin < 0 or begin + size > len(self._data):
            self._data = self._disk.read(self.name, offset, max(size, self._read_size))
            self._start = offset
            begin = 0
        return self._data[begin : begin + size]
