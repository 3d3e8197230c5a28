"""Logins: checks credentials without computing a hash on the node's own thread.

The Passwords port compares a password with its hash, once for all connections of a host with the same credentials.
Hosts take turns, and nothing is computed for connections that are closed. Correct credentials are cached (Artemis'
authentication cache: `security-invalidation-interval`, `authentication-cache-size`). The cache holds a digest with a
salt of this process, never the password.
"""

from __future__ import annotations

import hashlib
from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import SESSION_CREATION_REJECTED, BrokerError
from atalanta.kernel.ports import Ids, Passwords
from atalanta.kernel.security.login_modules import UNDECIDED
from atalanta.kernel.security.password import StoredPassword
from atalanta.kernel.security.remote_host import remote_host
from atalanta.kernel.security.security import Identity, Security

# Comparisons of different credentials at the same time; a connection waits for one.
CHECKS_MAX: Final = 10_000
# Comparisons that the port has; the others wait for the turn of their host.
COMPUTED_MAX: Final = 4
LEFT_MIN: Final = 64  # so many comparisons wait before those of closed connections are removed
DEFAULT_REMEMBERED_NS: Final = 10_000_000_000
DEFAULT_REMEMBERED_MAX: Final = 1_000


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


class Chained(LoginWaiter):
    """The waiter of a login with several modules, during the password check. `guest`: the user may be a guest."""

    def __init__(
        self, security: Security, subject: str, guest: bool, waiter: LoginWaiter
    ) -> None:
        self.security = security
        self.subject = subject
        self.guest = guest
        self.waiter = waiter
        self.conn = waiter.conn

    def peer(self) -> str:
        return self.waiter.peer()

    def left(self) -> bool:
        return self.waiter.left()

    def login_done(self, now: int, identity: Identity | None) -> None:
        self.waiter.login_done(now, self.security.combined(self.subject, identity, self.guest))


class PasswordCheck:
    """A comparison that waits or is in progress, and the logins of one host that wait for it."""

    def __init__(
        self,
        security: Security,
        user: str,
        stored: StoredPassword,
        password: str,
        host: str,
        key: bytes,
    ) -> None:
        self.security = security
        self.user = user
        self.stored = stored
        self.password = password
        self.host = host
        self.key = key
        self.waiters: list[LoginWaiter] = []

    def left(self) -> bool:
        """Returns True if all connections that waited are closed."""
        for waiter in self.waiters:
            if not waiter.left():
                return False
        return True


class Verdict:
    """The result of a comparison, with all logins that waited for it."""

    def __init__(self, waiters: list[LoginWaiter], identity: Identity | None) -> None:
        self.waiters = waiters
        self.identity = identity


