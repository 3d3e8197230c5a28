"""Settings and permissions of addresses named by a UUID, such as temporary ones (`uuid-namespace`).

Follows ActiveMQServerImpl.modifyMatchForUUID: only for look-ups such an address is called NAMESPACE.UUID.
"""

from __future__ import annotations

from typing import Final

UUID_CHARS: Final = 36
_HYPHENS: Final = (8, 13, 18, 23)
_DIGITS: Final = "0123456789abcdef"


def is_uuid(name: str) -> bool:
    """Returns True if the name is a UUID in lower case, as Java writes them."""
    if len(name) != UUID_CHARS:
        return False
    for i in range(UUID_CHARS):
        if i in _HYPHENS:
            if name[i] != "-":
                return False
        elif name[i] not in _DIGITS:
            return False
    return True


def in_namespace(address: str, namespace: str, delimiter: str) -> str:
    """Returns the name that settings and permissions of `address` are matched with; without a `namespace` its own."""
    if not namespace or not is_uuid(address.split("::", 1)[0]):
        return address
    return namespace + delimiter + address
