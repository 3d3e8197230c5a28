"""The search of a passive member for the active node: it dials all other members until one of them welcomes it.

A passive member does not listen, so at most one of them answers. A member that is refused, and a broken connection,
is dialled again a little later; the reason is told when it changes. The others are configured, or heard by discovery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from atalanta.cluster.replication.member_codec import MemberFramer
from atalanta.cluster.replication.member_handshake import (
    ANOTHER_GROUP,
    HANDSHAKE_NS,
    NONCE_SIZE,
    FollowerHandshake,
    Hello,
    Welcome,
)
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.ports import Ids, Links, Timers, Trace, Wire

SEARCH: Final = "active."
DIAL_TIMEOUT_MS: Final = 2000
RETRY_NS: Final = 200_000_000
# After a connection that was lost. An active node removes a member in sync that is away for longer than 500 ms.
RETRY_LOST_NS: Final = 20_000_000
# A node that was heard and that this member cannot follow may be of another group, or of none.
RETRY_STRANGER_NS: Final = 2_000_000_000
HEARD_MAX: Final = 100
# Up to 255 of these are added to each, so that members do not dial in step.
JITTER_NS: Final = 400_000


@dataclass(frozen=True)
class Candidate:
    """Another member of the group: a static connector, or a node that was heard. `secure`: it has TLS."""

    name: str
    host: str
    port: int
    secure: bool = False

    @property
    def remote(self) -> str:
        """Returns "host:port"."""
        return f"{self.host}:{self.port}"


class ActiveLink:
    """The connection to the active node, after the handshake."""

    def __init__(self, conn: int, candidate: Candidate, welcome: Welcome) -> None:
        self.conn = conn
        self.host = candidate.host
        self.remote = candidate.remote
        self.active = welcome.active
        self.framer = MemberFramer()


class SearchOwner(Protocol):
    """The passive member, as its search sees it."""

    def refusal(self, welcome: Welcome) -> str:
        """Returns why this member does not follow a node, "" if it does."""

    def on_linked(self, now: int, welcome: Welcome) -> None:
        """Begins to follow: `ActiveSearch.link` is set."""

    def on_link_lost(self, now: int, why: str) -> None:
        """Ends to follow: the connection is gone. The search goes on."""


class _Attempt:
    """The attempts to reach one candidate: dialled, or waiting for the next one if `conn` is -1."""

    def __init__(self, candidate: Candidate, key: str, heard: bool) -> None:
        self.candidate = candidate
        self.key = key
        self.heard = heard
        self.conn = -1
        self.dialing = False
        self.handshake: FollowerHandshake | None = None
        self.told = ""
        self.unreachable = False  # the last attempt found nobody, or another group

    @property
    def remote(self) -> str:
        """Returns "host:port"."""
        return self.candidate.remote


class ActiveSearch:
    """The attempts of one passive member. `link` is the connection to the active node, None without one."""

    def __init__(
        self,
        owner: SearchOwner,
        candidates: list[Candidate],
        hello: Hello,
        key: bytes,
        wire: Wire,
        links: Links,
        timers: Timers,
        ids: Ids,
        trace: Trace,
    ) -> None:
        self.link: ActiveLink | None = None
        self._owner = owner
        self._hello = hello
        self._key = key
        self._wire = wire
        self._links = links
        self._timers = timers
        self._ids = ids
        self._trace = trace
        # By the key of dial and timer.
        self._attempts: dict[str, _Attempt] = {}
        for index, each in enumerate(candidates):
            name = f"{SEARCH}{index}"
            self._attempts[name] = _Attempt(each, name, False)
        self.hears = False  # candidates may be heard
        self._searches = False

    # --- life -------------------------------------------------------------------------------------

    def search(self) -> None:
        """Dials all candidates, again and again until there is a link."""
        if self._searches or self.link is not None:
            return
        self._searches = True
        for attempt in list(self._attempts.values()):
            if attempt.conn < 0 and not attempt.dialing:
                self._dial(attempt)

    def halt(self, why: str) -> None:
        """Closes the link and every attempt, and dials no more until `search`."""
        self._searches = False
        if self.link is not None:
            self._wire.close(self.link.conn, why)
            self.link = None
        for attempt in list(self._attempts.values()):
            self._timers.cancel(attempt.key)
            if attempt.conn >= 0:
                self._wire.close(attempt.conn, why)
            self._forget(attempt)

    def drop(self, now: int, why: str) -> None:
        """Closes the link, because the stream cannot go on, and searches again a little later."""
        link = self.link
        if link is None:
            return
        self.link = None
        self._wire.close(link.conn, why)
        self._end_link(now, why)

    def nobody(self) -> bool:
        """Returns whether nobody of this group answers at any candidate's port, and nobody else can be heard."""
        return not self.hears and all([attempt.unreachable for attempt in self._attempts.values()])

    def on_heard(self, candidate: Candidate) -> None:
        """Adds a node that was heard, if there is room."""
        key = f"{SEARCH}{candidate.remote}"
        if key in self._attempts or len(self._attempts) >= HEARD_MAX:
            return
        attempt = self._attempts[key] = _Attempt(candidate, key, True)
        if self._searches:
            self._dial(attempt)

    def on_unheard(self, remote: str) -> None:
        """Removes a node that is not heard any more. A link to it stays."""
        attempt = self._attempts.pop(f"{SEARCH}{remote}", None)
        if attempt is not None:
            self._timers.cancel(attempt.key)
            if attempt.conn >= 0:
                self._wire.close(attempt.conn, "the node is not heard any more")

    # --- inputs -----------------------------------------------------------------------------------

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        """Begins the handshake with a candidate."""
        attempt = self._attempts.get(key)
        if attempt is not None:
            attempt.dialing = False
        if attempt is None or not self._searches or attempt.conn >= 0:
            self._wire.close(conn, "it is not needed any more")
            return
        attempt.conn = conn
        attempt.unreachable = False
        attempt.handshake = FollowerHandshake(self._key, self._ids.secret(NONCE_SIZE), self._hello)
        self._timers.set(key, now + HANDSHAKE_NS)
        self._wire.write(conn, attempt.handshake.begin())

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """Tries the candidate again later."""
        attempt = self._attempts.get(key)
        if attempt is not None:
            attempt.dialing = False
            attempt.unreachable = True
            self._retry(now, attempt)

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        """Continues a handshake, or adds bytes to the link's frames."""
        link = self.link
        if link is not None and link.conn == conn:
            link.framer.feed(data)
            return
        for attempt in list(self._attempts.values()):
            if attempt.conn == conn and attempt.handshake is not None:
                self._shake(now, attempt, attempt.handshake, data)
                return

    def on_closed(self, now: int, conn: int, why: str) -> None:
        """Handles the end of a connection that this member has not closed itself."""
        link = self.link
        if link is not None and link.conn == conn:
            self.link = None
            self._end_link(now, why)
            return
        for attempt in list(self._attempts.values()):
            if attempt.conn == conn:
                reason = f"{why} (during the handshake: do cluster-user and cluster-password agree?)"
                self._fail(now, attempt, reason, close=False)
                return

    def on_timer(self, now: int, key: str) -> None:
        """Tries a candidate again, or ends a handshake that takes too long."""
        attempt = self._attempts.get(key)
        if attempt is None:
            return
        if attempt.conn >= 0:
            self._fail(now, attempt, f"no handshake within {HANDSHAKE_NS // 1_000_000_000} s")
        elif self._searches and not attempt.dialing:
            self._dial(attempt)

    # --- attempts ---------------------------------------------------------------------------------

    def _dial(self, attempt: _Attempt) -> None:
        candidate = attempt.candidate
        attempt.dialing = True
        if candidate.secure:
            self._links.dial_secure(attempt.key, candidate.host, candidate.port, candidate.name, DIAL_TIMEOUT_MS)
        else:
            self._links.dial_within(attempt.key, candidate.host, candidate.port, DIAL_TIMEOUT_MS)

    def _retry(self, now: int, attempt: _Attempt, after_ns: int = RETRY_NS) -> None:
        if self._searches:
            self._timers.set(attempt.key, now + after_ns + self._ids.secret(1)[0] * JITTER_NS)

    def _forget(self, attempt: _Attempt) -> None:
        attempt.conn = -1
        attempt.handshake = None

    def _fail(self, now: int, attempt: _Attempt, why: str, close: bool = True) -> None:
        """Ends an attempt, and tells why if that is new."""
        conn = attempt.conn
        self._forget(attempt)
        self._timers.cancel(attempt.key)
        if close:
            self._wire.close(conn, why)
        other = attempt.unreachable = why.startswith(ANOTHER_GROUP)
        if why != attempt.told:
            attempt.told = why
            if other:
                self._trace.event("other_group_met", {"remote": attempt.remote, "why": why})
            else:
                self._trace.event("replication_refused", {"remote": attempt.remote, "why": why})
        self._retry(now, attempt, RETRY_STRANGER_NS if attempt.heard or other else RETRY_NS)

    def _shake(self, now: int, attempt: _Attempt, handshake: FollowerHandshake, data: bytes) -> None:
        try:
            output = handshake.feed(data)
        except (ProtocolError, DecodeError) as error:
            self._fail(now, attempt, str(error))
            return
        if output:
            self._wire.write(attempt.conn, output)
        welcome = handshake.welcome
        if welcome is None:
            return
        why = self._owner.refusal(welcome)
        if why:
            self._fail(now, attempt, why)
            return
        self._searches = False
        self._timers.cancel(attempt.key)
        attempt.told = ""
        link = self.link = ActiveLink(attempt.conn, attempt.candidate, welcome)
        self._forget(attempt)
        for other in list(self._attempts.values()):
            self._timers.cancel(other.key)
            if other.conn >= 0:
                self._wire.close(other.conn, "another member is active")
                self._forget(other)
        link.framer.feed(handshake.rest())
        self._owner.on_linked(now, welcome)

    def _end_link(self, now: int, why: str) -> None:
        """Searches again after a short time: it may be that every stream ends as soon as it begins."""
        self._owner.on_link_lost(now, why)
        if self.link is None and not self._searches:
            self._searches = True
            for attempt in list(self._attempts.values()):
                if not attempt.dialing:
                    self._retry(now, attempt, RETRY_LOST_NS)
