"""A directory (LDAP) that a login module asks: where it is, what is looked up there, and what it answers.

The meaning of each field is that of an option of LDAPLoginModule (Artemis, ActiveMQ Classic). What asks the directory
is a port: `Directories` in kernel/ports.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

CONNECT_TIMEOUT_MS = 5_000
READ_TIMEOUT_MS = 10_000


@dataclass(frozen=True)
class DirectoryConfig:
    """The options of one LDAPLoginModule. `urls` are `ldap://host:port` or `ldaps://host:port`, tried in this order.

    Bases are complete names. The filters have `{0}`: in `user_filter` the user's name; in `role_filter` his entry, and
    `{1}` is his name; in `expand_filter` a group. An empty `user_filter`: the user's name is that of his entry. An
    empty `role_attribute`: a role is the name of the group's entry. `classic`: the rules of ActiveMQ Classic.
    """

    urls: tuple[str, ...]
    bind_name: str = ""  # anonymous without
    bind_password: str = field(default="", repr=False)
    user_base: str = ""
    user_filter: str = ""
    user_subtree: bool = False
    user_role_attribute: str = ""
    role_base: str = ""
    role_filter: str = ""
    role_subtree: bool = False
    role_attribute: str = ""
    expand_filter: str = ""
    authenticates: bool = True
    classic: bool = False
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS
    read_timeout_ms: int = READ_TIMEOUT_MS
    trust_store: str = ""
    trust_store_password: str = field(default="", repr=False)
    more_roles: tuple[str, ...] = ()  # of every user

    def same_users(self, other: DirectoryConfig) -> bool:
        """Returns True if the other config asks the same servers for the same users and roles, perhaps with another
        password of the node, or more patience."""
        return self._users() == other._users()

    def _users(self) -> DirectoryConfig:
        return replace(
            self, bind_name="", bind_password="", trust_store="", trust_store_password="",
            connect_timeout_ms=0, read_timeout_ms=0,
        )  # fmt: skip

    def place(self) -> str:
        """Returns the addresses, for people."""
        return " ".join(self.urls)


class DirectoryAnswer:
    """The answer of a directory. `accepted`: the user is there, and the password is his, if one was given.

    `problem`: the directory gave no answer, and why; `remedy`: what to do then. `why`: the reason of a refusal that is
    none of the user's.
    """

    def __init__(
        self, accepted: bool, roles: tuple[str, ...] = (), problem: str = "", remedy: str = "", why: str = ""
    ) -> None:
        self.accepted = accepted
        self.roles = roles
        self.problem = problem
        self.remedy = remedy
        self.why = why
