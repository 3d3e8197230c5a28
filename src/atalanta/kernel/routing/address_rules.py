"""What is special about an address on the way of its messages: expirations it gives, diverts.

An address without anything special has `rules` None, and its messages pay nothing. The rules are made when an address
enters the broker, and anew by `refresh` whenever settings or diverts change: never for a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.expiry_rule import ExpiryRule, rule_of
from atalanta.kernel.routing.retroactive_names import is_resource

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.divert import Divert
    from atalanta.message.message import Message


class DivertGroup:
    """Diverts of one routing name: they take turns, each message goes to one of them (BindingsImpl.getNextBinding)."""

    def __init__(self) -> None:
        self.diverts: list[Divert] = []
        self.position: int = 0

    def choose(self, message: Message, passed: list[str]) -> Divert | None:
        """The next one that takes the message and is not among the `passed`."""
        total = len(self.diverts)
        for step in range(total):
            place = (self.position + step) % total
            divert = self.diverts[place]
            if divert.name not in passed and divert.takes(message):
                self.position = (place + 1) % total
                return divert
        return None


class AddressRules:
    """`exclusive` diverts take a message away, of each group of others (`copying`) one gets a copy of it."""

    def __init__(
        self, expiry: ExpiryRule | None, exclusive: list[Divert], copying: list[DivertGroup]
    ) -> None:
        self.expiry = expiry
        self.exclusive = exclusive
        self.copying = copying


def refresh(broker: Broker, address: Address) -> None:
    """The rules of one address as settings and diverts are now."""
    expiry = rule_of(broker.settings_of(address.name))
    exclusive: list[Divert] = []
    copying: dict[str, DivertGroup] = {}
    # What a retroactive address keeps was diverted once, where it was sent.
    outside = not is_resource(broker.config, address.name)
    hidden = broker.wildcards.hides(address.name)
    for divert in broker.divert_index.of(address.name, outside):
        if hidden and divert.automatic:
            continue
        if divert.exclusive:
            exclusive.append(divert)
        else:
            copying.setdefault(divert.routing_name, DivertGroup()).diverts.append(divert)
    if expiry is None and not exclusive and not copying:
        address.set_rules(None)
    else:
        address.set_rules(AddressRules(expiry, exclusive, list(copying.values())))
