"""Logins that directories (LDAP) decide: one question for all connections of a host with the same credentials.

Answers are cached as those about passwords are, refusals too: a client that tries again and again does not reach the
directory each time. What it gives no answer to is not cached, and is a refusal. An outage is reported once.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.ports import Directories, Trace
from atalanta.kernel.security.check_turns import Check, CheckTurns, LoginWaiter
from atalanta.kernel.security.credential_digest import CredentialDigest
from atalanta.kernel.security.directory import DirectoryAnswer, DirectoryConfig
from atalanta.kernel.security.remote_host import RefusalLimit, remote_host

# Questions that the port has for one directory; the others wait for the turn of their host.
ASKED_MAX: Final = 4
WAITING_OF_HOST_MAX: Final = 1_000
# A directory that comes and goes is reported once in this time.
TOLD_NS: Final = 10_000_000_000
USER_SHOWN_MAX: Final = 100  # characters of a name in an event


@mypyc_attr(allow_interpreted_subclasses=True)
class DirectoryAsker(LoginWaiter):
    """A login that waits for a directory."""

    def looked_up(self, now: int, answer: DirectoryAnswer) -> None:
        """Handles the answer; called once, within the question or much later."""
        raise NotImplementedError


class DirectoryCheck(Check):
    """A question to a directory."""

    def __init__(
        self,
        logins: DirectoryLogins,
        directory: DirectoryConfig,
        user: str,
        password: str | None,
        host: str,
        key: bytes,
    ) -> None:
        super().__init__(host, key)
        self.logins = logins
        self.directory = directory
        self.user = user
        self.password = password

    def start(self, token: int) -> None:
        """Implements Check.start."""
        self.logins.directories.look_up(token, self.directory, self.user, self.password)

    def dropped(self, token: int) -> None:
        """Implements Check.dropped."""
        del self.logins.by_token[token]


class DirectoryTurns:
    """The questions to one directory. `number` tells it from others in the cache; `away`: it has given no answer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.turns: CheckTurns = CheckTurns(ASKED_MAX, WAITING_OF_HOST_MAX)
        self.away: bool = False
        self.told: bool = False
        self.told_at: int = -TOLD_NS


class RememberedAnswer:
    """An answer, and the time at which it ends."""

    def __init__(self, answer: DirectoryAnswer, until: int) -> None:
        self.answer = answer
        self.until = until


class DirectoryVerdict:
    """The answer of a directory, with all logins that waited for it."""

    def __init__(self, askers: list[DirectoryAsker], answer: DirectoryAnswer) -> None:
        self.askers = askers
        self.answer = answer


class DirectoryLogins:
    """The questions to all directories, and their answers; `remembered` has the oldest first."""

    def __init__(
        self,
        directories: Directories,
        trace: Trace | None,
        digest: CredentialDigest,
        remembered_ns: int,
        remembered_max: int,
    ) -> None:
        self.directories = directories
        self.trace = trace
        self.digest = digest
        self.remembered_ns = remembered_ns
        self.remembered_max = remembered_max
        self.by_directory: dict[DirectoryConfig, DirectoryTurns] = {}
        self.by_token: dict[int, DirectoryTurns] = {}
        self.remembered: dict[bytes, RememberedAnswer] = {}
        self.refusals: RefusalLimit = RefusalLimit()
        self.last_number: int = 0
        self.last_token: int = 0
        self.forgotten: int = 0  # how often: questions of before are not joined, nor their answers used again

    def ask(
        self, now: int, directory: DirectoryConfig, user: str, password: str | None, asker: DirectoryAsker
    ) -> None:
        """Asks about a password, or, if it is None, for the user's roles. `asker.looked_up` follows, perhaps at once.

        BrokerError if too many logins wait.
        """
        turns = self.by_directory.get(directory)
        if turns is None:
            self.last_number += 1
            turns = DirectoryTurns(self.last_number)
            self.by_directory[directory] = turns
        key = self._key(turns.number, user, password)
        known = self.remembered.get(key)
        if known is not None and now < known.until:
            asker.looked_up(now, known.answer)
            return
        host = remote_host(asker.peer())
        if turns.turns.join(host, key, asker):
            return
        check = DirectoryCheck(self, directory, user, password, host, key)
        check.waiters.append(asker)
        self.last_token += 1
        token = self.last_token
        self.by_token[token] = turns
        try:
            turns.turns.add(token, check)
        except BrokerError:
            del self.by_token[token]
            raise

    def finished(self, now: int, token: int, answer: DirectoryAnswer) -> DirectoryVerdict:
        """Ends the question `token`; returns the logins that waited for it."""
        turns = self.by_token.pop(token, None)
        check = None if turns is None else turns.turns.finished(token)
        if turns is None or not isinstance(check, DirectoryCheck):
            return DirectoryVerdict([], answer)
        askers = [waiter for waiter in check.waiters if isinstance(waiter, DirectoryAsker)]
        self._tell(now, turns, check, answer)
        if not answer.problem:
            self._remember(now, check.key, answer)
        return DirectoryVerdict(askers, answer)

    def _tell(self, now: int, turns: DirectoryTurns, check: DirectoryCheck, answer: DirectoryAnswer) -> None:
        trace = self.trace
        if trace is None:
            return
        place = check.directory.place()
        if answer.why and self.refusals.admits(now, check.host, answer.why):
            user = check.user[:USER_SHOWN_MAX]
            trace.event("directory_user_refused", {"directory": place, "user": user, "why": answer.why})
        if answer.problem and not turns.away:
            turns.away = True
            turns.told = now - turns.told_at >= TOLD_NS
            if turns.told:
                turns.told_at = now
                trace.event(
                    "directory_unavailable",
                    {"directory": place, "why": answer.problem, "what_to_do": answer.remedy},
                )
        elif turns.away and not answer.problem:
            turns.away = False
            if turns.told:
                trace.event("directory_available", {"directory": place})

    def _remember(self, now: int, key: bytes, answer: DirectoryAnswer) -> None:
        if self.remembered_ns <= 0 or self.remembered_max <= 0:
            return
        self.remembered.pop(key, None)
        while len(self.remembered) >= self.remembered_max:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[key] = RememberedAnswer(answer, now + self.remembered_ns)

    def forget(self) -> None:
        """Clears the cache, and what is known of directories that nobody waits for."""
        self.remembered.clear()
        self.forgotten += 1
        for directory, turns in list(self.by_directory.items()):
            if not turns.turns.checks and not turns.away:
                del self.by_directory[directory]

    def _key(self, number: int, user: str, password: str | None) -> bytes:
        parts = [
            b"directory",
            number.to_bytes(8, "big"),
            self.forgotten.to_bytes(8, "big"),
            user.encode("utf-8", "surrogatepass"),
        ]
        if password is not None:
            parts.append(password.encode("utf-8", "surrogatepass"))
        return self.digest.of(parts)
