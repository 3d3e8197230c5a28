"""Clients that have come back after a lost connection: they get no message until what they repeat has arrived.

The failover transport repeats the commands that have no answer, behind those that make its consumers again
(FailoverTransport.restoreTransport). A repeated acknowledgement is of a message that the former connection delivered.
If this one had delivered it too, the acknowledgement would count, and its program would still get the second copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.sessions.session import Session

RETURNED_TIMER: Final = "wire.openwire.returned"
REPEATS_NS: Final = 100_000_000  # in which a client repeats its commands


class ReturnedClients:
    """The sessions that have not started yet, each with the time (ns) at which it does; the first first."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.waiting: list[tuple[int, Session]] = []

    def add(self, now: int, session: Session) -> None:
        """Starts the session of a client's new connection a little later."""
        self.waiting.append((now + REPEATS_NS, session))
        self._arm()

    def on_timer(self, now: int) -> None:
        """Starts the sessions whose time has come, unless they have ended."""
        ready = [session for at, session in self.waiting if at <= now]
        self.waiting = [entry for entry in self.waiting if entry[0] > now]
        self._arm()
        for session in ready:
            if not session.closed:
                session.start()

    def _arm(self) -> None:
        if self.waiting:
            self.timers.set(RETURNED_TIMER, self.waiting[0][0])
