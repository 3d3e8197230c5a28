"""An operation on the files of users and roles, and its answer (listUser, addUser, removeUser, resetUser)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.security.security import Security

LIST: Final = "list"
ADD: Final = "add"
REMOVE: Final = "remove"
RESET: Final = "reset"


@dataclass(frozen=True)
class UserOperation:
    """One operation. `kind` is LIST, ADD, REMOVE or RESET.

    LIST: `user` "" means all users. RESET: None leaves the password or the roles unchanged. `plain`: the password is
    stored as it is, not as its hash.
    """

    kind: str
    user: str
    password: str | None = field(default=None, repr=False)
    roles: tuple[str, ...] | None = None
    plain: bool = False


@dataclass(frozen=True)
class UserAnswer:
    """The end of an operation; `why` is "" on success.

    `users` are the names and roles of LIST. `security` has the users of the changed files; None without a change, and
    without security.
    """

    why: str = ""
    users: tuple[tuple[str, tuple[str, ...]], ...] = ()
    security: Security | None = None
