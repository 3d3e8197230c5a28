"""Diverts: messages of an address go, or go also, to another one (DivertImpl; fact sheet C10).

A divert belongs to this node alone and is never told to peers. Copies are written in the same journal record as the
original: all of them are there, or none. A message passes each divert once, however diverts lead to each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.divert_config import DivertConfig
    from atalanta.kernel.filter import Filter
    from atalanta.kernel.message import Message
    from atalanta.kernel.wildcard_addresses import AddressPattern

class Divert:
    """`pattern` is set when the divert's address is a wildcard: it then covers all matching addresses."""

    def __init__(
        self, config: DivertConfig, selector: Filter | None, pattern: AddressPattern | None
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
        self.targets: list[str] = []
        for part in config.forwarding_address.split(","):
            if part.strip():
                self.targets.append(part.strip())

    def covers(self, address: str) -> bool:
        return self.pattern is not None and self.pattern.matches(address)

    def takes(self, message: Message) -> bool:
        return self.filter is None or self.filter.matches(message)
