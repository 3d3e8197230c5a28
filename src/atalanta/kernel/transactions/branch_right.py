"""The right to a branch of a distributed transaction: it belongs to the user who has started it.

Whoever may manage the broker may end the branches of all, as do members of the cluster, which move them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import SECURITY, BrokerError
from atalanta.kernel.security.security import MANAGE

if TYPE_CHECKING:
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.security.security import Identity

# Metadata of a member's session: `=` and the user of the branches that the member hands over, or nothing.
USER_KEY: Final = "atalanta-xa-user"
USER_MARK: Final = "="


class BranchRight:
    """The right of a session's user to branches. `metadata` is that of the session."""

    def __init__(
        self, permissions: Permissions, identity: Identity, address: str, metadata: dict[str, str]
    ) -> None:
        self.permissions = permissions
        self.identity = identity
        self.address = address  # of management
        self.metadata = metadata

    def user(self) -> str | None:
        """Returns the user of a new branch; None for a member that does not say whose it is, and without security."""
        identity = self.identity
        if not identity.cluster:
            return identity.user if identity.validated else None
        named = self.metadata.get(USER_KEY, "")
        return named[len(USER_MARK) :] if named.startswith(USER_MARK) else None

    def covers(self, user: str | None) -> bool:
        """Returns True if the session may end a branch of that user."""
        identity = self.identity
        if user is None or user == identity.user or identity.cluster:
            return True
        return self.permissions.allows(identity, MANAGE, self.address)

    def check(self, now: int, user: str | None, name: str) -> None:
        """Raises BrokerError SECURITY unless the session may end the transaction `name` of that user."""
        if self.covers(user):
            return
        try:
            self.permissions.check(now, self.identity, MANAGE, self.address)
        except BrokerError as error:
            raise BrokerError(SECURITY, f"transaction {name} belongs to another user: {error.text}") from None
