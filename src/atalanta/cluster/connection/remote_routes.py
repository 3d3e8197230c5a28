"""The remote bindings that this node routes messages to, of all peers of all cluster connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.address import Address
from atalanta.kernel.routing.retroactive_names import is_resource

if TYPE_CHECKING:
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.publish.grouping import GroupingHandler
    from atalanta.kernel.publish.message_router import MessageRouter
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.bindings import BindingRegistry
    from atalanta.kernel.routing.bindings import RemoteBinding
    from atalanta.kernel.settings.broker_config import BrokerConfig


class RemoteRoutes:
    """The active remote binding of each queue, by cluster name. Nodes further away are notified of each change."""

    def __init__(
        self,
        config: BrokerConfig,
        router: MessageRouter,
        addresses: AddressRegistry,
        bindings: BindingRegistry,
        notifications: Notifications,
    ) -> None:
        self.config = config
        self.router = router
        self.addresses = addresses
        self.bindings = bindings
        self.notifications = notifications
        self.active: dict[str, RemoteBinding] = {}

    @property
    def grouping(self) -> GroupingHandler | None:
        return self.router.grouping

    def is_local_only(self, address_name: str) -> bool:
        """Returns whether each node fills that address itself, so that no binding of it is taken from others."""
        return is_resource(self.config, address_name)

    def add(self, now: int, remote: RemoteBinding) -> None:
        """Adds the binding to its address: messages are routed to it from now on."""
        remote.id = self.bindings.take_id()
        self.active[remote.cluster_name] = remote
        self._address(remote.address).add_remote(remote)
        self.bindings.add(remote)
        self.notifications.remote_binding(now, "BINDING_ADDED", remote)
        if self.router.grouping is not None:
            self.router.grouping.remote_added(now, remote.cluster_name)

    def replace(self, old: RemoteBinding, new: RemoteBinding) -> None:
        """Routes to `new` instead of `old`, under the same binding id."""
        new.id = old.id
        old.id = 0
        self.active[new.cluster_name] = new
        self.bindings.add(new)
        address = self._address(old.address)
        address.add_remote(new)
        address.remove_remote(old)

    def remove(self, now: int, remote: RemoteBinding) -> None:
        """Removes the binding from its address, and the address if nothing else needs it."""
        self.active.pop(remote.cluster_name, None)
        self.bindings.remove(remote)
        address = self.addresses.by_name.get(remote.address)
        if address is not None:
            address.remove_remote(remote)
            if (
                not address.groups
                and address.lsn == 0
                and address.auto_created
                and not address.internal
            ):
                self.addresses.remove(address)
        self.notifications.remote_binding(now, "BINDING_REMOVED", remote)

    def _address(self, name: str) -> Address:
        address = self.addresses.by_name.get(name)
        if address is None:
            address = Address(name, True, True, True)
            self.addresses.add(address)
        return address
