"""The output of a STOMP connection, and what holds its input or its deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from atalanta.wire.client_output import DELIVERED_BYTES_MAX, ClientOutput
from atalanta.wire.stomp.frame import V10, encoded_frame
from atalanta.wire.web_socket import WebSocket, framed

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeStream
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.heart_beats import Beat
    from atalanta.wire.server import WireServer
    from atalanta.wire.stomp.frame import Frame

ERROR_CHARACTERS_MAX: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class StompOutput(ClientOutput):
    """A STOMP connection as its session uses it.

    While `stream` sends a large message, `in_frame` from its first byte on, other frames are in `later`. No frame is
    processed once `end_reason` is set; with `wants_close` the connection closes as soon as no frame is interrupted.
    """

    def __init__(
        self, host: WireServer, conn: int, remote: str, now: int, acceptor: AcceptorConfig | None
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.version: int = V10
        self.processed: Frame | None = None
        self.stream: LargeStream | None = None
        self.in_frame: bool = False
        self.later: list[bytes] = []
        self.end_reason: str = ""
        self.wants_close: bool = False
        self.closing: bool = False
        self.heart_beat: Beat | None = None
        self.web_socket: WebSocket | None = None

    def holds_deliveries(self) -> bool:
        return self.stream is not None or self.end_reason != ""

    # -- frames out -----------------------------------------------------------------------------
    def writer(self) -> BytesWriter:
        """Returns the buffer that is written at the end of the batch of inputs."""
        self.flush_later()
        return self.out

    def send_frame(self, command: str, headers: list[tuple[str, str]]) -> None:
        """Sends an answer, a frame without a body; the connection ends without it."""
        frame = self.answer_frame(command, headers, b"", self.version)
        if frame:
            self.send_bytes(frame)

    def answer_frame(self, command: str, headers: list[tuple[str, str]], body: bytes, version: int) -> bytes:
        """Returns the frame of an answer. b"": it cannot be encoded, and the connection ends."""
        try:
            return encoded_frame(command, headers, body, version)
        except Exception as error:  # nothing was written, whatever it is
            self.end_unanswered(command, error)
            return b""

    def send_bytes(self, frame: bytes) -> None:
        """Sends a frame, behind a large message that is on its way."""
        if self.stream is not None:
            self.later.append(frame)
        else:
            self.writer().write(frame)

    def write(self, now: int, data: bytes) -> None:
        super().write(now, data if self.web_socket is None else framed(data))
        if self.heart_beat is not None:
            self.heart_beat.last_written = now

    def flush(self, now: int) -> None:
        self.write_out(now)
        if self.stream is not None:
            self.stream.pump()

    # -- errors and the end ---------------------------------------------------------------------
    def refuse(self, text: str, receipt: str | None) -> None:
        """Sends ERROR and closes the connection."""
        if not self.gone and not self.end_reason:
            self.send_error(text, receipt)
            self.end(text)

    def send_error(self, text: str, receipt: str | None) -> None:
        """Sends ERROR, unless it would interrupt a frame."""
        if self.in_frame:
            return
        text = text[:ERROR_CHARACTERS_MAX]
        headers = [("message", text), ("content-type", "text/plain")]
        if not self.authenticated:
            headers.append(("version", "1.0,1.1,1.2"))
        if receipt is not None:
            headers.append(("receipt-id", receipt))
        body = text.encode("utf-8", "replace").replace(b"\x00", b" ")
        headers.append(("content-length", str(len(body))))
        self.writer().write(self.answer_frame("ERROR", headers, body, self.version))

    def leave(self, why: str) -> None:
        """Records that no further frame is processed; `close_soon` follows."""
        self.end_reason = self.end_reason or why
        self.show_blocked()

    def close_soon(self) -> None:
        """Closes the connection after this batch of inputs, or after a large message that is on its way."""
        self.wants_close = True
        if not self.closing and not self.in_frame:
            self.closing = True
            self.host.closing.append((self.conn, self.end_reason))

    def end(self, why: str) -> None:
        """Processes no further frame, and closes the connection."""
        self.leave(why)
        self.close_soon()

    def break_off(self, why: str) -> None:
        """Closes the connection in the middle of a frame: nothing else can be sent."""
        self.later.clear()
        self.leave(why)
        self.closing = True
        self.host.closing.append((self.conn, why))

    # -- large messages -------------------------------------------------------------------------
    def begin_stream(self, stream: LargeStream) -> None:
        """Begins a large message: nothing else is sent until its end."""
        self.stream = stream
        self.show_blocked()

    def begin_frame(self) -> None:
        """Records that the frame of the large message has begun. A heart-beat would be a part of it."""
        self.in_frame = True
        if self.heart_beat is not None:
            self.heart_beat.held = True

    def stream_waits(self) -> bool:
        """Returns True while the large message must wait: the peer does not read, or enough is written."""
        return self.blocked or len(self.out) > DELIVERED_BYTES_MAX

    def end_stream(self) -> None:
        """Ends a large message, and sends what waited for that."""
        self.stream = None
        self.in_frame = False
        if self.gone:
            return
        if self.heart_beat is not None:
            self.heart_beat.held = False
        for frame in self.later:
            self.writer().write(frame)
        self.later.clear()
        if self.wants_close:
            self.close_soon()
        self.show_blocked()

    # -- slow reader ----------------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        super().on_blocked(now, blocked)
        if not blocked and self.stream is not None:
            self.stream.pump()
