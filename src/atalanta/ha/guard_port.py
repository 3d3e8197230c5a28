"""The port of the guards: how a passive member watches that of the active node; a shell implements it."""

from __future__ import annotations


class GuardPort:
    """The watch on one guard at a time. Its only answer is an input of its own.

    `on_process_ended(now, epoch)`: the process that was active in this epoch has ended. Everything else proves
    nothing, and says nothing.
    """

    def watch(self, host: str, port: int, salt: bytes, epoch: int) -> None:
        """Watches the guard of the process that is active in `epoch`, instead of an earlier one."""
        raise NotImplementedError

    def close(self) -> None:
        """Watches no guard any more."""
        raise NotImplementedError
