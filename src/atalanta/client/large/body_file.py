"""Large bodies in files of the client's own, so that a message may be larger than the program's memory."""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from atalanta.wire.core.client.body_sink import BodySink
from atalanta.wire.core.client.errors import ClientError, MessageTooLarge

PIECE_BYTES: Final = 1 << 20


class LargeFile(BodySink):
    """A file without a name: it goes with the last who knows it, whatever happens to the process.

    A disk that is full spoils this message alone: who asks for its body is told.
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
        """All of it. ClientError if it could not be written, MessageTooLarge if it should not be in memory."""
        if self.size > self.memory_bytes_max:
            raise MessageTooLarge(
                f"the body has {self.size} bytes, more than largeMessageMaxBytes={self.memory_bytes_max}: "
                "save_to writes it to a file"
            )
        file = self._whole()
        return file.read()

    def save_to(self, path: Path, compressed: bool) -> int:
        """As `write_to`, into a new file. OSError of that file."""
        self._whole()
        with path.open("wb") as out:
            return self.write_to(out, compressed)

    def write_to(self, out: BinaryIO, compressed: bool) -> int:
        """Copies it, unpacked, piece by piece; the bytes written. ClientError."""
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
            raise ClientError("the compressed body cannot be read: it ends too early")
        return written

    def _whole(self) -> BinaryIO:
        file = self._file
        if file is None:
            raise ClientError(f"the large message could not be kept: {self._error}")
        try:
            file.flush()
            file.seek(0)
        except OSError as error:
            raise ClientError(f"the large message could not be kept: {error}") from error
        return file
