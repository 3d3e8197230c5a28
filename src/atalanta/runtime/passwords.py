"""The Passwords port: hashes are computed on threads of their own, which the loop does not wait for.

PBKDF2 in OpenSSL gives the interpreter's lock away while it works, so the loop goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from atalanta.kernel.ports import Passwords
from atalanta.kernel.security.password import StoredPassword
from atalanta.runtime.driver import Driver

# Logins may take one core at most, whoever asks for them.
THREADS: Final = 1


class ThreadPasswords(Passwords):
    """How many may wait is the node's business (kernel/security/authentication.py)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
        self._loop = loop
        self._driver = driver
        self._closed = False
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="atalanta-passwords")

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        """Passwords.verify"""
        self._pool.submit(self._work, token, stored, password)

    def _work(self, token: int, stored: StoredPassword, password: str) -> None:
        ok = stored.verify(password)
        if not self._closed:
            self._loop.call_soon_threadsafe(self._driver.verified, token, ok)

    def close(self) -> None:
        """Waits for the one under way, and drops the others."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)
