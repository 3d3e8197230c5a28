"""TLS handshakes beside the loop: their arithmetic takes about a millisecond each, and thousands may come back at once.

OpenSSL gives the interpreter's lock away while it works. One thread: strangers may take one core at most.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# What a step found: None when the handshake is over, else what OpenSSL says of it.
Outcome = ssl.SSLError | None


class Handshakes:
    """The thread begins with the first handshake."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False

    def step(
        self, tls: ssl.SSLObject, done: Callable[[Outcome], None], gone: Callable[[], bool]
    ) -> None:
        """Go on with the handshake of `tls`; `done` is called in the loop. Nobody else may touch `tls` and its buffers
        until then. Nothing happens once closed: the connections are gone then. Nor when `gone` says, on the thread,
        that the peer is: strangers who come and go faster than this works must not pile up here."""
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
        outcome: Outcome = None
        try:
            tls.do_handshake()
        except ssl.SSLError as error:
            outcome = error
        if not self._closed:
            self._loop.call_soon_threadsafe(done, outcome)

    def close(self) -> None:
        """Waits for the step under way, and drops the others."""
        self._closed = True
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
