"""Users that the configuration itself has, instead of the files beside it (activemq.xml)."""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.kernel.security.login_modules import Guest


@dataclass(frozen=True)
class NamedUser:
    """A user of a configuration file, with his line. The password is plain text."""

    name: str
    password: str
    roles: tuple[str, ...]
    file: str
    line: int


@dataclass
class LoginSource:
    """The source of the users: `users`, or the entry `domain` of login.config. Every user has the role `everyone`."""

    users: list[NamedUser] = field(default_factory=list)
    domain: str = ""
    guest: Guest | None = None
    everyone: str = ""

    def roles_of_all(self) -> list[str]:
        """Returns the roles that every user has."""
        return [self.everyone] if self.everyone else []
