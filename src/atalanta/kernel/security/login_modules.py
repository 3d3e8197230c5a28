"""The chain of login modules that `login.config` lists (javax.security.auth.login.Configuration).

Three kinds are supported: passwords of artemis-users.properties (PropertiesLoginModule), client certificates
(TextFileCertificateLoginModule) and guests (GuestLoginModule). The flags have the same meaning as in Java.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PASSWORD: Final = "password"
CERTIFICATE: Final = "certificate"
GUEST: Final = "guest"
REQUIRED: Final = "required"
REQUISITE: Final = "requisite"
SUFFICIENT: Final = "sufficient"
OPTIONAL: Final = "optional"
FLAGS: Final = (REQUIRED, REQUISITE, SUFFICIENT, OPTIONAL)

REFUSED: Final = 0
ACCEPTED: Final = 1
UNDECIDED: Final = 2  # the password has to be checked


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


class LoginChain:
    """The login modules as (kind, flag) in order; `password_roles` are the roles file's roles by user."""

    def __init__(
        self,
        modules: Sequence[tuple[str, str]],
        certificates: CertificateUsers,
        password_roles: dict[str, list[str]],
        guest: Guest | None = None,
    ) -> None:
        self.modules: list[tuple[str, str]] = list(modules)
        self.certificates = certificates
        self.password_roles = password_roles
        self.guest = guest

    def may_be_guest(self, name_given: bool, password_given: bool) -> bool:
        """Returns True if the client may be a guest (GuestLoginModule.login)."""
        guest = self.guest
        if guest is None or (guest.strict and password_given):
            return False
        return not (guest.nameless and name_given)

    def is_guest(self, certified: bool, password_ok: bool) -> bool:
        """Returns True if the chain reaches the guest module, so that the identity is, or includes, the guest."""
        failed = False
        for kind, flag in self.modules:
            if kind == GUEST:
                return True
            ok = certified if kind == CERTIFICATE else password_ok
            if ok and flag == SUFFICIENT and not failed:
                return False
            if not ok and flag == REQUISITE:
                return False
            failed = failed or (not ok and flag == REQUIRED)
        return False

    def verdict(self, certified: bool, password_ok: bool | None, guest: bool = False) -> int:
        """Returns the result of the chain. `guest`: see may_be_guest.

        `password_ok` None: the password is not checked yet; UNDECIDED then means that the result depends on the
        password.
        """
        failed = False
        must = False
        may = False
        for kind, flag in self.modules:
            ok = certified if kind == CERTIFICATE else password_ok
            if kind == GUEST:
                ok = guest
            if ok is None:
                return REFUSED if failed else UNDECIDED
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

    def name(self, certified: str | None, named: str | None, guest: bool = False) -> str:
        """Returns the user's name, of the first user found (ActiveMQJAASSecurityManager.getUserFromSubject)."""
        for kind, _ in self.modules:
            found = certified if kind == CERTIFICATE else named
            if kind == GUEST:
                found = self.guest.user if guest and self.guest is not None else None
            if found is not None:
                return found
        return ""

    def roles(
        self,
        certified: str | None,
        named: str | None,
        named_roles: Sequence[str],
        guest: bool = False,
    ) -> tuple[str, ...]:
        """Returns the roles of all modules; the properties' roles also for a user found by certificate before."""
        found: dict[str, bool] = {}
        seen = False
        for kind, _ in self.modules:
            if kind == CERTIFICATE:
                seen = certified is not None
                roles = self.certificates.roles.get(certified or "", []) if seen else []
            elif kind == GUEST:
                roles = [self.guest.role] if guest and self.guest is not None else []
            else:
                roles = list(named_roles) if named is not None else []
                if seen:
                    roles += self.password_roles.get(certified or "", [])
            for role in roles:
                found[role] = True
        return tuple(found)
