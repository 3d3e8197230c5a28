"""What is special about an address on the way of its messages: expirations it gives, diverts.

An address without anything special has `rules` None, and its messages pay nothing. The rules are made when an address
enters the broker, and anew by `refresh` whenever settings or diverts change: never for a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.expiry import ExpiryRule, rule_of

if TYPE_CHECKING:
    from atalanta.kernel.address import Address
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.divert import Divert


class AddressRules:
    """`exclusive` diverts take a message away, the others (`copying`) get copies of it."""

    def __init__(
        self, expiry: ExpiryRule | None, exclusive: list[Divert], copying: list[Divert]
    ) -> None:
        self.expiry = expiry
        self.exclusive = exclusive
        self.copying = copying


def refresh(broker: Broker, address: Address) -> None:
    """The rules of one address as settings and diverts are now."""
    expiry = rule_of(broker.settings_of(address.name))
    exclusive: list[Divert] = []
    copying: list[Divert] = []
    for divert in broker.diverts.values():
        if divert.address == address.name or divert.covers(address.name):
            (exclusive if divert.exclusive else copying).append(divert)
    if expiry is None and not exclusive and not copying:
        address.set_rules(None)
    else:
        address.set_rules(AddressRules(expiry, exclusive, copying))


def refresh_all(broker: Broker) -> None:
    """After a change of the address settings or of a divert."""
    for address in broker.addresses.values():
        refresh(broker, address)
