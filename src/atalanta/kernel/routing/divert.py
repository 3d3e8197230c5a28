"""Diverts: messages of an address are routed, or also routed, to another address (DivertImpl).

A divert belongs to this node alone; the cluster does not announce it. Copies are in the journal record of the
original, so that all of them are durable, or none. A message passes each divert once, even if diverts form a cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.routing.divert_config import DivertConfig
    from atalanta.kernel.routing.wildcard_addresses import AddressPattern
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter

class Divert:
    """A divert of an address. `pattern` is set for a wildcard address: the divert covers all matching addresses."""

    def __init__(
        self,
        config: DivertConfig,
        selector: Filter | None,
        pattern: AddressPattern | None,
        automatic: bool,
    ) -> None:
        self.config = config
        self.name = config.name
        self.address = config.address
        self.exclusive = config.exclusive
        # A divert without a routing name has its own group. No configured routing name begins with a zero character.
        self.routing_name: str = config.routing_name or "\0" + config.name
        self.routing_type = config.routing_type
        self.filter = selector
        self.marked_by = config.marked_by
        self.pattern = pattern
        self.stored: bool = False  # created by management and kept in the journal
        self.automatic = automatic  # of a retroactive address: kernel/registry/retroactive_addresses.py
        self.targets: list[str] = []
        if automatic and config.forwarding_address:
            self.targets.append(config.forwarding_address)  # the name may have a comma
            return
        for part in config.forwarding_address.split(","):
            if part.strip():
                self.targets.append(part.strip())

    def covers(self, address: str) -> bool:
        return self.pattern is not None and self.pattern.matches(address)

    def takes(self, message: Message) -> bool:
        if self.marked_by and not is_true(message, self.marked_by):
            return False
        return self.filter is None or self.filter.matches(message)


def is_true(message: Message, name: str) -> bool:
    """Returns whether a property is true, as a boolean or as a text (Boolean.parseBoolean)."""
    return str(message.property_value(name)).lower() == "true"


class DivertIndex:
    """The diverts of a broker by their addresses."""

    def __init__(self) -> None:
        self.exact: dict[str, list[Divert]] = {}
        self.wild: list[Divert] = []

    def add(self, divert: Divert) -> None:
        if divert.pattern is not None:
            self.wild.append(divert)
        self.exact.setdefault(divert.address, []).append(divert)

    def remove(self, divert: Divert) -> None:
        if divert.pattern is not None:
            self.wild.remove(divert)
        kept = [other for other in self.exact[divert.address] if other is not divert]
        if kept:
            self.exact[divert.address] = kept
        else:
            del self.exact[divert.address]

    def has(self, address: str) -> bool:
        """Returns True if a divert has exactly this address."""
        return address in self.exact

    def of(self, address: str, with_wild: bool) -> list[Divert]:
        """Returns the diverts of the address; `with_wild` adds those of matching wildcard addresses."""
        found = list(self.exact.get(address, ()))
        if with_wild:
            for divert in self.wild:
                if divert.address != address and divert.covers(address):
                    found.append(divert)
        return found
