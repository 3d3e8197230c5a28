"""The rules of an address for its messages: expirations and diverts.

An address without rules has `rules` None and adds no cost to its messages. The rules are made when the address is
added to the registry, and when settings or diverts change (AddressRegistry.refresh_rules), but not per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.expiry_rule import ExpiryRule, rule_of

if TYPE_CHECKING:
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.settings.address_settings import AddressSettings
    from atalanta.message.message import Message


class DivertGroup:
    """The diverts of one routing name: each message goes to one of them, round-robin (BindingsImpl.getNextBinding)."""

    def __init__(self) -> None:
        self.diverts: list[Divert] = []
        self.position: int = 0

    def choose(self, message: Message, passed: list[str]) -> Divert | None:
        """Returns the next divert that takes the message and is not in `passed`."""
        total = len(self.diverts)
        for step in range(total):
            place = (self.position + step) % total
            divert = self.diverts[place]
            if divert.name not in passed and divert.takes(message):
                self.position = (place + 1) % total
                return divert
        return None


class AddressRules:
    """The rules of one address. `exclusive` diverts take a message away; each `copying` group gets one copy."""

    def __init__(
        self, expiry: ExpiryRule | None, exclusive: list[Divert], copying: list[DivertGroup]
    ) -> None:
        self.expiry = expiry
        self.exclusive = exclusive
        self.copying = copying

    def divert(self) -> bool:
        """Returns True if the address has diverts."""
        return bool(self.exclusive or self.copying)


def make_rules(settings: AddressSettings, diverts: list[Divert]) -> AddressRules | None:
    """Returns the rules of an address with these settings and diverts; None without any."""
    expiry = rule_of(settings)
    exclusive: list[Divert] = []
    copying: dict[str, DivertGroup] = {}
    for divert in diverts:
        if divert.exclusive:
            exclusive.append(divert)
        else:
            copying.setdefault(divert.routing_name, DivertGroup()).diverts.append(divert)
    if expiry is None and not exclusive and not copying:
        return None
    return AddressRules(expiry, exclusive, list(copying.values()))
