"""The users of directories (LDAP) who are logged in: one identity each, whose roles are those of the last answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.security.login_modules import DirectoryResults
    from atalanta.kernel.security.security import Identity, Security, User

USERS_MAX: Final = 10_000  # identities that a change of users updates


class DirectoryUser:
    """The identity of a user whom a directory knows, and what it was made of; `named` is the user of a password."""

    def __init__(
        self, identity: Identity, subject: str, named: str, guest: bool, results: DirectoryResults
    ) -> None:
        self.identity = identity
        self.subject = subject
        self.named = named
        self.guest = guest
        self.results = results


class DirectoryUsers:
    """The users, by the subject of their certificate, the name of the password's user, whether as a guest, the name
    of the identity, whom the directories were asked about, and which of them accepted him.

    Users of a directory who share a certificate, or are guests too, have one name and each his own roles.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[str, str, bool, str, str, tuple[int, ...]], DirectoryUser] = {}

    def identity(
        self, fresh: Identity, subject: str, named: str, guest: bool, results: DirectoryResults
    ) -> Identity:
        """Returns the identity of a login, `fresh` for a new user. Those who are logged in get its roles, too."""
        key = (subject, named, guest, fresh.user, results.user, tuple(results.outcomes))
        user = self.known.get(key)
        if user is None:
            if len(self.known) < USERS_MAX:
                self.known[key] = DirectoryUser(fresh, subject, named, guest, results)
            return fresh
        user.results = results
        user.identity.change_roles(fresh.roles)
        return user.identity

    def renew(self, security: Security, same: dict[str, User], asks_the_same: bool) -> None:
        """Gives the users their roles again, or none if the files let them in for another reason now.

        `same`: the users of the files whose password is what it was. `asks_the_same`: so are the modules.
        """
        for key, user in list(self.known.items()):
            named = same.get(user.named)
            if asks_the_same and (named is not None or user.named == ""):
                fresh = security.of_directory(user.subject, named, user.guest, user.results)
                if fresh.user == user.identity.user:
                    user.identity.change_roles(fresh.roles)
                    continue
            user.identity.change_roles(())
            del self.known[key]
