"""The decoder of a client's frames. Bytes come in any pieces; each limit is checked before more is kept."""

from __future__ import annotations

from typing import Final

from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.frame import COMMANDS, V10, Frame, unescaped

# Before login a frame is the client's credentials, and has no body.
LOGIN_HEAD_BYTES_MAX: Final = 8 << 10
HEAD_BYTES_MAX: Final = 64 << 10
HEADERS_MAX: Final = 1_000
# Of a body in memory. A text takes twice as much in the broker.
BODY_BYTES_MAX: Final = 16 << 20
# Of what may stand behind the head of another frame than SEND: scripts write an empty line there.
IGNORED_BYTES_MAX: Final = 1_024
BLANKS: Final = b" \t\r\n"
LENGTH_DIGITS_MAX: Final = 15
NUL: Final = 0
LF: Final = 10
CR: Final = 13


class FrameDecoder:
    """The frames of one connection. `version` decides the escapes: 1.0 until the login.

    `classic`: what is wrong in a header or behind it is taken as ActiveMQ Classic takes it. `receipt`: of the frame
    that is being decoded.
    `data` from `position` on is not decoded yet. While the body of `frame` is incomplete, `pieces` are its beginning,
    and `missing` counts the bytes to come with the NUL behind them; -1: the body ends at the first NUL.
    """

    def __init__(self, classic: bool = False, body_bytes_max: int = BODY_BYTES_MAX) -> None:
        self.classic = classic
        self.body_bytes_max = body_bytes_max
        self.version: int = V10
        self.logged_in: bool = False
        self.data: bytes = b""
        self.position: int = 0
        self.searched: int = 0  # the head has no end before this offset
        self.crlf: bool = False  # the last head had CRLF line ends
        self.frame: Frame | None = None
        self.receipt: str | None = None
        self.pieces: list[bytes] = []
        self.piece_bytes: int = 0
        self.missing: int = -1

    def admit(self, version: int) -> None:
        """Records the login: larger frames may follow, in this version."""
        self.version = version
        self.logged_in = True

    def drop(self) -> None:
        """Frees what has arrived: the connection is closed, and may be in a circle that is collected late."""
        self._forget()
        self.pieces = []
        self.piece_bytes = 0

    def kept_bytes(self) -> int:
        """Returns the bytes of a frame that has arrived in part."""
        return len(self.data) - self.position + self.piece_bytes

    def begin(self, data: bytes) -> None:
        """Takes more bytes."""
        if self.position < len(self.data):
            self.searched -= self.position
            self.data = self.data[self.position :] + data
        else:
            self.searched = 0
            self.data = data
        self.position = 0

    def step(self) -> Frame | None:
        """Returns the next complete frame, None if bytes are missing. ProtocolError names what is wrong."""
        if self.frame is None:
            self._skip_line_ends()
            end = self._end_of_head()
            if end < 0:
                return None
            self.frame = self._head(self.data[self.position : end])
            self.position = end
        return self._body(self.frame)

    def _skip_line_ends(self) -> None:
        """Skips the line ends between frames, which clients also send as heart-beats."""
        data = self.data
        size = len(data)
        at = self.position
        while at < size and (data[at] == LF or (data[at] == CR and at + 1 < size and data[at + 1] == LF)):
            at += 1
        self.position = at
        self.searched = max(self.searched, at)

    # -- head -----------------------------------------------------------------------------------
    def _end_of_head(self) -> int:
        """Returns the offset behind the empty line that ends the head; -1: it has not come."""
        data = self.data
        start = max(self.position, self.searched - 2)
        head_bytes_max = HEAD_BYTES_MAX if self.logged_in else LOGIN_HEAD_BYTES_MAX
        limit = self.position + head_bytes_max
        usual, other = (b"\n\r\n", b"\n\n") if self.crlf else (b"\n\n", b"\n\r\n")
        found = data.find(usual, start, limit)
        end = found + len(usual)
        earlier = data.find(other, start, limit if found < 0 else found + 1)
        if earlier >= 0:
            self.crlf = not self.crlf
            found = earlier
            end = found + len(other)
        if found >= 0:
            return end
        if len(data) - self.position > head_bytes_max:
            raise ProtocolError(f"the command and headers of a frame have more than {head_bytes_max} bytes")
        self.searched = len(data)
        if self.position == len(data):
            self._forget()
        elif self.position:  # the frames before it are not held longer than needed
            self.data = data[self.position :]
            self.searched -= self.position
            self.position = 0
        return -1

    def _forget(self) -> None:
        """Drops bytes that are decoded: most connections are idle."""
        self.data = b""
        self.position = self.searched = 0

    def _head(self, head: bytes) -> Frame:
        self.receipt = None
        if head.count(b"\n") > HEADERS_MAX + 2:
            raise ProtocolError(f"a frame has more than {HEADERS_MAX} headers")
        first = head[: head.find(b"\n")]
        command = COMMANDS.get(first.removesuffix(b"\r"))
        if command is None:
            raise ProtocolError(f"{_shown(first)} is no command of a STOMP client")
        version = V10 if command == "CONNECT" or command == "STOMP" else self.version
        damaged = False
        try:
            text = head.decode()
        except UnicodeDecodeError:
            text = head.decode("utf-8", "surrogateescape")
            damaged = True
        returns = "\r" in text
        escapes = version != V10 and "\\" in text
        headers: dict[str, str] = {}
        for line in text.split("\n")[1:-2]:
            if damaged:
                _check_characters(command, line)
            if returns:
                line = line.removesuffix("\r")
            colon = line.find(":")
            if colon >= 0:
                name = line[:colon]
                value = line[colon + 1 :]
            elif self.classic:
                name = line
                value = ""
            else:
                raise ProtocolError(f"{command}: the header {line[:40]!r} has no colon")
            if version == V10:
                value = value.lstrip(" ")
            elif escapes:
                name = unescaped(name, version, self.classic)
                value = unescaped(value, version, self.classic)
            if name not in headers:
                headers[name] = value
                if name == "receipt":
                    self.receipt = value
        frame = Frame(command, headers)
        self.missing = self._length(frame)
        return frame

    def _length(self, frame: Frame) -> int:
        """Returns the bytes of the body and its NUL, -1 without a content-length."""
        if not frame.sized or (self.classic and frame.command != "SEND"):
            return -1
        text = frame.headers["content-length"].strip()
        if not (text.isascii() and text.isdigit()) or len(text) > LENGTH_DIGITS_MAX:
            raise ProtocolError(f"{frame.command}: the content-length is {text[:40]!r}")
        self._check_body(frame, int(text))
        return int(text) + 1

    # -- body -----------------------------------------------------------------------------------
    def _check_body(self, frame: Frame, size: int) -> None:
        if frame.command != "SEND":
            if size > IGNORED_BYTES_MAX:
                raise ProtocolError(f"{frame.command} has a body")
        elif size > self.body_bytes_max:
            raise ProtocolError(f"{frame.command}: a body has at most {self.body_bytes_max} bytes")

    def _body(self, frame: Frame) -> Frame | None:
        data = self.data
        start = self.position
        if self.missing < 0:
            end = data.find(b"\x00", start)
            self._check_body(frame, self.piece_bytes + (len(data) if end < 0 else end) - start)
        else:
            end = start + self.missing - 1
            if end < len(data):
                if data[end] != NUL:
                    raise ProtocolError(f"{frame.command}: no NUL behind the {self.piece_bytes + end - start} bytes"
                                        " of the body that the content-length names")
            else:
                end = -1
        if end < 0:
            piece = data[start:]
            if piece:
                self.pieces.append(piece)
                self.piece_bytes += len(piece)
                if self.missing >= 0:
                    self.missing -= len(piece)
            self._forget()
            return None
        body = data[start:end]
        if self.pieces:
            self.pieces.append(body)
            body = b"".join(self.pieces)
            self.pieces = []
            self.piece_bytes = 0
        if body and frame.command != "SEND":
            if not self.classic and body.strip(BLANKS):
                raise ProtocolError(f"{frame.command} has a body")
            body = b""
        frame.body = body
        self.receipt = None
        self.position = self.searched = end + 1
        self.frame = None
        return frame


def _check_characters(command: str, line: str) -> None:
    """ProtocolError for a header that is not UTF-8: `surrogateescape` has decoded it."""
    try:
        line.encode()
    except UnicodeEncodeError:
        received = line.encode("utf-8", "surrogateescape")
        raise ProtocolError(f"{command}: the header {_shown(received)} is not UTF-8") from None


def _shown(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "replace"))
