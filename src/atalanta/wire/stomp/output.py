"""The output of a STOMP connection, and what holds its input or its deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from atalanta.wire.login import LoginConnection
from atalanta.wire.stomp.frame import V10, encoded_frame
from atalanta.wire.web_socket import WebSocket, framed

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeStream
    from atalanta.wire.core.config import AcceptorConfig
    from atalanta.wire.host import Host
    from atalanta.wire.stomp.heart_beat import Beat

# Limit of deliveries in one batch of inputs; other messages stay in their queue.
DELIVERED_BYTES_MAX: Final = 1 << 20
ERROR_CHARACTERS_MAX: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class StompOutput(LoginConnection):
    """A STOMP connection as its session uses it.

    While `stream` sends a large message, `in_frame` from its first byte on, other frames are in `later`. No frame is
    processed once `end_reason` is set; with `wants_close` the connection closes as soon as no frame is interrupted.
    """

    def __init__(
        self, host: Host, conn: int, remote: str, now: int, acceptor: AcceptorConfig | None
    ) -> None:
        super().__init__(host, conn, remote, now, acceptor)
        self.version: int = V10
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False
        self.blocked: bool = False  # the peer reads too slowly
        self.full: bool = False  # no more deliveries in this batch of inputs
        self.stream: LargeStream | None = None
        self.in_frame: bool = False
        self.later: list[bytes] = []
        self.end_reason: str = ""
        self.wants_close: bool = False
        self.closing: bool = False
        self.heart_beat: Beat | None = None
        self.web_socket: WebSocket | None = None

    def block_deliveries(self, blocked: bool) -> None:
        """Stops the deliveries of the session, or lets them go on."""
        raise NotImplementedError

    def show_blocked(self) -> None:
        """Stops the deliveries while anything is in their way."""
        if not self.gone:
            waits = self.blocked or self.full or self.stream is not None
            self.block_deliveries(waits or self.end_reason != "")

    # -- frames out -----------------------------------------------------------------------------
    def writer(self) -> BytesWriter:
        """Returns the buffer that is written at the end of the batch of inputs."""
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)
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

    def sent_delivery(self) -> None:
        """Stops the deliveries of this batch of inputs if they are enough."""
        if len(self.out) > DELIVERED_BYTES_MAX and not self.full:
            self.full = True
            self.show_blocked()

    def flush(self, now: int) -> None:
        self.dirty = False
        if len(self.out):
            data = self.out.getvalue()
            self.out.truncate(0)
            self.host.wire.write(self.conn, data if self.web_socket is None else framed(data))
            if self.heart_beat is not None:
                self.heart_beat.written(now)
        if self.full:
            self.full = False
            self.show_blocked()
            self.host.broker.wake(now)
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
            self.heart_beat.hold(True)

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
            self.heart_beat.hold(False)
        for frame in self.later:
            self.writer().write(frame)
        self.later.clear()
        if self.wants_close:
            self.close_soon()
        self.show_blocked()

    # -- slow reader ----------------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        """Stops deliveries until the peer has read the output; its input is still processed."""
        self.blocked = blocked
        if blocked and not self.authenticated:
            self.host.close_unread(now, self)
        self.show_blocked()
        if not blocked and self.stream is not None:
            self.stream.pump()
