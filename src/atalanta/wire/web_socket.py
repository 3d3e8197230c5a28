"""The broker's end of a WebSocket (RFC 6455), without extensions: what it carries is a stream of bytes.

Frames may cut the stream anywhere, in both directions. Payloads are handed on as they come, so no frame is too long.
The output is binary, as that of Artemis.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError

CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10
FIN: Final = 0x80
MASKED: Final = 0x80
CONTROL_BYTES_MAX: Final = 125
SHORT_LENGTH_MAX: Final = 125
LENGTH_16: Final = 126
LENGTH_64: Final = 127
MASK_BYTES: Final = 4
FIELD: Final = "WebSocket"


def framed(data: bytes, opcode: int = BINARY) -> bytes:
    """Returns the data as one frame of the broker."""
    size = len(data)
    if size <= SHORT_LENGTH_MAX:
        head = bytes((FIN | opcode, size))
    elif size < 1 << 16:
        head = bytes((FIN | opcode, LENGTH_16)) + size.to_bytes(2, "big")
    else:
        head = bytes((FIN | opcode, LENGTH_64)) + size.to_bytes(8, "big")
    return head + data


def unmasked(data: bytes, mask: bytes) -> bytes:
    """Returns the data without its mask, whose first byte is that of the first byte here."""
    size = len(data)
    key = (mask * (size // MASK_BYTES + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class WebSocket:
    """A WebSocket after its handshake. `answers` are frames to write: pongs, and the answer to a close.

    `left` counts the bytes of the payload to come, `mask` begins with the byte of the first of them.
    """

    def __init__(self) -> None:
        self.answers: bytes = b""
        self.closed: bool = False
        self._data: bytes = b""
        self._opcode: int = -1  # of the frame whose payload is coming; -1: a frame head comes
        self._left: int = 0
        self._mask: bytes = b""
        self._control: bytes = b""
        self._in_message: bool = False

    def receive(self, data: bytes) -> bytes:
        """Returns the bytes that these bytes of the peer carry. DecodeError for what is no frame of a client."""
        data = self._data + data
        carried: list[bytes] = []
        at = 0
        while not self.closed:
            if self._opcode < 0:
                size = self._head(data, at)
                if size == 0:
                    break
                at += size
            take = min(self._left, len(data) - at)
            piece = unmasked(data[at : at + take], self._mask)
            at += take
            self._left -= take
            turn = take % MASK_BYTES
            self._mask = self._mask[turn:] + self._mask[:turn]
            if self._opcode < CLOSE:
                carried.append(piece)
            else:
                self._control += piece
            if self._left > 0:
                break
            self._end_of_frame()
        self._data = b"" if self.closed else data[at:]
        return b"".join(carried)

    def _head(self, data: bytes, at: int) -> int:
        """Reads the head of a frame: section 5.2. Returns its size, 0 if bytes are missing."""
        if len(data) - at < 2:
            return 0
        first, second = data[at], data[at + 1]
        opcode = first & 0x0F
        short = second & 0x7F
        if first & 0x70 or opcode not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise DecodeError(FIELD, at, f"a frame with the first byte {first:#x}")
        if not second & MASKED:
            raise DecodeError(FIELD, at, "a frame of a client without a mask")
        if opcode >= CLOSE and (short > CONTROL_BYTES_MAX or not first & FIN):
            raise DecodeError(FIELD, at, "a control frame that is long or fragmented")
        if opcode < CLOSE and (opcode == CONTINUATION) != self._in_message:
            raise DecodeError(FIELD, at, "a message within another, or a continuation of none")
        size_bytes = {LENGTH_16: 2, LENGTH_64: 8}.get(short, 0)
        size = 2 + size_bytes + MASK_BYTES
        if len(data) - at < size:
            return 0
        self._left = int.from_bytes(data[at + 2 : at + 2 + size_bytes], "big") if size_bytes else short
        if self._left >= 1 << 63:
            raise DecodeError(FIELD, at, "a negative length")
        self._mask = data[at + size - MASK_BYTES : at + size]
        self._opcode = opcode
        if opcode < CLOSE:
            self._in_message = not first & FIN
        return size

    def _end_of_frame(self) -> None:
        opcode, payload = self._opcode, self._control
        self._opcode = -1
        self._control = b""
        if opcode == PING:
            self.answers += framed(payload, PONG)
        elif opcode == CLOSE:
            self.answers += framed(payload[:2], CLOSE)
            self.closed = True

    def take_answers(self) -> bytes:
        """Returns the frames to write, and forgets them."""
        answers = self.answers
        self.answers = b""
        return answers
