"""The names of temporary destinations: what is registered as temporary decides, not the look of a name.

A temporary destination is a temporary queue of its own address: a temporary queue or, with routing type MULTICAST, a
temporary topic, whose queue only holds the address (as ActiveMQSession of artemis-jms-client makes them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.uuid_namespace import UUID_CHARS, is_uuid

if TYPE_CHECKING:
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.routing.address import Address

CONNECTION_ID: Final = "ID:"  # begins the ids of OpenWire connections, and the names that they make of them
# No message has it: the filter of the queue that holds the address of a temporary topic.
NOTHING: Final = "_AMQX = -1"


class TemporaryNames:
    """The temporary destinations of this node. `owners`: the user who created one, by its name."""

    def __init__(self, addresses: dict[str, Address]) -> None:
        self.addresses = addresses
        self.owners: dict[str, str] = {}

    def add(self, name: str, user: str) -> None:
        """Registers a temporary destination."""
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

    def is_made_by(self, spec: QueueSpec) -> bool:
        """Returns True if the creation of that queue makes a temporary destination.

        Peers may have announced queues of the name, as those of a client that has come from there.
        """
        if not spec.temporary or spec.name != spec.address:
            return False
        address = self.addresses.get(spec.address)
        return address is None or (address.lsn == 0 and address.local_count == 0)

    def is_elsewhere(self, name: str) -> bool:
        """Returns True for a name that is unique, of queues that only other members of the cluster have.

        They do not say which queues are temporary.
        """
        address = self.addresses.get(name)
        if address is None or address.local_count > 0 or not address.groups:
            return False
        return is_unique(name)


def is_unique(name: str) -> bool:
    """Returns True for a name that nobody gives to a destination of many: it has a connection's id, or a UUID.

    Another name of a temporary destination could be meant by those who send to an ordinary one.
    """
    return name.startswith(CONNECTION_ID) or is_uuid(name[-UUID_CHARS:])
