"""Logins with the client id of a client that waits for room: that one is asked for a sign of life first.

The end of a killed client may be behind bytes that it has sent and nobody reads. But its system refuses what the node
sends to it, and so the end is known at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.wire.login import LoginConnection

IDS_TIMER: Final = "wire.openwire.ids"
REFUSAL_NS: Final = 1_000_000_000  # as long as the refusal of a client's system may take


class HeldClientIds:
    """The logins that wait: time (ns) of their answer, client id and connection, the first first."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.waiting: list[tuple[int, str, LoginConnection]] = []

    def wait(self, now: int, client_id: str, login: LoginConnection) -> None:
        """Lets a login wait until the id is free, or its holder seems to live."""
        self.waiting.append((now + REFUSAL_NS, client_id, login))
        self._arm()

    def freed(self, now: int, client_id: str) -> None:
        """Lets the logins with the id of a closed connection go on."""
        if self.waiting:
            ready = [entry for entry in self.waiting if entry[1] == client_id]
            self.waiting = [entry for entry in self.waiting if entry[1] != client_id]
            for _, _, login in ready:
                login.routed(now, None)

    def on_timer(self, now: int) -> None:
        """Lets the logins go on whose time has come: an id that is still in use is refused."""
        ready = [entry for entry in self.waiting if entry[0] <= now]
        self.waiting = [entry for entry in self.waiting if entry[0] > now]
        for _, _, login in ready:
            login.routed(now, None)
        self._arm()

    def _arm(self) -> None:
        if self.waiting:
            self.timers.set(IDS_TIMER, self.waiting[0][0])
