"""The watch for a server of priorityURIs, while the client is connected to another one (Classic's priorityBackup)."""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref
from collections.abc import Sequence
from typing import Final

from atalanta.client.options import ClientOptions, Server

PERIOD_S: Final = 5.0
PERIOD_LEAST_S: Final = 0.1


class PriorityWatch:
    """A thread that tries to reach the servers, until one answers (`found`) or `stop`.

    It sends nothing. `owner` is the connection that asks: the thread ends with it.
    """

    def __init__(self, options: ClientOptions, owner: object) -> None:
        self.found: Server | None = None
        self._over = threading.Event()
        self._timeout_s = options.connection_timeout_ms / 1_000
        self._period_s = min(PERIOD_S, max(PERIOD_LEAST_S, options.max_retry_interval_ms / 1_000))
        weakref.finalize(owner, self._over.set)
        self._thread = threading.Thread(
            target=self._watch, args=(options.priority, options.local_end), name="atalanta-priority", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch."""
        self._over.set()

    def _watch(self, servers: Sequence[Server], local_end: tuple[str, int] | None) -> None:
        while not self._over.wait(self._period_s):
            for server in servers:
                with contextlib.suppress(OSError, UnicodeError):
                    socket.create_connection((server.host, server.port), self._timeout_s, local_end).close()
                    self.found = server
                    return
