"""TLS handshakes on a thread: each takes about a millisecond of CPU, and thousands of clients may reconnect at
once.

OpenSSL releases the interpreter's lock meanwhile. There is one thread, so that unknown clients use at most one
core.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from atalanta.runtime.process.allocator import trim_allocator

# A minute after so many TLS connections have ended, their memory is returned to the system. OpenSSL takes some 50 KB
# for each, in small pieces that the C library keeps.
TRIM_CONNECTIONS = 1_000
TRIM_DELAY_S = 60.0
# The result of a step: None after the handshake, else OpenSSL's error.
Outcome = ssl.SSLError | None


def reason(error: ssl.SSLError) -> str:
    """Returns OpenSSL's text. Where the peer refuses the certificate of this end, the remedy is added.

    The names of the alerts are OpenSSL's, as SSLV3_ALERT_BAD_CERTIFICATE or TLSV13_ALERT_CERTIFICATE_REQUIRED.
    """
    name = error.reason or ""
    if "ALERT" in name and ("CERTIFICATE" in name or "UNKNOWN_CA" in name):
        return f"{error}: the peer does not accept the certificate of this end, or asks for one: see keyStorePath"
    return str(error)


def handshake_step(tls: ssl.SSLObject) -> Outcome:
    """Continues the handshake with the input that has come.

    The error is returned without its traceback: that would refer to `tls` in a circle, and OpenSSL's memory would stay
    until the garbage collector runs, which is rare.
    """
    try:
        tls.do_handshake()
    except ssl.SSLError as error:
        return error.with_traceback(None)
    return None


class Handshakes:
    """Runs handshake steps; the thread starts with the first one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        self._ended = 0
        self._trim: asyncio.TimerHandle | None = None

    def ended(self) -> None:
        """Counts a TLS connection that has ended."""
        self._ended += 1
        if self._ended >= TRIM_CONNECTIONS and self._trim is None and not self._closed:
            self._trim = self._loop.call_later(TRIM_DELAY_S, self._trim_memory)

    def _trim_memory(self) -> None:
        self._trim = None
        self._ended = 0
        trim_allocator()

    def step(
        self, tls: ssl.SSLObject, done: Callable[[Outcome], None], gone: Callable[[], bool]
    ) -> None:
        """Continues the handshake of `tls` on the thread, then calls `done` in the loop.

        Until then no other code may use `tls` and its buffers. After `close` nothing happens: the connections
        are closed then. A step is skipped if `gone` tells, on the thread, that the peer has disconnected. So
        clients that connect and disconnect faster than this works do not pile up.
        """
        if self._closed:
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="atalanta-tls")
        self._pool.submit(self._work, tls, done, gone)

    def _work(
        self, tls: ssl.SSLObject, done: Callable[[Outcome], None], gone: Callable[[], bool]
    ) -> None:
        if gone():
            return
        outcome = handshake_step(tls)
        if not self._closed:
            self._loop.call_soon_threadsafe(done, outcome)

    def close(self) -> None:
        """Waits for the step in progress and drops the others."""
        self._closed = True
        if self._trim is not None:
            self._trim.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
