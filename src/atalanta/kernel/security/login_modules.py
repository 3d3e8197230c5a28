"""The chain of login modules that `login.config` lists (javax.security.auth.login.Configuration).

Four kinds are supported: passwords of artemis-users.properties (PropertiesLoginModule), client certificates
(TextFileCertificateLoginModule), guests (GuestLoginModule) and directories (LDAPLoginModule). Of the last kind there
may be several. The flags have the same meaning as in Java.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atalanta.kernel.security.directory import DirectoryConfig

PASSWORD: Final = "password"
CERTIFICATE: Final = "certificate"
GUEST: Final = "guest"
DIRECTORY: Final = "directory"
REQUIRED: Final = "required"
REQUISITE: Final = "requisite"
SUFFICIENT: Final = "sufficient"
OPTIONAL: Final = "optional"
FLAGS: Final = (REQUIRED, REQUISITE, SUFFICIENT, OPTIONAL)

REFUSED: Final = 0
ACCEPTED: Final = 1
UNDECIDED: Final = 2  # the password has to be checked

# The outcome of a module. One that is left out counts neither as success nor as failure.
FAILED: Final = 0
PASSED: Final = 1
LEFT_OUT: Final = 2
UNKNOWN: Final = 3


def same_name(subject: str) -> str:
    """Returns a distinguished name without blanks around its parts: Java writes blanks, RFC 2253 does not."""
    parts: list[str] = []
    part = ""
    quoted = False
    escaped = False
    for character in subject:
        if character == "," and not quoted and not escaped:
            parts.append(part.strip())
            part = ""
            continue
        if character == '"' and not escaped:
            quoted = not quoted
        escaped = character == "\\" and not escaped
        part += character
    parts.append(part.strip())
    return ",".join(parts)


class CertificateUsers:
    """Users by the subject of their certificate, and the roles of users."""

    def __init__(self) -> None:
        self.by_subject: dict[str, str] = {}
        self.patterns: list[tuple[re.Pattern[str], str]] = []
        self.roles: dict[str, list[str]] = {}

    def add(self, user: str, subject: str) -> None:
        """Adds a user; `subject`: distinguished name, or regular expression in slashes. ValueError if malformed."""
        if len(subject) > 1 and subject.startswith("/") and subject.endswith("/"):
            try:
                self.patterns.append((re.compile(subject[1:-1]), user))
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"'{subject}' is not a regular expression: {error}") from error
        else:
            self.by_subject[same_name(subject)] = user

    def users(self) -> list[str]:
        """Returns the names of all users."""
        return [*self.by_subject.values(), *(user for _, user in self.patterns)]

    def user_of(self, subject: str) -> str | None:
        """Returns the user of a certificate; None without a certificate, and for an unknown one."""
        if not subject:
            return None
        found = self.by_subject.get(same_name(subject))
        if found is None:
            for pattern, user in self.patterns:
                if pattern.fullmatch(subject) is not None:
                    return user
        return found


class Guest:
    """The guest user. `strict`: not for clients that send a password (`credentialsInvalidate`). `nameless`: nor for
    those that send a name, which may be mistyped (`anonymousAccessAllowed`; SimpleAuthenticationBroker).
    """

    def __init__(self, user: str, role: str, strict: bool, nameless: bool = False) -> None:
        self.user = user
        self.role = role
        self.strict = strict
        self.nameless = nameless

    def same(self, other: Guest | None) -> bool:
        return (
            other is not None
            and self.user == other.user
            and self.role == other.role
            and self.strict == other.strict
            and self.nameless == other.nameless
        )


class DirectoryResults:
    """The results of the directories of a chain for one login, in the order of their modules.

    `user`: whom they were asked about. `roles`: of each, also of one that is left out and knows the user whom a module
    before it has found.
    """

    def __init__(self, user: str, outcomes: list[int]) -> None:
        self.user = user
        self.outcomes = outcomes
        self.roles: list[tuple[str, ...]] = [() for _ in outcomes]

    def contribute(self) -> bool:
        """Returns True if a directory has accepted the user, or given him roles."""
        for at in range(len(self.outcomes)):
            if self.outcomes[at] == PASSED or self.roles[at]:
                return True
        return False


NO_RESULTS: Final = DirectoryResults("", [])


class LoginChain:
    """The login modules as (kind, flag) in order; `password_roles` are the roles file's roles by user.

    `directories` are those of the modules of that kind, in their order.
    """

    def __init__(
        self,
        modules: Sequence[tuple[str, str]],
        certificates: CertificateUsers,
        password_roles: dict[str, list[str]],
        guest: Guest | None = None,
        directories: Sequence[DirectoryConfig] = (),
    ) -> None:
        self.modules: list[tuple[str, str]] = list(modules)
        self.certificates = certificates
        self.password_roles = password_roles
        self.guest = guest
        self.directories: list[DirectoryConfig] = list(directories)
        self.directory_flags: list[str] = [flag for kind, flag in self.modules if kind == DIRECTORY]

    def same_directories(self, other: LoginChain | None) -> bool:
        """Returns True if the other chain has the same modules and asks the same directories for the same."""
        if other is None or self.modules != other.modules or len(self.directories) != len(other.directories):
            return False
        for mine, its in zip(self.directories, other.directories, strict=True):
            if not mine.same_users(its):
                return False
        return other.guest is None if self.guest is None else self.guest.same(other.guest)

    def may_be_guest(self, name_given: bool, password_given: bool) -> bool:
        """Returns True if the client may be a guest (GuestLoginModule.login)."""
        guest = self.guest
        if guest is None or (guest.strict and password_given):
            return False
        return not (guest.nameless and name_given)

    def _outcomes(
        self, certified: bool, password_ok: bool | None, guest: bool, results: DirectoryResults
    ) -> list[int]:
        """Returns the outcome of each module. A directory that was not asked, as for the cluster user, has failed."""
        found: list[int] = []
        number = 0
        for kind, _ in self.modules:
            if kind == DIRECTORY:
                found.append(results.outcomes[number] if number < len(results.outcomes) else FAILED)
                number += 1
            elif kind == CERTIFICATE:
                found.append(PASSED if certified else FAILED)
            elif kind == GUEST:
                found.append(PASSED if guest else FAILED)
            elif password_ok is None:
                found.append(UNKNOWN)
            else:
                found.append(PASSED if password_ok else FAILED)
        return found

    def is_guest(self, certified: bool, password_ok: bool, results: DirectoryResults = NO_RESULTS) -> bool:
        """Returns True if the chain reaches the guest module, so that the identity is, or includes, the guest."""
        end = self.reached(certified, password_ok, True, results)
        return any(kind == GUEST for kind, _ in self.modules[:end])

    def reached(
        self, certified: bool, password_ok: bool, guest: bool, results: DirectoryResults
    ) -> int:
        """Returns how many modules are asked until the result is certain."""
        outcomes = self._outcomes(certified, password_ok, guest, results)
        failed = False
        for at in range(len(outcomes)):
            flag = self.modules[at][1]
            outcome = outcomes[at]
            if outcome == PASSED and flag == SUFFICIENT and not failed:
                return at + 1
            if outcome == FAILED and flag == REQUISITE:
                return at + 1
            failed = failed or (outcome == FAILED and flag == REQUIRED)
        return len(outcomes)

    def directories_within(self, end: int) -> int:
        """Returns how many of the first `end` modules are directories."""
        return [kind for kind, _ in self.modules[:end]].count(DIRECTORY)

    def next_unknown(
        self, certified: bool, password_ok: bool | None, guest: bool, results: DirectoryResults
    ) -> int:
        """Returns the first module without an outcome: that directory, or -1 for the password."""
        number = 0
        for (kind, _), outcome in zip(
            self.modules, self._outcomes(certified, password_ok, guest, results), strict=True
        ):
            if outcome == UNKNOWN:
                return number if kind == DIRECTORY else -1
            if kind == DIRECTORY:
                number += 1
        return -1

    def verdict(
        self,
        certified: bool,
        password_ok: bool | None,
        guest: bool = False,
        results: DirectoryResults = NO_RESULTS,
    ) -> int:
        """Returns the result of the chain. `guest`: see may_be_guest.

        `password_ok` None: the password is not checked yet; UNDECIDED then means that the result depends on the
        password, or on a directory that is not asked yet.
        """
        failed = False
        must = False
        may = False
        outcomes = self._outcomes(certified, password_ok, guest, results)
        for at in range(len(outcomes)):
            flag = self.modules[at][1]
            outcome = outcomes[at]
            if outcome == UNKNOWN:
                return REFUSED if failed else UNDECIDED
            if outcome == LEFT_OUT:
                continue
            ok = outcome == PASSED
            if flag == SUFFICIENT:
                if ok and not failed:
                    return ACCEPTED
            elif flag == REQUIRED or flag == REQUISITE:
                must = True
                failed = failed or not ok
                if not ok and flag == REQUISITE:
                    return REFUSED
            may = may or ok
        if failed:
            return REFUSED
        return ACCEPTED if must or may else REFUSED

    def name(
        self,
        certified: str | None,
        named: str | None,
        guest: bool = False,
        results: DirectoryResults = NO_RESULTS,
        before: int = -1,
    ) -> str:
        """Returns the user's name, of the first user found (ActiveMQJAASSecurityManager.getUserFromSubject).

        `before`: only of the modules before that directory.
        """
        number = 0
        for kind, _ in self.modules:
            found = certified if kind == CERTIFICATE else named
            if kind == GUEST:
                found = self.guest.user if guest and self.guest is not None else None
            elif kind == DIRECTORY:
                if number == before:
                    return ""
                passed = number < len(results.outcomes) and results.outcomes[number] == PASSED
                found = results.user if passed else None
                number += 1
            if found is not None:
                return found
        return ""

    def roles(
        self,
        certified: str | None,
        named: str | None,
        named_roles: Sequence[str],
        guest: bool = False,
        results: DirectoryResults = NO_RESULTS,
    ) -> tuple[str, ...]:
        """Returns the roles of all modules; the properties' roles also for a user found by certificate before."""
        found: dict[str, bool] = {}
        seen = False
        number = 0
        for kind, _ in self.modules:
            roles: list[str] = []
            if kind == CERTIFICATE:
                seen = certified is not None
                roles = self.certificates.roles.get(certified or "", []) if seen else []
            elif kind == GUEST:
                roles = [self.guest.role] if guest and self.guest is not None else []
            elif kind == DIRECTORY:
                roles = list(results.roles[number]) if number < len(results.roles) else []
                number += 1
            else:
                roles = list(named_roles) if named is not None else []
                if seen:
                    roles += self.password_roles.get(certified or "", [])
            for role in roles:
                found[role] = True
        return tuple(found)
