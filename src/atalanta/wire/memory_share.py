"""The memory of frames and messages that have arrived in part, or wait for room: a share for each user over all of its
connections and protocols, and a small one for each host before the login.

Above the share of a user its connections wait, but for one: so that message is completed, and then the next. A host
without a login loses its oldest unfinished handshake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.security.remote_host import remote_host

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace, Wire
    from atalanta.wire.login import LoginConnection

USER_BYTES_MAX: Final = 256 << 20  # two frames of 100 MB, and a part of a third
HOST_BYTES_MAX: Final = 2 << 20  # a handshake has some hundred bytes; 64 KiB are the most
FREE_BYTES: Final = 16 << 10  # of each connection after the login: the usual end of what was read at once
IDLE_NS: Final = 30_000_000_000
TRIM_BYTES: Final = 64 << 20  # freed until the allocator is asked to give memory back
TOLD_MAX: Final = 10_000
STALLED: Final = "its unfinished message has not gone on for 30 s, and others of its user wait"
LESS: Final = "look for a client that stops in the middle of its login"
SETTING: Final = "unfinished-messages-max in atalanta.toml"


class Share:
    """The share of one user or host. `parts`: its connections with something unfinished, the oldest first."""

    def __init__(self, name: str, user: bool, bytes_max: int) -> None:
        self.name = name
        self.user = user
        self.bytes_max = bytes_max
        self.used: int = 0
        self.held: int = 0
        self.parts: dict[LoginConnection, bool] = {}

    def put(self, connection: LoginConnection, former: int, size: int) -> None:
        """Records what is unfinished on a connection. What is less than before has begun later."""
        self.used += size - former
        if size < former:
            self.parts.pop(connection, None)
        if size > 0:
            self.parts[connection] = True

    def next(self) -> LoginConnection | None:
        """Returns the connection that goes on above the limit: the oldest that waits for nothing else."""
        for connection in self.parts:
            if not connection.waits_otherwise():
                return connection
        return None

    def release(self) -> None:
        """Lets the connections go on that have room now, or whose turn it is."""
        if self.held == 0:
            return
        following = None if self.used <= self.bytes_max else self.next()
        for connection in list(self.parts):
            if self.used <= self.bytes_max or connection is following:
                self.let_go(connection)

    def hold(self, connection: LoginConnection) -> None:
        """Stops reading from a connection."""
        if not connection.share_waits:
            self.held += 1
            connection.wait_for_share(True)

    def let_go(self, connection: LoginConnection) -> None:
        """Reads from a connection again."""
        if connection.share_waits:
            self.held -= 1
            connection.wait_for_share(False)


class UnfinishedMessages:
    """The shares of a node. `told`: the users and hosts whose limit was reported."""

    def __init__(self, wire: Wire, trace: Trace) -> None:
        self.wire = wire
        self.trace = trace
        self.user_bytes_max: int = USER_BYTES_MAX
        self.users: dict[str, Share] = {}
        self.hosts: dict[str, Share] = {}
        self.told: dict[tuple[bool, str], bool] = {}
        self.freed: int = 0

    def _share(self, connection: LoginConnection) -> Share:
        user = connection.share_user
        if user is None:
            host = remote_host(connection.peer())
            share = self.hosts.get(host)
            if share is None:
                self.hosts[host] = share = Share(host, False, HOST_BYTES_MAX)
        else:
            share = self.users.get(user)
            if share is None:
                self.users[user] = share = Share(user, True, self.user_bytes_max)
        return share

    def change(self, connection: LoginConnection, size: int) -> None:
        """Records that so many bytes are unfinished on a connection now."""
        share = self._share(connection)
        former = connection.unfinished
        connection.unfinished = size
        share.put(connection, former, size)
        if size == 0:
            share.let_go(connection)
        if share.used > share.bytes_max:
            self._tell(share)
            if share.user:
                if size > 0 and not connection.waits_otherwise() and share.next() is not connection:
                    share.hold(connection)
            else:
                oldest = next(iter(share.parts))
                why = f"unfinished handshakes of its host take more than {share.bytes_max} bytes"
                oldest.host.close(oldest.conn, why)
                self.change(oldest, 0)
        share.release()
        if not share.parts:
            (self.users if share.user else self.hosts).pop(share.name, None)
        if former - size > FREE_BYTES:
            self.freed += former - size
            if self.freed >= TRIM_BYTES:
                self.freed = 0
                self.wire.freed()

    def may_wait(self, connection: LoginConnection) -> bool:
        """Returns False if a complete message cannot wait for room: the share of its user is used up."""
        if connection.unfinished == 0:
            return True
        share = self._share(connection)
        return share.used <= share.bytes_max

    def refusal(self, connection: LoginConnection) -> str:
        """Returns why such a message is refused."""
        return (
            f"its message cannot wait for room: unfinished and waiting messages of user '{connection.share_user}' take"
            f" more than {self.user_bytes_max} bytes ({SETTING})"
        )

    def check(self, now: int) -> None:
        """Closes a connection on which others wait, if nothing of its message has come for a while."""
        for share in list(self.users.values()):
            following = share.next() if share.held else None
            if following is not None and now - following.last_seen > IDLE_NS:
                host = following.host
                host.timed_out(following, STALLED)
                host.close(following.conn, STALLED)
            share.release()

    def _tell(self, share: Share) -> None:
        """Reports the limit, once for each user or host."""
        key = (share.user, share.name)
        if key in self.told or len(self.told) >= TOLD_MAX:
            return
        self.told[key] = True
        self.trace.event(
            "unfinished_messages_limit",
            {
                "user": share.name if share.user else "",
                "host": "" if share.user else share.name,
                "limit": share.bytes_max,
                "what_to_do": f"send fewer large messages at once, or raise {SETTING}" if share.user else LESS,
            },
        )
