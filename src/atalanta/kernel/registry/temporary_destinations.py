"""The register of the temporary destinations of a node.

A temporary destination is a temporary queue of its own address: a temporary queue or, with routing type MULTICAST, a
temporary topic, whose queue only holds the address (as ActiveMQSession of artemis-jms-client makes them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.temporary_names import TemporaryNames, is_unique

if TYPE_CHECKING:
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.repository import AddressSettingsRepository


class TemporaryDestinationRegister(TemporaryNames):
    """The register. A name's settings are others while it is registered."""

    def __init__(self, addresses: dict[str, Address], settings: AddressSettingsRepository) -> None:
        super().__init__()
        self.addresses = addresses
        self.settings = settings

    def add(self, name: str, user: str) -> None:
        super().add(name, user)
        self.settings.forget(name)

    def remove(self, name: str) -> None:
        super().remove(name)
        self.settings.forget(name)

    def is_made_by(self, spec: QueueSpec) -> bool:
        """Returns True if the creation of that queue makes a temporary destination.

        Peers may have announced queues of the name, as those of a client that has come from there.
        """
        if not spec.temporary or spec.name != spec.address:
            return False
        address = self.addresses.get(spec.address)
        return address is None or (address.lsn == 0 and address.local_count == 0)

    def is_elsewhere(self, name: str) -> bool:
        address = self.addresses.get(name)
        if address is None or address.local_count > 0 or not address.groups:
            return False
        return is_unique(name)
