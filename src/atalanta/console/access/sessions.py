"""The sessions of browsers. Each has the user's password, in this process' memory and nowhere else."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Final

IDLE_S: Final = 30 * 60.0
ABSOLUTE_S: Final = 8 * 3_600.0
SESSIONS_MAX: Final = 200
SESSIONS_OF_A_USER_MAX: Final = 20
TOKEN_BYTES: Final = 32


@dataclass(frozen=True)
class UserCredentials:
    """A user's name and password. The password is in no text that Python makes of it.

    `peer` is the address of the browser, for the nodes' lists of who did what.
    """

    user: str
    password: str = field(repr=False)
    peer: str = ""


class BrowserSession:
    """One log-in of one browser. Times are seconds of a monotonic clock."""

    def __init__(self, credentials: UserCredentials, peer: str, now_s: float) -> None:
        self.id = secrets.token_urlsafe(TOKEN_BYTES)
        # Every form that changes something has it.
        self.form_token = secrets.token_urlsafe(TOKEN_BYTES)
        self.credentials = credentials
        self.peer = peer
        self.created_s = now_s
        self.used_s = now_s

    @property
    def user(self) -> str:
        return self.credentials.user

    def is_over(self, now_s: float) -> bool:
        """Returns whether the session has expired: unused for IDLE_S, or older than ABSOLUTE_S."""
        return now_s - self.used_s >= IDLE_S or now_s - self.created_s >= ABSOLUTE_S

    def use(self, now_s: float) -> None:
        """Records that the session is used now."""
        self.used_s = now_s

    def owns_token(self, token: str) -> bool:
        """Returns whether a form was made for this session."""
        return secrets.compare_digest(self.form_token.encode(), token.encode("utf-8", "replace"))

    def __repr__(self) -> str:
        return f"BrowserSession(user={self.user!r})"


class BrowserSessions:
    """The open sessions by id."""

    def __init__(self) -> None:
        self._open: dict[str, BrowserSession] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(
        self, credentials: UserCredentials, peer: str, now_s: float
    ) -> tuple[BrowserSession, list[BrowserSession]]:
        """Opens a session under a new id. Returns it, and the sessions that end because there are too many.

        The one that was unused for the longest time ends: of the same user if that has many, so that a single user can
        hardly end the sessions of others.
        """
        ended: list[BrowserSession] = []
        own = [each for each in self._open.values() if each.user == credentials.user]
        if len(own) >= SESSIONS_OF_A_USER_MAX:
            ended.append(self._end_oldest(own))
        elif len(self._open) >= SESSIONS_MAX:
            ended.append(self._end_oldest(list(self._open.values())))
        session = BrowserSession(credentials, peer, now_s)
        self._open[session.id] = session
        return session, ended

    def find(self, session_id: str, now_s: float) -> BrowserSession | None:
        """Returns the session of a request, which counts as a use; None if there is none or it has expired."""
        session = self._open.get(session_id)
        if session is None or session.is_over(now_s):
            return None
        session.use(now_s)
        return session

    def end(self, session: BrowserSession) -> None:
        """Ends a session: its id and its tokens are worth nothing from now on."""
        self._open.pop(session.id, None)

    def end_expired(self, now_s: float) -> list[BrowserSession]:
        """Ends the sessions that have expired, and returns them."""
        over = [session for session in self._open.values() if session.is_over(now_s)]
        for session in over:
            self.end(session)
        return over

    def end_all(self) -> list[BrowserSession]:
        """Ends all sessions, and returns them."""
        every, self._open = list(self._open.values()), {}
        return every

    def _end_oldest(self, among: list[BrowserSession]) -> BrowserSession:
        oldest = min(among, key=lambda session: session.used_s)
        self.end(oldest)
        return oldest
