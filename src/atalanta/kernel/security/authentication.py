"""Logins: checks credentials without computing a hash, or asking a directory, on the node's own thread.

The Passwords port compares a password with its hash, once for all connections of a host with the same credentials; what
directories know is asked in directory_logins.py. Correct credentials are cached (Artemis' authentication cache:
`security-invalidation-interval`, `authentication-cache-size`). The cache holds a digest with a salt of this process,
never the password.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.ports import Directories, Ids, Passwords, Trace
from atalanta.kernel.security.check_turns import Check, CheckTurns, LoginWaiter
from atalanta.kernel.security.credential_digest import CredentialDigest
from atalanta.kernel.security.directory import DirectoryAnswer
from atalanta.kernel.security.directory_logins import DirectoryAsker, DirectoryLogins
from atalanta.kernel.security.login_modules import (
    ACCEPTED,
    FAILED,
    LEFT_OUT,
    PASSED,
    REFUSED,
    REQUIRED,
    REQUISITE,
    UNDECIDED,
    UNKNOWN,
    DirectoryResults,
    LoginChain,
)
from atalanta.kernel.security.password import StoredPassword
from atalanta.kernel.security.remote_host import remote_host
from atalanta.kernel.security.security import Identity, Security

# Comparisons that the port has; the others wait for the turn of their host.
COMPUTED_MAX: Final = 4
DEFAULT_REMEMBERED_NS: Final = 10_000_000_000
DEFAULT_REMEMBERED_MAX: Final = 1_000


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


class Attempt(DirectoryAsker):
    """A login whose chain asks directories: what each module has said so far. It asks one after the other, in order.

    `named`: the user of the password, when it is checked. `resolved`: the directories that were asked for the roles of
    a user whom a module before them has found.
    """

    def __init__(
        self,
        logins: Logins,
        security: Security,
        chain: LoginChain,
        user: str | None,
        password: str | None,
        waiter: LoginWaiter,
        subject: str,
        domain: str,
    ) -> None:
        self.logins = logins
        self.security = security
        self.chain = chain
        self.user = user
        self.password = password
        self.waiter = waiter
        self.subject = subject
        self.domain = domain
        self.conn = waiter.conn
        self.guest: bool = chain.may_be_guest(user is not None, password is not None)
        self.certified: bool = chain.certificates.user_of(subject) is not None
        self.named: Identity | None = None
        self.password_ok: bool | None = False if user is None or password is None else None
        self.asked: int = 0  # the directory whose answer is awaited
        self.resolved: list[bool] = [False for _ in chain.directories]
        outcomes: list[int] = []
        for directory in chain.directories:
            if user is None or not directory.authenticates:
                outcomes.append(LEFT_OUT)
            else:
                # A bind with a name and no password is anonymous, and succeeds (RFC 4513, 6.3.1).
                outcomes.append(UNKNOWN if user and password else FAILED)
        self.results: DirectoryResults = DirectoryResults(user or "", outcomes)

    def peer(self) -> str:
        return self.waiter.peer()

    def left(self) -> bool:
        return self.waiter.left()

    def login_done(self, now: int, identity: Identity | None) -> None:
        """Handles the result of the password's check."""
        self.named = identity
        self.password_ok = identity is not None
        self.proceed(now)

    def proceed(self, now: int) -> None:
        """Asks the next module, or ends the login. Too many that wait refuse it."""
        if not self._still_asked():
            self.waiter.login_done(now, None)
            return
        chain = self.chain
        try:
            verdict = chain.verdict(self.certified, self.password_ok, self.guest, self.results)
            if verdict == UNDECIDED:
                self._ask(now, chain.next_unknown(self.certified, self.password_ok, self.guest, self.results))
                return
            if verdict == ACCEPTED and self._asks_for_roles(now):
                return
        except BrokerError:
            verdict = REFUSED
        identity = None
        if verdict == ACCEPTED:
            identity = self.security.accepted(self.subject, self.named, self.guest, self.results)
        self.waiter.login_done(now, identity)

    def _still_asked(self) -> bool:
        """Returns True if the files still have the same modules, and the user of the password that was right: they may
        have changed since the login began."""
        chain = self.security.chain
        if chain is None or not self.chain.same_directories(chain):
            return False
        if self.named is not None:
            known = self.security.users.get(self.named.user)
            if known is None or known.identity is not self.named:
                return False
        self.chain = chain
        self.certified = chain.certificates.user_of(self.subject) is not None
        return True

    def _ask(self, now: int, directory: int) -> None:
        user, password = self.user, self.password
        assert user is not None and password is not None
        if directory < 0:
            self.logins.check_password(now, self.security, user, password, self, self.domain)
            return
        self.asked = directory
        self.logins.directories.ask(now, self.chain.directories[directory], user, password, self)

    def _asks_for_roles(self, now: int) -> bool:
        """Asks a directory that has let in nobody itself for the roles of the user found before it, if there is one."""
        chain = self.chain
        end = chain.reached(self.certified, self.named is not None, self.guest, self.results)
        for number in range(chain.directories_within(end)):
            if self.results.outcomes[number] != LEFT_OUT or self.resolved[number]:
                continue
            self.resolved[number] = True
            certified = chain.certificates.user_of(self.subject)
            named = None if self.named is None else self.named.user
            user = chain.name(certified, named, self.guest, self.results, number)
            if user:
                self.asked = number
                self.logins.directories.ask(now, chain.directories[number], user, None, self)
                return True
        return False

    def looked_up(self, now: int, answer: DirectoryAnswer) -> None:
        """Implements DirectoryAsker.looked_up."""
        number = self.asked
        roles = answer.roles + self.chain.directories[number].more_roles
        if answer.accepted:
            self.results.roles[number] = roles
        if self.results.outcomes[number] == UNKNOWN:
            self.results.outcomes[number] = PASSED if answer.accepted else FAILED
        elif not answer.accepted and self.chain.directory_flags[number] in (REQUIRED, REQUISITE):
            self.results.outcomes[number] = FAILED
        self.proceed(now)


