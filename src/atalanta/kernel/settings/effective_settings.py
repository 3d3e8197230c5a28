"""The settings that apply: those of broker.xml, and those that management operations made."""

from __future__ import annotations

from atalanta.kernel.security.security import SecurityRule
from atalanta.kernel.settings.broker_config import AddressSetting, BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository


def all_address_settings(config: BrokerConfig) -> list[AddressSetting]:
    """Returns all address settings. Of several with the same match the last one applies."""
    return [*config.address_settings, *config.stored.address_settings]


def all_security_rules(config: BrokerConfig) -> list[SecurityRule]:
    """Returns all rules. Of several with the same match the last one applies."""
    return [*config.security_rules, *config.stored.security_rules]


def settings_repository(config: BrokerConfig) -> AddressSettingsRepository:
    """Returns the repository of all address settings."""
    repository = AddressSettingsRepository(
        config.wildcard,
        config.literal_match_markers,
        config.uuid_namespace or config.temporary_queue_namespace,
    )
    for setting in all_address_settings(config):
        repository.add(setting.match, setting.values)
    return repository
