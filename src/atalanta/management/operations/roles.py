"""The roles and their permissions at an address, in the form of Role.toJson and CheckType.asObjectArray."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.security import security
from atalanta.management.request.call import Call
from atalanta.management.request.json_text import encode_json

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


def permissions_of(call: Call, address: str) -> dict[str, list[str]]:
    """Returns role -> permissions of the security setting that applies to the address."""
    found: dict[str, list[str]] = {}
    rule = call.broker.security.rule(address)
    if rule is not None:
        for permission, roles in rule.permissions.items():
            for role in roles:
                found.setdefault(role, []).append(permission)
    return found


def roles_of(call: Call, address: str) -> object:
    found: list[list[object]] = []
    for role, permissions in permissions_of(call, address).items():
        row: list[object] = [role]
        row.extend(name in permissions for name in IN_ARRAYS)
        found.append(row)
    return found


def roles_as_json(call: Call, address: str) -> str:
    found: list[dict[str, object]] = []
    for role, permissions in permissions_of(call, address).items():
        entry: dict[str, object] = {"name": role}
        for name in IN_ARRAYS:
            entry[name] = name in permissions
        found.append(entry)
    return encode_json(found)
