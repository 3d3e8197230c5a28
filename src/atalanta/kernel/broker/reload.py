"""The reload of a changed configuration: address settings, security, addresses and queues, diverts.

Follows ActiveMQServerImpl.deployReloadableConfigFromConfiguration. The file was validated before, so no error leaves
the node half changed. Queues that cannot be changed to their new definition are reported and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.broker import maintenance
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.routing.retroactive_names import is_resource
from atalanta.kernel.sessions.ingress_headers import stamping_wanted

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Security
    from atalanta.kernel.settings.broker_config import AddressConfig, BrokerConfig
    from atalanta.kernel.settings.repository import AddressSettingsRepository

FORCE = "FORCE"


def reload(
    broker: Broker,
    now: int,
    fresh: BrokerConfig,
    settings: AddressSettingsRepository,
    security: Security,
) -> None:
    """Applies all of `fresh` that can change without a restart, and ignores the rest."""
    config = broker.config
    broker.security.replace(security)
    config.security_rules = fresh.security_rules
    config.resource_limits = fresh.resource_limits
    broker.settings.replace(settings)
    broker.stamping = stamping_wanted(config, settings)
    config.address_settings = fresh.address_settings
    _change_diverts(broker, now, fresh)
    config.addresses = fresh.addresses
    undeploy(broker, now)
    maintenance.create_configured(broker, now)
    for address in broker.addresses.values():
        broker.address_registry.apply_settings(address)


def _change_diverts(broker: Broker, now: int, fresh: BrokerConfig) -> None:
    """Deletes diverts that are changed or no longer configured; those that management created stay."""
    wanted = {divert.name: divert for divert in fresh.diverts}
    for divert in list(broker.diverts.by_name.values()):
        configured = wanted.get(divert.name)
        if configured is None and (divert.stored or divert.automatic):
            continue
        if configured is None or configured != divert.config:
            broker.diverts.delete(now, divert.name)
    broker.config.diverts = fresh.diverts


def undeploy(broker: Broker, now: int) -> None:
    """Deletes queues and addresses that the file no longer names, if config-delete-queues or -addresses says FORCE.

    Follows ActiveMQServerImpl.undeployAddressesAndQueueNotInConfiguration, also at the start.
    """
    configured = {address.name: address for address in broker.config.addresses}
    for address in list(broker.addresses.values()):
        if address.internal or is_resource(broker.config, address.name):
            continue
        settings = broker.settings.match(address.name)
        named = configured.get(address.name)
        if (
            named is None
            and not address.auto_created
            and settings.config_delete_addresses == FORCE
        ):
            _delete_address(broker, now, address)
        elif settings.config_delete_queues == FORCE:
            _delete_queues(broker, now, address, named)


def _delete_address(broker: Broker, now: int, address: Address) -> None:
    for queue in list(address.queues()):
        _delete(broker, now, queue.name)
    if address.name in broker.addresses:
        try:
            broker.address_registry.delete(now, address.name)
        except BrokerError as error:
            broker.trace.event("undeploy_refused", {"address": address.name, "why": error.text})
            return
    broker.caches.forget_sent(address.name)
    broker.trace.event("address_undeployed", {"address": address.name})


def _delete_queues(
    broker: Broker, now: int, address: Address, named: AddressConfig | None
) -> None:
    kept = {} if named is None else {queue.name: True for queue in named.queues}
    for queue in list(address.queues()):
        if queue.spec.configuration_managed and queue.name not in kept:
            _delete(broker, now, queue.name)


def _delete(broker: Broker, now: int, name: str) -> None:
    count = broker.queues[name].message_count
    broker.queue_registry.delete(now, name, "no longer in the configuration")
    broker.trace.event("queue_undeployed", {"queue": name, "messages": count})
