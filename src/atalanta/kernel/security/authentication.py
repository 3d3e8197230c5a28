"""Logins: checks credentials without computing a hash on the node's own thread.

The Passwords port compares a password with its hash, once for all connections with the same credentials. Correct
credentials are cached (Artemis' authentication cache: `security-invalidation-interval`,
`authentication-cache-size`). The cache holds a digest with a salt of this process, never the password.
"""

from __future__ import annotations

import hashlib
from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import SESSION_CREATION_REJECTED, BrokerError
from atalanta.kernel.ports import Ids, Passwords
from atalanta.kernel.security.login_modules import UNDECIDED
from atalanta.kernel.security.password import StoredPassword
from atalanta.kernel.security.security import Identity, Security

# Comparisons of different credentials at the same time; a connection waits for one.
CHECKS_MAX: Final = 10_000
DEFAULT_REMEMBERED_NS: Final = 10_000_000_000
DEFAULT_REMEMBERED_MAX: Final = 1_000


@mypyc_attr(allow_interpreted_subclasses=True)
class LoginWaiter:
    """A connection that has asked for a login; called once, at once or much later."""

    conn: int = 0

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

    def login_done(self, now: int, identity: Identity | None) -> None:
        self.waiter.login_done(now, self.security.combined(self.subject, identity, self.guest))


class Check:
    """A comparison in progress, and the logins that wait for it."""

    def __init__(self, security: Security, user: str, stored: StoredPassword, key: bytes) -> None:
        self.security = security
        self.user = user
        self.stored = stored
        self.key = key
        self.waiters: list[LoginWaiter] = []


class Verdict:
    """The result of a comparison, with all logins that waited for it."""

    def __init__(self, waiters: list[LoginWaiter], identity: Identity | None) -> None:
        self.waiters = waiters
        self.identity = identity


class Logins:
    """The logins in progress and the authentication cache; no login is cached if either limit is 0."""

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
        self.checks: dict[int, Check] = {}
        self.by_key: dict[bytes, Check] = {}
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
            guest = user != security.cluster_user and chain.may_be_guest(password is not None)
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
        if not stored.slow:
            waiter.login_done(now, security.verified(user, stored, stored.verify(password)))
            return
        key = self._key(domain, user, stored, password)
        until = self.remembered.get(key)
        if until is not None and now < until:
            waiter.login_done(now, security.verified(user, stored, True))
            return
        check = self.by_key.get(key)
        if check is None:
            check = self._check(security, user, stored, password, key)
        check.waiters.append(waiter)

    def _check(
        self, security: Security, user: str, stored: StoredPassword, password: str, key: bytes
    ) -> Check:
        if len(self.checks) >= CHECKS_MAX:
            raise BrokerError(SESSION_CREATION_REJECTED, "too many logins are waiting")
        check = Check(security, user, stored, key)
        self.last_token += 1
        self.checks[self.last_token] = check
        self.by_key[key] = check
        self.passwords.verify(self.last_token, stored, password)
        return check

    def finished(self, now: int, token: int, ok: bool) -> Verdict:
        """Ends the comparison `token`; returns its waiters and their identity."""
        check = self.checks.pop(token, None)
        if check is None:
            return Verdict([], None)
        del self.by_key[check.key]
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
