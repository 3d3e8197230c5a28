"""Large bodies in files of the client, so that a message may be larger than the program's memory."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from atalanta.wire.core.client.errors import ClientError, MessageTooLarge
from atalanta.wire.core.client.large_message import BodySink

PIECE_BYTES: Final = 1 << 20


class LargeFile(BodySink):
    """An unnamed file. The operating system deletes it with its last file descriptor, even if the process crashes.

    A full disk fails this message alone: reading its body raises the error.
    """

    def __init__(self, folder: str, memory_bytes_max: int) -> None:
        self.size = 0
        self.memory_bytes_max = memory_bytes_max
        self._error: OSError | None = None
        self._file: BinaryIO | None = None
        try:
            self._file = tempfile.TemporaryFile(prefix="atalanta-", dir=folder)
        except OSError as error:
            self._error = error

    def write(self, piece: bytes) -> None:
        file = self._file
        if file is None:
            return
        try:
            file.write(piece)
        except OSError as error:
            self._error = error
            self._file = None
            file.close()
        else:
            self.size += len(piece)

    def read(self) -> bytes:
        """Returns the body. Raises ClientError if writing it failed, MessageTooLarge if it exceeds the memory limit."""
        if self.size > self.memory_bytes_max:
            raise MessageTooLarge(
                f"the body has {self.size} bytes, more than largeMessageMaxBytes={self.memory_bytes_max}: "
                "use save_to to write it to a file"
            )
        file = self._whole()
        return file.read()

    def save_to(self, path: Path, compressed: bool) -> int:
        """Writes the body like `write_to` into a new file. Raises OSError for that file."""
        self._whole()
        with path.open("wb") as out:
            return self.write_to(out, compressed)

    def write_to(self, out: BinaryIO, compressed: bool) -> int:
        """Copies the body, decompressed, in pieces, and returns the number of bytes. Raises ClientError."""
        file = self._whole()
        inflater = zlib.decompressobj() if compressed else None
        written = 0
        while piece := file.read(PIECE_BYTES):
            if inflater is None:
                written += out.write(piece)
                continue
            try:
                while piece:
                    written += out.write(inflater.decompress(piece, PIECE_BYTES))
                    piece = inflater.unconsumed_tail
            except zlib.error as error:
                raise ClientError(f"the compressed body cannot be read: {error}") from None
        if inflater is not None and not inflater.eof and self.size:
            raise ClientError("the compressed body cannot be read: it is truncated")
        return written

    def _whole(self) -> BinaryIO:
        file = self._file
        if file is None:
            raise ClientError(f"the large message could not be stored: {self._error}")
        try:
            file.flush()
            file.seek(0)
        except OSError as error:
            raise ClientError(f"the large message could not be stored: {error}") from error
        return file
