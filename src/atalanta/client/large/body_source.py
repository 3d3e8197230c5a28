"""The source of a streamed body: bytes, a file or an iterable; synchronous or asynchronous. It yields pieces."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final

from atalanta.wire.core.client.errors import ClientError
from atalanta.wire.core.large_chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from atalanta.client.shells.shell import ClientShell

_END: Final = object()


class BodySource:
    """A source whose `next_piece` returns CHUNK_BYTES at a time, a shorter last piece, then b"".

    Blocking calls (`read`, `next`) run in a thread, so that the connection stays alive. Raises TypeError if `stream` is
    none of these types or yields something other than bytes, ClientError if its size differs from the announced one.
    """

    def __init__(self, shell: ClientShell, stream: Any, size: int | None) -> None:
        self._shell = shell
        self._size = size
        self._given: int = 0
        self._rest = memoryview(b"")
        self._view: memoryview | None = None
        self._read: Any = None
        self._items: Iterator[Any] | None = None
        self._async_items: AsyncIterator[Any] | None = None
        self._stream = stream
        self._start: int | None = None
        if isinstance(stream, (bytes, bytearray, memoryview)):
            self._view = memoryview(stream).cast("B")
        elif callable(getattr(stream, "read", None)):
            self._read = stream.read
            self._start = _position(stream)
        elif hasattr(stream, "__aiter__"):
            if not shell.suspends:
                raise TypeError("stream: an asynchronous iterable needs the asyncio client")
            self._async_items = stream.__aiter__()
        elif hasattr(stream, "__iter__") and not isinstance(stream, str):
            self._items = iter(stream)
        else:
            raise TypeError(
                f"stream: a {type(stream).__name__} is neither bytes nor a binary file nor an iterable of bytes"
            )

    def rewind(self) -> bool:
        """Returns to the beginning, for a second send. Returns False if that is impossible."""
        if self._view is None:
            if self._start is None:
                return False
            try:
                self._stream.seek(self._start)
            except (OSError, ValueError):
                return False
        self._given = 0
        return True

    async def next_piece(self) -> bytes:
        """Returns the next piece; b"" is the end."""
        if self._view is not None:
            piece = bytes(self._view[self._given : self._given + self._wanted(CHUNK_BYTES)])
        elif self._read is not None:
            piece = await self._from_file()
        else:
            piece = await self._from_items()
        self._given += len(piece)
        self._check_size(len(piece) < CHUNK_BYTES)
        return piece

    def _wanted(self, most: int) -> int:
        return most if self._size is None else min(most, self._size - self._given)

    async def _from_file(self) -> bytes:
        """Reads from a file or pipe. A read may return fewer bytes; only an empty read is the end."""
        parts: list[bytes] = []
        wanted = self._wanted(CHUNK_BYTES)
        while wanted > 0:
            part = _checked(await self._called(self._read, wanted))
            if not part:
                break
            if len(part) > wanted:
                raise ClientError(f"stream: read({wanted}) gave {len(part)} bytes")
            parts.append(part)
            wanted -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _from_items(self) -> bytes:
        """Reads items of any size: small ones are joined, large ones split."""
        piece = bytearray()
        while len(piece) < CHUNK_BYTES:
            if not self._rest:
                item = await self._next_item()
                if item is _END:
                    break
                self._rest = memoryview(_checked(item))
            part = self._rest[: CHUNK_BYTES - len(piece)]
            piece += part
            self._rest = self._rest[len(part) :]
        return bytes(piece)

    async def _next_item(self) -> Any:
        if self._async_items is not None:
            return await anext(self._async_items, _END)
        return await self._called(next, self._items, _END)

    async def _called(self, function: Any, *arguments: Any) -> Any:
        if inspect.iscoroutinefunction(function):
            if not self._shell.suspends:
                raise TypeError("stream: an asynchronous read() needs the asyncio client")
            return await function(*arguments)
        return await self._shell.beside(lambda: function(*arguments))

    def _check_size(self, at_end: bool) -> None:
        size = self._size
        if size is None:
            return
        if self._given > size or (self._view is not None and len(self._view) > size):
            raise ClientError(f"stream: has more than the announced {size} bytes")
        if at_end and self._given < size:
            raise ClientError(f"stream: ended after {self._given} of {size} bytes")


def _checked(part: Any) -> bytes:
    if isinstance(part, bytes):
        return part
    if isinstance(part, (bytearray, memoryview)):
        return bytes(part)
    hint = "; open the file with mode 'rb'" if isinstance(part, str) else ""
    raise TypeError(f"stream: gave a {type(part).__name__} where bytes were expected{hint}")


def _position(stream: Any) -> int | None:
    """Returns the current offset of a seekable file, None for pipes and the like."""
    seekable = getattr(stream, "seekable", None)
    if seekable is None or inspect.iscoroutinefunction(seekable) or not seekable():
        return None
    position = stream.tell()
    return position if isinstance(position, int) else None
