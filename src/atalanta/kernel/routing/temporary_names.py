"""The names of temporary destinations: what is registered as temporary decides, not the look of a name."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.routing.uuid_namespace import UUID_CHARS, is_uuid

CONNECTION_ID: Final = "ID:"  # begins the ids of OpenWire connections, and the names that they make of them
# No message has it: the filter of the queue that holds the address of a temporary topic.
NOTHING: Final = "_AMQX = -1"


@mypyc_attr(allow_interpreted_subclasses=True)
class TemporaryNames:
    """The names of the temporary destinations of this node. `owners`: the user who created one."""

    def __init__(self) -> None:
        self.owners: dict[str, str] = {}

    def add(self, name: str, user: str) -> None:
        """Registers a temporary destination, before its address is created."""
        self.owners[name] = user

    def remove(self, name: str) -> None:
        """Ends the registration, if there is one."""
        self.owners.pop(name, None)

    def owner(self, name: str) -> str | None:
        """Returns the user who created the temporary destination; None if none is registered."""
        return self.owners.get(name)

    def has(self, name: str) -> bool:
        """Returns True for a temporary destination."""
        return name in self.owners

    def is_elsewhere(self, name: str) -> bool:
        """Returns True for a name that is unique, of queues that only other members of the cluster have.

        They do not say which queues are temporary.
        """
        return False


def is_unique(name: str) -> bool:
    """Returns True for a name that nobody gives to a destination of many: it has a connection's id, or a UUID.

    Another name of a temporary destination could be meant by those who send to an ordinary one.
    """
    return name.startswith(CONNECTION_ID) or is_uuid(name[-UUID_CHARS:])