class PasswordCheck(Check):
    """A comparison of a password with a stored hash."""

    def __init__(
        self,
        passwords: Passwords,
        security: Security,
        user: str,
        stored: StoredPassword,
        password: str,
        host: str,
        key: bytes,
    ) -> None:
        super().__init__(host, key)
        self.passwords = passwords
        self.security = security
        self.user = user
        self.stored = stored
        self.password = password

    def start(self, token: int) -> None:
        """Implements Check.start."""
        self.passwords.verify(token, self.stored, self.password)


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
        directories: Directories | None = None,
        trace: Trace | None = None,
    ) -> None:
        self.security = security
        self.passwords = passwords
        self.digest: CredentialDigest = CredentialDigest(ids)
        self.remembered_ns = remembered_ns
        self.remembered_max = remembered_max
        self.turns: CheckTurns = CheckTurns(COMPUTED_MAX)
        self.remembered: dict[bytes, int] = {}  # digest -> end of validity, oldest first
        self.last_token: int = 0
        self.login_caches: int = security.login_caches
        self.directories: DirectoryLogins = DirectoryLogins(
            directories if directories is not None else Directories(),
            trace,
            self.digest,
            remembered_ns,
            remembered_max,
        )

    def begin(
        self,
        now: int,
        user: str | None,
        password: str | None,
        waiter: LoginWaiter,
        subject: str = "",
        domain: str = "",
    ) -> None:
        """Begins a login; `waiter.login_done` follows, within this call unless a hash has to be computed or a directory
        asked.

        `subject`: of the client's certificate; `domain`: securityDomain of its acceptor. BrokerError if too many
        comparisons are in progress.
        """
        if self.login_caches != self.security.login_caches:
            self.login_caches = self.security.login_caches
            self.forget()
        security = self.security.domain(domain)
        chain = security.chain
        if chain is not None:
            if chain.directories and security.enabled and user != security.cluster_user:
                Attempt(self, security, chain, user, password, waiter, subject, domain).proceed(now)
                return
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
        self.check_password(now, security, user, password, waiter, domain)

    def check_password(
        self,
        now: int,
        security: Security,
        user: str,
        password: str,
        waiter: LoginWaiter,
        domain: str,
    ) -> None:
        """Compares a password with that of the files; `waiter.login_done` follows. BrokerError as for `begin`."""
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
        if self.turns.join(host, key, waiter):
            return
        check = PasswordCheck(self.passwords, security, user, stored, password, host, key)
        check.waiters.append(waiter)
        self.last_token += 1
        self.turns.add(self.last_token, check)

    def finished(self, now: int, token: int, ok: bool) -> Verdict:
        """Ends the comparison `token`; returns its waiters and their identity."""
        check = self.turns.finished(token)
        if not isinstance(check, PasswordCheck):
            return Verdict([], None)
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
        self.directories.forget()

    def _key(self, domain: str, user: str, stored: StoredPassword, password: str) -> bytes:
        return self.digest.of(
            [
                domain.encode("utf-8", "surrogatepass"),
                user.encode("utf-8", "surrogatepass"),
                password.encode("utf-8", "surrogatepass"),
                stored.salt,
                stored.hash,
            ]
        )
