"""Permissions."""

from __future__ import annotations

from atalanta.kernel.security.permissions import Permissions
from atalanta.kernel.security.security import Identity
from tests.sim.mutants.patching import Patch


def queues_have_no_permissions(patch: Patch) -> None:
    """A rule for `address::queue` decides nothing."""
    check = Permissions.check

    def bare(self: Permissions, now: int, identity: Identity, permission: str, address: str) -> None:
        check(self, now, identity, permission, address.split("::", 1)[0])

    patch.setattr(Permissions, "check", bare)
