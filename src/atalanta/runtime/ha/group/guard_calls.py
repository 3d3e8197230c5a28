"""The guard port of a passive member: a watch whose proof is an input."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.ha.guard_port import GuardPort
from atalanta.runtime.ha.guard.frames import epoch_secret
from atalanta.runtime.ha.guard.watch import GuardWatch


class GuardCalls(GuardPort):
    """Watches the guard of the active node. `ended` gets the epoch whose process has provably ended.

    `key` is that of the cluster password (voter_connection.password_key): the secret of an epoch follows from it.
    """

    def __init__(self, key: bytes, ended: Callable[[int], None]) -> None:
        self._key = key
        self._watch = GuardWatch(ended)

    def watch(self, host: str, port: int, salt: bytes, epoch: int) -> None:
        """Implements GuardPort.watch."""
        self._watch.connect(host, port, epoch_secret(self._key, epoch, salt), epoch)

    def close(self) -> None:
        """Implements GuardPort.close."""
        self._watch.close()
