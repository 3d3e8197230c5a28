"""The Passwords port: hashes are computed on a thread, so the event loop does not wait.

OpenSSL releases the interpreter's lock during PBKDF2, so the event loop continues meanwhile.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from atalanta.cluster.inputs import NodeInputs
from atalanta.kernel.ports import Passwords
from atalanta.kernel.security.password import StoredPassword
from atalanta.runtime.driver import Driver

# Logins use at most one core.
THREADS: Final = 1


class ThreadPasswords(Passwords):
    """Verifies passwords on a thread. kernel/security/authentication.py limits the number of waiting logins."""

    def __init__(self, loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
        self._loop = loop
        self._driver = driver
        self._closed = False
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="atalanta-passwords")

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        """Implements Passwords.verify."""
        self._pool.submit(self._work, token, stored, password)

    def _work(self, token: int, stored: StoredPassword, password: str) -> None:
        ok = stored.verify(password)
        if not self._closed:
            self._loop.call_soon_threadsafe(self._driver.post, NodeInputs.on_verified, token, ok)

    def close(self) -> None:
        """Waits for the verification in progress and drops the others."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
