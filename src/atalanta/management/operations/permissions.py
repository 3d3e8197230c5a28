"""The permissions of the user of a request: for consoles, which draw only the buttons that work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Call, Operations, Parameters, text_of

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session

NAMES_MAX: Final = 200
# Whether a session may call an operation (or read an attribute by its getter) of a resource.
Allows = Callable[["Session | None", str, str], bool]


class PermissionOperations:
    """The operation of the resource `broker` that tells what else the caller may call."""

    def __init__(self, allows: Allows) -> None:
        self.allows = allows
        self.operations: Operations = {"listPermittedOperations": [("sa", self.list_permitted)]}

    def list_permitted(self, call: Call, given: Parameters) -> object:
        """(resource, names): returns those of the names that the caller may call. No name needs to exist."""
        resource = text_of(given, 0)
        names = given[1]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BrokerError(ILLEGAL_STATE, "listPermittedOperations takes a resource and a list of operations")
        if len(names) > NAMES_MAX:
            raise BrokerError(ILLEGAL_STATE, f"listPermittedOperations takes at most {NAMES_MAX} names")
        return [name for name in names if self.allows(call.session, resource, name)]
