"""The check of permissions, with its figures for management."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import SECURITY, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.security.security import Identity, Security


class Permissions:
    """Checks permissions, and counts and reports the answers. Sends count once per session and address."""

    def __init__(self, security: Security, observers: list[Observer]) -> None:
        self.security = security
        self.observers = observers
        self.granted: int = 0
        self.refused: int = 0

    def check(self, now: int, identity: Identity, permission: str, address: str) -> None:
        """Raises BrokerError SECURITY unless the user has the permission on the address."""
        if not self.security.allowed(identity, permission, address):
            self.refused += 1
            for observer in self.observers:
                observer.on_permission_refused(now, identity, permission, address)
            raise BrokerError(
                SECURITY,
                f"user {identity.user} does not have permission {permission} on address {address}",
            )
        self.granted += 1