class Logins:
    """The logins in progress and the authentication cache; no login is cached if either limit is 0.

    `waiting` has the comparisons of each host by token, the host whose turn is next first. `computed` counts those
    that the Passwords port has.
    """

    def __init__(
        self,
        security: Security,
        passwords: Passwords,
        ids: Ids,
        remembered_ns: int = DEFAULT_REMEMBERED_NS,
        remembered_max: int = DEFAULT_REMEMBERED_MAX,
    ) -> None:
        self.security = security
        self.passwords = passwords
        self.ids = ids
        self.salt: bytes = b""  # of this process; created for the first hashed password
        self.remembered_ns = remembered_ns
        self.remembered_max = remembered_max
        self.checks: dict[int, PasswordCheck] = {}
        self.by_key: dict[tuple[str, bytes], PasswordCheck] = {}
        self.waiting: dict[str, dict[int, PasswordCheck]] = {}
        self.computed: int = 0
        self.sweep_at: int = LEFT_MIN  # the number of comparisons that removes those of closed connections
        self.remembered: dict[bytes, int] = {}  # digest -> end of validity, oldest first
        self.last_token: int = 0

    def begin(
        self,
        now: int,
        user: str | None,
        password: str | None,
        waiter: LoginWaiter,
        subject: str = "",
        domain: str = "",
    ) -> None:
        """Begins a login; `waiter.login_done` follows, within this call unless a hash has to be computed.

        `subject`: of the client's certificate; `domain`: securityDomain of its acceptor. BrokerError if too many
        comparisons are in progress.
        """
        security = self.security.domain(domain)
        chain = security.chain
        if chain is not None:
            # The cluster user with a wrong password is no guest.
            guest = user != security.cluster_user and chain.may_be_guest(user is not None, password is not None)
            waiter = Chained(security, subject, guest, waiter)
            if user != security.cluster_user:
                certified = chain.certificates.user_of(subject) is not None
                if chain.verdict(certified, None, guest) != UNDECIDED:
                    waiter.login_done(now, None)
                    return
        identity = security.quick_answer(user, password)
        if (
            identity is not None
            or user is None
            or password is None
            or user == security.cluster_user
        ):
            waiter.login_done(now, identity)
            return
        stored = security.stored_password(user)
        if security.rounds_max == 0 or stored.verify_plain(password):
            waiter.login_done(now, security.verified(user, stored, stored.verify(password)))
            return
        key = self._key(domain, user, stored, password)
        until = self.remembered.get(key)
        if until is not None and now < until:
            waiter.login_done(now, security.verified(user, stored, True))
            return
        host = remote_host(waiter.peer())
        check = self.by_key.get((host, key))
        if check is not None:
            check.waiters.append(waiter)
            return
        check = PasswordCheck(security, user, stored, password, host, key)
        check.waiters.append(waiter)
        self._add(check)

    def _add(self, check: PasswordCheck) -> None:
        """Adds a comparison. BrokerError if too many wait."""
        if len(self.checks) >= self.sweep_at:
            self._sweep()
        if len(self.checks) >= CHECKS_MAX:
            raise BrokerError(SESSION_CREATION_REJECTED, "too many logins are waiting")
        self.last_token += 1
        self.checks[self.last_token] = check
        self.by_key[check.host, check.key] = check
        self.waiting.setdefault(check.host, {})[self.last_token] = check
        self._compute()

    def _compute(self) -> None:
        """Gives the port the next comparisons, one of each host in turn."""
        while self.computed < COMPUTED_MAX and self.waiting:
            host = next(iter(self.waiting))
            line = self.waiting.pop(host)
            token = next(iter(line))
            check = line.pop(token)
            if line:
                self.waiting[host] = line
            if check.left():
                self._remove(token, check)
                continue
            self.computed += 1
            self.passwords.verify(token, check.stored, check.password)

    def _sweep(self) -> None:
        """Removes the waiting comparisons whose connections are all closed."""
        for host, line in list(self.waiting.items()):
            for token, check in list(line.items()):
                if check.left():
                    del line[token]
                    self._remove(token, check)
            if not line:
                del self.waiting[host]
        self.sweep_at = min(2 * len(self.checks) + LEFT_MIN, CHECKS_MAX)

    def _remove(self, token: int, check: PasswordCheck) -> None:
        del self.checks[token]
        del self.by_key[check.host, check.key]

    def finished(self, now: int, token: int, ok: bool) -> Verdict:
        """Ends the comparison `token`; returns its waiters and their identity."""
        check = self.checks.get(token)
        if check is None:
            return Verdict([], None)
        self._remove(token, check)
        self.computed -= 1
        self._compute()
        identity = check.security.verified(check.user, check.stored, ok)
        if identity is not None:
            self._remember(now, check.key)
        return Verdict(check.waiters, identity)

    def _remember(self, now: int, key: bytes) -> None:
        if self.remembered_ns <= 0 or self.remembered_max <= 0:
            return
        self.remembered.pop(key, None)
        while len(self.remembered) >= self.remembered_max:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[key] = now + self.remembered_ns

    def forget(self) -> None:
        """Clears the cache, because users may have changed."""
        self.remembered.clear()

    def _key(self, domain: str, user: str, stored: StoredPassword, password: str) -> bytes:
        if not self.salt:
            self.salt = self.ids.secret(32)
        digest = hashlib.blake2b(key=self.salt, digest_size=32)
        for part in (
            domain.encode("utf-8", "surrogatepass"),
            user.encode("utf-8", "surrogatepass"),
            password.encode("utf-8", "surrogatepass"),
            stored.salt,
            stored.hash,
        ):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.digest()
