"""TCP connections with TLS: the node gets a connection's number after the handshake.

The TLS protocol (records, alerts) is processed in memory, between the socket and the node. So reads and writes
are still joined per event-loop iteration.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import cast

from atalanta.runtime.net.tcp import FULL_READ_BYTES, Connections, TcpConnection, address_text
from atalanta.runtime.net.tls_handshakes import Outcome, handshake_step, reason

RECORD_BYTES = 1 << 14  # maximum result of one TLS read
EARLY_BYTES_MAX = 1 << 20  # input limit while a handshake step is in progress


class SecureConnection(TcpConnection):
    """A TLS connection. Either `opened(number)` is called or `failed(why)`; the latter also if the peer
    disconnected."""

    def __init__(
        self,
        connections: Connections,
        opened: Callable[[int], None],
        failed: Callable[[str], None],
        context: ssl.SSLContext,
        timeout_s: float,
        server_name: str | None = None,
    ) -> None:
        super().__init__(connections, opened)
        self._failed = failed
        self._timeout_s = timeout_s
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_name is None, server_name
        )
        self._timer: asyncio.TimerHandle | None = None
        self._why = ""
        self._stepping = (
            False  # a handshake step runs on the thread: TLS and its buffers must not be used
        )
        self._early: list[bytes] = []  # input received meanwhile
        self._early_bytes = 0
        self.first = b""  # the peer's first byte
        self.subject = ""  # subject of the client's certificate, if it sent one

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the handshake, with a time limit. The first step only sends the hello."""
        self._transport = cast(asyncio.Transport, transport)
        limits = self._connections.limits
        self._transport.set_write_buffer_limits(limits.write_high_bytes, limits.write_low_bytes)
        self.peer = address_text(transport.get_extra_info("peername"))
        if self._timeout_s > 0:
            self._timer = self._connections.loop.call_later(self._timeout_s, self._too_slow)
        self._stepped(handshake_step(self._tls))

    def _too_slow(self) -> None:
        self._fail(f"the handshake took longer than {self._timeout_s:g} s")

    def _fail(self, why: str) -> None:
        """Sends the alert, if there is one, before the close."""
        self._why = self._why or why
        self._flush()
        self._transport.close()

    def _step(self) -> None:
        self._stepping = True
        self._connections.handshakes.step(
            self._tls, self._stepped, self._transport.is_closing
        )

    def _stepped(self, outcome: Outcome) -> None:
        """Continues with the input received meanwhile; after the last step it belongs to the node."""
        self._stepping = False
        if self._transport.is_closing():
            return
        self._flush()
        for data in self._early:
            self._incoming.write(data)
        came = bool(self._early)
        self._early.clear()
        self._early_bytes = 0
        if outcome is None:
            self._shaken()
        elif not isinstance(outcome, ssl.SSLWantReadError):
            self._fail(reason(outcome))
        elif came:
            self._step()

    def _shaken(self) -> None:
        try:
            self.subject = self._subject()
        except ValueError as error:
            self._fail(f"the certificate of the peer cannot be read: {error}")
            return
        if self._timer is not None:
            self._timer.cancel()
        self.number = self._connections.add(self)
        self._opened(self.number)
        self._receive()

    def _subject(self) -> str:
        """Returns the subject. ValueError for a certificate that OpenSSL accepted but that cannot be parsed."""
        if not self._tls.server_side:
            return ""
        certificate = self._tls.getpeercert(True)
        if certificate is None:
            return ""
        from atalanta.tls.subject import subject_of  # imported only for clients with certificates

        return subject_of(certificate)

    def asked_name(self) -> str | None:
        """Returns the server name (SNI) that the client asked for, recorded by tls/context.py."""
        name = getattr(self._tls, "asked_name", None)
        return name if isinstance(name, str) else None

    def data_received(self, data: bytes) -> None:
        """Decrypts records; their contents are one input of the node."""
        if self._transport.is_closing():
            return
        if self._stepping:
            self._early.append(data)
            self._early_bytes += len(data)
            if self._early_bytes > EARLY_BYTES_MAX:
                self._fail("too much data before the end of the handshake")
            return
        self._incoming.write(data)
        if self.number:
            self._receive()
        else:
            self.first = self.first or data[:1]
            self._step()

    def _receive(self) -> None:
        parts: list[bytes] = []
        over = ""
        while True:
            try:
                part = self._tls.read(RECORD_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                over = "closed by the peer"
                break
            except ssl.SSLError as error:
                over = f"TLS: {reason(error)}"
                break
            if not part:
                over = "closed by the peer"
                break
            parts.append(part)
        # The peer may have requested new keys.
        self._flush()
        if parts and not self.closing:
            self._driver.data(self.number, parts[0] if len(parts) == 1 else b"".join(parts))
            if len(parts) * RECORD_BYTES >= FULL_READ_BYTES:
                self._connections.full_read_done(self)
        if over:
            self.closing = self.closing or over
            self._transport.close()

    def _flush(self) -> None:
        if self._stepping:
            return  # the step on the thread writes its output there; sent when it is done
        if self._outgoing.pending and not self._transport.is_closing():
            self._transport.write(self._outgoing.read())

    def _send(self, unsent: Sequence[bytes]) -> bool:
        rest = memoryview(unsent[0] if len(unsent) == 1 else b"".join(unsent))
        try:
            while rest:
                rest = rest[self._tls.write(rest) :]
        except ssl.SSLError as error:
            self.closing = self.closing or f"TLS: {error}"
            self.abort()
            return False
        self._flush()
        return False

    def _send_close(self) -> None:
        """Sends close_notify, so that the peer can tell a close from a lost connection. Does not wait for the
        peer's."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # OpenSSL "wants to read" the peer's close_notify
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Reports the end once: to the node, or to the caller that waits for the handshake."""
        if self._timer is not None:
            self._timer.cancel()
        if self.number:
            super().connection_lost(exc)
        else:
            self._failed(self._why or (str(exc) if exc is not None else "closed by the peer"))
        # They may be methods of this object: without the circle it is freed now, with OpenSSL's memory.
        self._opened = self._failed = _ignore
        self._connections.handshakes.ended()


def _ignore(_: int | str) -> None:
    return None
