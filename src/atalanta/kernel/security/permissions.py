"""The check of permissions, with its figures for management."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import SECURITY, BrokerError
from atalanta.kernel.security.resource_limits import check_name
from atalanta.message.fqqn import split_fqqn

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
        """Raises BrokerError SECURITY unless the user has the permission on the address, or the FQQN `address`.

        ILLEGAL_STATE for a name that is too long: answers about names are kept.
        """
        if not identity.cluster:
            check_name(address)
        self._take(now, identity, permission, address, self.security.allowed(identity, permission, address))

    def check_temporary(self, now: int, identity: Identity, permission: str, address: str) -> None:
        """Raises as `check`, for a temporary destination that the user wants to create."""
        if not identity.cluster:
            check_name(address)
        allowed = self.security.allowed_temporary(identity, permission, address)
        self._take(now, identity, permission, address, allowed)

    def _take(self, now: int, identity: Identity, permission: str, address: str, allowed: bool) -> None:
        """Counts an answer, and raises BrokerError for a refusal."""
        if not allowed:
            raise self.refusal(now, identity, permission, address, refusal_text(identity.user, permission, address))
        self.granted += 1

    def refusal(self, now: int, identity: Identity, permission: str, address: str, why: str) -> BrokerError:
        """Counts and reports a refusal. Returns its error for the client."""
        self.refused += 1
        for observer in self.observers:
            observer.on_permission_refused(now, identity, permission, address)
        return BrokerError(SECURITY, why)

    def allows(self, identity: Identity, permission: str, address: str) -> bool:
        """Returns whether the user has the permission; a refusal here is no event: the user asked for nothing."""
        return self.security.allowed(identity, permission, address)


def check_type(permission: str) -> str:
    """Returns Artemis' constant of a permission: createDurableQueue is CREATE_DURABLE_QUEUE."""
    parts = [f"_{one}" if one.isupper() else one.upper() for one in permission]
    return "".join(parts)


def refusal_text(user: str, permission: str, address: str) -> str:
    """Returns the words of Artemis for a permission that a user does not have."""
    bare, queue = split_fqqn(address)
    wanted = f"User: {user} does not have permission='{check_type(permission)}'"
    if queue:
        return f"AMQ229213: {wanted} for queue {queue} on address {bare}"
    return f"AMQ229032: {wanted} on address {bare}"
