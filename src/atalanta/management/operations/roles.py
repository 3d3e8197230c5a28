"""The roles and their permissions at an address, in the form of Role.toJson and CheckType.asObjectArray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.security import security
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Security

IN_ARRAYS: Final = (
    security.SEND,
    security.CONSUME,
    security.CREATE_DURABLE_QUEUE,
    security.DELETE_DURABLE_QUEUE,
    security.CREATE_NON_DURABLE_QUEUE,
    security.DELETE_NON_DURABLE_QUEUE,
    security.MANAGE,
    security.BROWSE,
    security.CREATE_ADDRESS,
    security.DELETE_ADDRESS,
    security.VIEW,
    security.EDIT,
)


class Roles:
    """The roles of the security settings."""

    def __init__(self, security: Security) -> None:
        self.security = security

    def permissions_of(self, address: str) -> dict[str, list[str]]:
        """Returns role -> permissions of the security setting that applies to the address."""
        found: dict[str, list[str]] = {}
        rule = self.security.rule(address)
        if rule is not None:
            for permission, roles in rule.permissions.items():
                for role in roles:
                    found.setdefault(role, []).append(permission)
        return found

    def as_arrays(self, address: str) -> list[list[object]]:
        """Returns one array for each role: its name, and whether it has each permission."""
        found: list[list[object]] = []
        for role, permissions in self.permissions_of(address).items():
            row: list[object] = [role]
            row.extend(name in permissions for name in IN_ARRAYS)
            found.append(row)
        return found

    def as_json(self, address: str) -> str:
        """Returns one object for each role."""
        found: list[dict[str, object]] = []
        for role, permissions in self.permissions_of(address).items():
            entry: dict[str, object] = {"name": role}
            for name in IN_ARRAYS:
                entry[name] = name in permissions
            found.append(entry)
        return encode_json(found)
