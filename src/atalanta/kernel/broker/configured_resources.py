"""The addresses, queues and diverts that the configuration names.

Follows ActiveMQServerImpl.deployReloadableConfigFromConfiguration and
undeployAddressesAndQueueNotInConfiguration. The file was validated before, so no error leaves the node half changed.
Queues that cannot be changed to their new definition are reported and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.changes import changes_to
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.routing.retroactive_names import is_resource

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.registry.diverts import DivertRegistry
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.registry.retroactive_addresses import RetroactiveAddresses
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.settings.broker_config import AddressConfig, BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository

FORCE: Final = "FORCE"


class ConfiguredResources:
    """Creates what `config` names, and deletes what it no longer names."""

    def __init__(
        self,
        config: BrokerConfig,
        settings: AddressSettingsRepository,
        addresses: AddressRegistry,
        queues: QueueRegistry,
        diverts: DivertRegistry,
        retroactive: RetroactiveAddresses,
        caches: DuplicateCaches,
        trace: Trace,
    ) -> None:
        self.config = config
        self.settings = settings
        self.addresses = addresses
        self.queues = queues
        self.diverts = diverts
        self.retroactive = retroactive
        self.caches = caches
        self.trace = trace

    # -- creation -------------------------------------------------------------------------------
    def create(self, now: int) -> None:
        """Creates configured addresses and queues, and the addresses of management; existing ones stay."""
        config = self.config
        addresses = self.addresses
        self.diverts.deploy()
        for name, multicast in (
            (config.management_address, False),
            (config.management_notification_address, True),
        ):
            if name not in addresses.by_name:
                addresses.create(now, name, not multicast, multicast, False, False)
            addresses.by_name[name].internal = True
            addresses.apply_settings(addresses.by_name[name])
        for configured in config.addresses:
            self._create_address(now, configured)
        self.retroactive.deploy(now)

    def _create_address(self, now: int, configured: AddressConfig) -> None:
        addresses = self.addresses
        known = addresses.by_name.get(configured.name)
        if known is None:
            addresses.create(
                now, configured.name, configured.anycast, configured.multicast, False
            )
        elif (configured.anycast and known.add_routing_type(ANYCAST)) | (
            configured.multicast and known.add_routing_type(0)
        ):
            addresses.store(known)
        if known is not None and configured.queues:
            # At a restart, new queues get the earlier messages of the address.
            self.retroactive.keep(now, known)
        for queue in configured.queues:
            spec = queue.spec()
            spec.take_defaults(self.settings.match(spec.address))
            queue.changes().create(spec)
            try:
                self._create_queue(now, spec, queue.enabled)
            except BrokerError as error:
                self.trace.event(
                    "configured_queue_refused", {"queue": spec.name, "why": error.text}
                )

    def _create_queue(self, now: int, spec: QueueSpec, enabled: bool | None) -> None:
        """Creates a configured queue; `enabled` None leaves that setting to an operator."""
        self.queues.delete_ownerless(now, spec.name)
        known = self.queues.by_name.get(spec.name)
        if known is None:
            self.queues.create(now, spec)
            return
        held = known.spec
        was_managed = held.configuration_managed
        held.configuration_managed = True
        if held.address != spec.address or held.routing_type != spec.routing_type:
            self._report_difference(
                spec, "its address or routing type changed: delete the queue first"
            )
        if held.last_value_key != spec.last_value_key:
            self._report_difference(spec, "its last-value key changed: delete the queue first")
        changes = changes_to(spec)
        changes.routing_type = None
        changes.enabled = enabled
        lsn = known.lsn
        self.queues.update(now, spec.name, changes)
        if known.durable and not was_managed and known.lsn == lsn:
            self.queues.store(known)

    def _report_difference(self, spec: QueueSpec, why: str) -> None:
        self.trace.event(
            "configured_queue_differs_unsupported", {"queue": spec.name, "why": why}
        )

    # -- a changed configuration ----------------------------------------------------------------
    def reload(self, now: int, fresh: BrokerConfig) -> None:
        """Changes the resources to those of `fresh`; address settings are up to date already."""
        self._change_diverts(now, fresh)
        self.config.addresses = fresh.addresses
        self.delete_unnamed(now)
        self.create(now)
        self._apply_settings()

    def change_settings(self, now: int) -> None:
        """Applies changed address settings to the addresses; what the configuration names stays as it is."""
        self.retroactive.deploy(now)
        self._apply_settings()

    def _apply_settings(self) -> None:
        self.addresses.implied.clear()
        for address in self.addresses.by_name.values():
            self.addresses.apply_settings(address)

    def _change_diverts(self, now: int, fresh: BrokerConfig) -> None:
        """Deletes diverts that are changed or no longer configured; those that management created stay."""
        wanted = {divert.name: divert for divert in fresh.diverts}
        for divert in list(self.diverts.by_name.values()):
            configured = wanted.get(divert.name)
            if configured is None and (divert.stored or divert.automatic):
                continue
            if configured is None or configured != divert.config:
                self.diverts.delete(now, divert.name)
        self.config.diverts = fresh.diverts

    def delete_unnamed(self, now: int) -> None:
        """Deletes queues and addresses that the configuration does not name, where the address settings say FORCE.

        The settings are config-delete-queues and config-delete-addresses. Called at the start, too.
        """
        configured = {address.name: address for address in self.config.addresses}
        for address in list(self.addresses.by_name.values()):
            if address.internal or is_resource(self.config, address.name):
                continue
            settings = self.settings.match(address.name)
            named = configured.get(address.name)
            if (
                named is None
                and not address.auto_created
                and settings.config_delete_addresses == FORCE
            ):
                self._delete_address(now, address)
            elif settings.config_delete_queues == FORCE:
                self._delete_queues(now, address, named)

    def _delete_address(self, now: int, address: Address) -> None:
        for queue in list(address.queues()):
            self._delete_queue(now, queue.name)
        if address.name in self.addresses.by_name:
            try:
                self.addresses.delete(now, address.name)
            except BrokerError as error:
                self.trace.event(
                    "undeploy_refused", {"address": address.name, "why": error.text}
                )
                return
        self.caches.forget_sent(address.name)
        self.trace.event("address_undeployed", {"address": address.name})

    def _delete_queues(self, now: int, address: Address, named: AddressConfig | None) -> None:
        kept = {} if named is None else {queue.name: True for queue in named.queues}
        for queue in list(address.queues()):
            if queue.spec.configuration_managed and queue.name not in kept:
                self._delete_queue(now, queue.name)

    def _delete_queue(self, now: int, name: str) -> None:
        count = self.queues.by_name[name].message_count
        self.queues.delete(now, name, "no longer in the configuration")
        self.trace.event("queue_undeployed", {"queue": name, "messages": count})
