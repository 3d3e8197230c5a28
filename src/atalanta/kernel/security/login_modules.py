"""Several login modules, one after the other, as `login.config` lists them (javax.security.auth.login.Configuration).

Three kinds are known: passwords of artemis-users.properties (PropertiesLoginModule), client certificates
(TextFileCertificateLoginModule) and guests (GuestLoginModule). The flags mean what they mean in Java.
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
UNDECIDED: Final = 2  # the password has to be looked at


def same_name(subject: str) -> str:
    """A distinguished name without blanks around its parts: Java writes it with them, RFC 2253 without."""
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
        """`subject` is a distinguished name, or a regular expression between slashes. ValueError for a bad one."""
        if len(subject) > 1 and subject.startswith("/") and subject.endswith("/"):
            try:
                self.patterns.append((re.compile(subject[1:-1]), user))
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"'{subject}' is no regular expression: {error}") from error
        else:
            self.by_subject[same_name(subject)] = user

    def user_of(self, subject: str) -> str | None:
        """None without a certificate, and for one that nobody named."""
        if not subject:
            return None
        found = self.by_subject.get(same_name(subject))
        if found is None:
            for pattern, user in self.patterns:
                if pattern.fullmatch(subject) is not None:
                    return user
        return found


class Guest:
    """Who comes in without being somebody. `strict`: not who gives a password (`credentialsInvalidate`)."""

    def __init__(self, user: str, role: str, strict: bool) -> None:
        self.user = user
        self.role = role
        self.strict = strict

    def same(self, other: Guest | None) -> bool:
        return (
            other is not None
            and self.user == other.user
            and self.role == other.role
            and self.strict == other.strict
        )


class LoginChain:
    """`modules` are (kind, flag) in their order; `password_roles` are those of the properties' role file by user."""

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

    def may_be_guest(self, password_given: bool) -> bool:
        """GuestLoginModule.login."""
        return self.guest is not None and not (self.guest.strict and password_given)

    def is_guest(self, certified: bool, password_ok: bool) -> bool:
        """Whether the guests' module is reached, so that the guest is (a part of) who logs in."""
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
        """`password_ok` None: not looked at; UNDECIDED then means that it matters. `guest`: see may_be_guest."""
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
        """Of those who were found the first is the user (ActiveMQJAASSecurityManager.getUserFromSubject)."""
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
        """All modules' roles; the properties' also for a user that a certificate named before them."""
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
