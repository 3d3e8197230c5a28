"""Diverts: messages of an address go, or go also, to another one (DivertImpl; fact sheet C10).

A divert belongs to this node alone and is never told to peers. Copies are written in the same journal record as the
original: all of them are there, or none. A message passes each divert once, however diverts lead to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.routing.divert_config import DivertConfig
    from atalanta.kernel.routing.wildcard_addresses import AddressPattern
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter

class Divert:
    """`pattern` is set when the divert's address is a wildcard: it then covers all matching addresses."""

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
        # Without one of its own it shares with nobody; no routing name of a file begins with a zero character.
        self.routing_name: str = config.routing_name or "\0" + config.name
        self.routing_type = config.routing_type
        self.filter = selector
        self.pattern = pattern
        self.stored: bool = False  # created by management: in the journal
        self.automatic = automatic  # of a retroactive address: kernel/registry/retroactive.py
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
        return self.filter is None or self.filter.matches(message)


class DivertIndex:
    """The diverts of a broker by their addresses: there may be one for every address."""

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
        """Whether there is one of exactly this address."""
        return address in self.exact

    def of(self, address: str, with_wild: bool) -> list[Divert]:
        """Those whose messages are the address'; with those of wildcard addresses, if wanted."""
        found = list(self.exact.get(address, ()))
        if with_wild:
            for divert in self.wild:
                if divert.address != address and divert.covers(address):
                    found.append(divert)
        return found
