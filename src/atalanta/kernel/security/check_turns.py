"""Checks of credentials outside the node's own thread: those that wait, and those in progress.

There is one check for all connections of a host with the same credentials. Hosts take turns, and nothing is checked for
connections that are closed.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import SESSION_CREATION_REJECTED, BrokerError
from atalanta.kernel.security.security import Identity

# Checks of different credentials at the same time; a connection waits for one.
CHECKS_MAX: Final = 10_000
LEFT_MIN: Final = 64  # so many checks wait before those of closed connections are removed


@mypyc_attr(allow_interpreted_subclasses=True)
class LoginWaiter:
    """A connection that has asked for a login; called once, at once or much later."""

    conn: int = 0

    def peer(self) -> str:
        """Returns the address of the peer, host:port, or "" if it is unknown."""
        return ""

    def left(self) -> bool:
        """Returns True if the connection is closed: the login needs no answer."""
        return False

    def login_done(self, now: int, identity: Identity | None) -> None:
        """Handles the result; `identity` None: the credentials are wrong."""
        raise NotImplementedError


class Check:
    """A check that waits or is in progress, and the logins of one host that wait for it."""

    def __init__(self, host: str, key: bytes) -> None:
        self.host = host
        self.key = key
        self.waiters: list[LoginWaiter] = []

    def left(self) -> bool:
        """Returns True if all connections that waited are closed."""
        for waiter in self.waiters:
            if not waiter.left():
                return False
        return True

    def start(self, token: int) -> None:
        """Starts the check: its answer comes with `token`."""
        raise NotImplementedError

    def dropped(self, token: int) -> None:
        """Handles the end of a check that was never started, because all its connections are closed."""
        return None


class CheckTurns:
    """The checks of one kind. `started_max` of them are in progress; the others wait for the turn of their host.

    `waiting` has the checks of each host by token, the host whose turn is next first. `host_max`: so many of one host
    may wait.
    """

    def __init__(self, started_max: int, host_max: int = CHECKS_MAX) -> None:
        self.started_max = started_max
        self.host_max = host_max
        self.checks: dict[int, Check] = {}
        self.by_key: dict[tuple[str, bytes], Check] = {}
        self.waiting: dict[str, dict[int, Check]] = {}
        self.started: int = 0
        self.sweep_at: int = LEFT_MIN  # the number of checks that removes those of closed connections

    def join(self, host: str, key: bytes, waiter: LoginWaiter) -> bool:
        """Adds the login to a check that is there already; False if there is none."""
        check = self.by_key.get((host, key))
        if check is None:
            return False
        check.waiters.append(waiter)
        return True

    def add(self, token: int, check: Check) -> None:
        """Adds a check. BrokerError if too many wait."""
        if len(self.checks) >= self.sweep_at:
            self._sweep()
        if len(self.checks) >= CHECKS_MAX or len(self.waiting.get(check.host, ())) >= self.host_max:
            raise BrokerError(SESSION_CREATION_REJECTED, "too many logins are waiting")
        self.checks[token] = check
        self.by_key[check.host, check.key] = check
        self.waiting.setdefault(check.host, {})[token] = check
        self._start()

    def finished(self, token: int) -> Check | None:
        """Ends the check in progress and starts the next; None if there is none of that token."""
        check = self.checks.get(token)
        if check is None:
            return None
        self._remove(token, check)
        self.started -= 1
        self._start()
        return check

    def _start(self) -> None:
        """Starts the next checks, one of each host in turn."""
        while self.started < self.started_max and self.waiting:
            host = next(iter(self.waiting))
            line = self.waiting.pop(host)
            token = next(iter(line))
            check = line.pop(token)
            if line:
                self.waiting[host] = line
            if check.left():
                self._remove(token, check)
                check.dropped(token)
                continue
            self.started += 1
            check.start(token)

    def _sweep(self) -> None:
        """Removes the waiting checks whose connections are all closed."""
        for host, line in list(self.waiting.items()):
            for token, check in list(line.items()):
                if check.left():
                    del line[token]
                    self._remove(token, check)
                    check.dropped(token)
            if not line:
                del self.waiting[host]
        self.sweep_at = min(2 * len(self.checks) + LEFT_MIN, CHECKS_MAX)

    def _remove(self, token: int, check: Check) -> None:
        del self.checks[token]
        del self.by_key[check.host, check.key]
