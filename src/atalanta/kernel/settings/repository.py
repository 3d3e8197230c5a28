"""The repository of address settings: matches with wildcards, merged as in Artemis.

For each attribute the most specific match that sets it wins; an attribute without a match has the default of
AddressSettings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from atalanta.kernel.routing.temporary_names import TemporaryNames
from atalanta.kernel.routing.uuid_namespace import is_uuid
from atalanta.kernel.routing.wildcard import WildcardConfiguration, WildcardMatch, verify_match
from atalanta.kernel.settings.address_settings import AddressSettings

__all__ = ["AddressSettings", "AddressSettingsRepository", "SettingValue"]

# Addresses whose merged settings are cached; a full cache is cleared.
CACHE_MAX: Final = 10_000

SettingValue = bool | int | float | str | None


class AddressSettingsRepository:
    """Settings by match. `add` sets attributes of one match, `match` returns the merged settings of an address."""

    def __init__(
        self,
        wildcard: WildcardConfiguration | None = None,
        literal_markers: str | None = None,
        uuid_namespace: str = "",
    ) -> None:
        self.wildcard: WildcardConfiguration = (
            wildcard if wildcard is not None else WildcardConfiguration()
        )
        self.literal_markers = literal_markers
        self.uuid_namespace = uuid_namespace
        self.temporaries: TemporaryNames = TemporaryNames()
        self.exact: dict[str, dict[str, SettingValue]] = {}
        self.literal: dict[str, dict[str, SettingValue]] = {}
        self.wild: list[tuple[WildcardMatch, dict[str, SettingValue]]] = []
        self.cache: dict[str, AddressSettings] = {}

    def add(self, match: str, values: Mapping[str, SettingValue]) -> None:
        """Replaces the attributes of `match`.

        `values`: attribute name of AddressSettings -> value; an absent name is not set. Raises ValueError for a
        malformed match, AttributeError for an unknown attribute.
        """
        literal = self._is_literal(match)
        verify_match(match[1:-1] if literal else match, self.wildcard)
        template = AddressSettings()
        stated: dict[str, SettingValue] = {}
        for name, value in values.items():
            getattr(template, name)
            stated[name] = value
        self.cache.clear()
        if literal:
            self.literal[match[1:-1]] = stated
            return
        if not self.wildcard.is_wild(match):
            self.exact[match] = stated
            return
        compiled = WildcardMatch(match, self.wildcard)
        self.wild = [entry for entry in self.wild if entry[0].text != match]
        self.wild.append((compiled, stated))
        self.wild.sort(key=_order)

    def replace(self, fresh: AddressSettingsRepository) -> None:
        """Takes over the matches of `fresh`, which must not be used afterwards."""
        self.exact = fresh.exact
        self.literal = fresh.literal
        self.wild = fresh.wild
        self.cache.clear()

    def match(self, address: str) -> AddressSettings:
        """Returns the merged settings of `address` (of an FQQN the part before `::`).

        The object stays the same until `add` or `replace`.
        """
        found = self.cache.get(address)
        if found is not None:
            return found
        bare = address.split("::", 1)[0]
        temporary = is_uuid(bare) or self.temporaries.has(bare)
        merged = self.of_temporary(bare) if temporary else self._merge(bare)
        if len(self.cache) >= CACHE_MAX:
            self.cache.clear()
        self.cache[address] = merged
        return merged

    def of_temporary(self, name: str) -> AddressSettings:
        """Returns the settings of a temporary destination, which need not exist yet: those of the `uuid_namespace`.

        An address that a UUID names has them too, as in Artemis (ActiveMQServerImpl.modifyMatchForUUID).
        """
        if not self.uuid_namespace:
            return self._merge(name)
        return self._merge(f"{self.uuid_namespace}{self.wildcard.delimiter}{name}")

    def forget(self, name: str) -> None:
        """Forgets the settings of a name that becomes temporary, or is no longer."""
        self.cache.pop(name, None)

    def _merge(self, address: str) -> AddressSettings:
        layers: list[dict[str, SettingValue]] = []  # the most specific first
        if address in self.exact:
            layers.append(self.exact[address])
        if address in self.literal:
            layers.append(self.literal[address])
        for compiled, stated in self.wild:
            if compiled.matches(address):
                layers.append(stated)
        merged = AddressSettings()
        for layer in reversed(layers):
            for name, value in layer.items():
                setattr(merged, name, value)
        return merged

    def states(self, name: str, value: SettingValue) -> bool:
        """Returns True if any match sets the attribute `name` to `value`."""
        return any(layer.get(name) == value for layer in self._layers())

    def _layers(self) -> list[dict[str, SettingValue]]:
        layers = [*self.exact.values(), *self.literal.values()]
        layers.extend(stated for _, stated in self.wild)
        return layers

    def slow_consumer_period_s(self) -> int:
        """Returns the shortest slow-consumer-check-period, 0 if no match sets a slow-consumer-threshold."""
        layers = self._layers()
        if not any("slow_consumer_threshold" in layer for layer in layers):
            return 0
        shortest = AddressSettings().slow_consumer_check_period_s
        for layer in layers:
            period = layer.get("slow_consumer_check_period_s")
            if isinstance(period, int):
                shortest = min(shortest, period)
        return shortest

    def _is_literal(self, match: str) -> bool:
        markers = self.literal_markers
        return (
            markers is not None
            and len(match) > 2
            and match[0] == markers[0]
            and match[-1] == markers[1]
        )


def _order(
    entry: tuple[WildcardMatch, dict[str, SettingValue]],
) -> tuple[int, int, tuple[int, ...], int]:
    return entry[0].order
