"""TCP connections with TLS inside: the node gets a number for one when the handshake is over.

The protocol's own work (records, alerts) happens between the socket's bytes and the node's, in
memory, so that reads and writes stay joined per turn as they are without TLS.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import cast

from atalanta.runtime.net.tcp import Connection, Connections, address_text
from atalanta.runtime.net.tls_handshakes import Outcome

RECORD_BYTES = 1 << 14  # what one read of TLS gives at most
EARLY_BYTES_MAX = 1 << 20  # that a peer may send while a step of the handshake is under way


class SecureConnection(Connection):
    """Either `opened(number)` is called, or `failed(why)`; the latter also when the peer went away."""

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
        self._stepping = False  # the handshake goes on beside the loop: TLS and its buffers are not ours
        self._early: list[bytes] = []  # what came meanwhile
        self._early_bytes = 0
        self.subject = ""  # of the client's certificate, if it showed one

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake begins; its time is limited. The first step is small: all there is to do is to say hello."""
        self._transport = cast(asyncio.Transport, transport)
        limits = self._connections.limits
        self._transport.set_write_buffer_limits(limits.write_high_bytes, limits.write_low_bytes)
        self.peer = address_text(transport.get_extra_info("peername"))
        if self._timeout_s > 0:
            self._timer = self._connections.loop.call_later(self._timeout_s, self._too_slow)
        outcome: Outcome = None
        try:
            self._tls.do_handshake()
        except ssl.SSLError as error:
            outcome = error
        self._stepped(outcome)

    def _too_slow(self) -> None:
        self._fail(f"the handshake took longer than {self._timeout_s:g} s")

    def _fail(self, why: str) -> None:
        """The alert, if there is one, goes out before the end."""
        self._why = self._why or why
        self._carry_out()
        self._transport.close()

    def _step(self) -> None:
        self._stepping = True
        self._connections.handshakes.step(
            self._tls, self._stepped, self._transport.is_closing
        )

    def _stepped(self, outcome: Outcome) -> None:
        """Goes on with what came meanwhile, which after the last step is the node's."""
        self._stepping = False
        if self._transport.is_closing():
            return
        self._carry_out()
        for data in self._early:
            self._incoming.write(data)
        came = bool(self._early)
        self._early.clear()
        self._early_bytes = 0
        if outcome is None:
            self._shaken()
        elif not isinstance(outcome, ssl.SSLWantReadError):
            self._fail(str(outcome))
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
        """ValueError for a certificate that OpenSSL took and cannot be read nevertheless."""
        if not self._tls.server_side:
            return ""
        certificate = self._tls.getpeercert(True)
        if certificate is None:
            return ""
        from atalanta.tls.subject import subject_of  # imported where clients have certificates

        return subject_of(certificate)

    def asked_name(self) -> str | None:
        """The server's name that the client asked for, of an accepted connection (tls/context.py notes it)."""
        name = getattr(self._tls, "asked_name", None)
        return name if isinstance(name, str) else None

    def data_received(self, data: bytes) -> None:
        """Records in; what they hold is one input of the node."""
        if self._transport.is_closing():
            return
        if self._stepping:
            self._early.append(data)
            self._early_bytes += len(data)
            if self._early_bytes > EARLY_BYTES_MAX:
                self._fail("too much before the handshake was over")
            return
        self._incoming.write(data)
        if self.number:
            self._receive()
        else:
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
                over = f"TLS: {error}"
                break
            if not part:
                over = "closed by the peer"
                break
            parts.append(part)
        # Keys may have been exchanged anew.
        self._carry_out()
        if parts and not self.closing:
            self._driver.data(self.number, parts[0] if len(parts) == 1 else b"".join(parts))
        if over:
            self.closing = self.closing or over
            self._transport.close()

    def _carry_out(self) -> None:
        if self._stepping:
            return  # a step puts its own words there; they go out when it is done
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
        self._carry_out()
        return False

    def _say_goodbye(self) -> None:
        """A TLS peer can tell this end from a cut wire; its own good-bye is not waited for."""
        try:
            self._tls.unwrap()
        except ssl.SSLError:
            pass  # it "wants to read" that good-bye
        self._carry_out()

    def connection_lost(self, exc: Exception | None) -> None:
        """Told once: to the node, or to whoever waits for the handshake."""
        if self._timer is not None:
            self._timer.cancel()
        if self.number:
            super().connection_lost(exc)
        else:
            self._failed(self._why or (str(exc) if exc is not None else "closed by the peer"))
