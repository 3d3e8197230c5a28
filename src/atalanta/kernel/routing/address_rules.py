"""The rules of an address for its messages: expirations and diverts.

An address without rules has `rules` None and adds no cost to its messages. The rules are made when the address is
added to the registry, and when settings or diverts change (AddressRegistry.refresh_rules), but not per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.message.instant import later_ms

if TYPE_CHECKING:
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.settings.address_settings import AddressSettings
    from atalanta.message.message import Message


class ExpiryRule:
    """The expiry rule of an address; -1 is not set.

    `delay_ms` applies to messages without an expiration, the bounds to messages with one.
    """

    def __init__(self, settings: AddressSettings) -> None:
        self.never: bool = settings.no_expiry
        self.delay_ms: int = settings.expiry_delay_ms
        self.min_ms: int = settings.min_expiry_delay_ms
        self.max_ms: int = settings.max_expiry_delay_ms

    def apply(self, message: Message, now: int) -> None:
        """Sets the message's expiration; `delay_ms` takes precedence over the bounds."""
        now_ms = now // 1_000_000
        expiration = message.expiration
        wanted = expiration
        if self.never:
            wanted = 0
        elif self.delay_ms >= 0:
            if expiration == 0:
                wanted = later_ms(now_ms, self.delay_ms)
        elif expiration == 0:
            if self.max_ms >= 0:
                wanted = later_ms(now_ms, self.max_ms)
            elif self.min_ms >= 0:
                wanted = later_ms(now_ms, self.min_ms)
        elif 0 <= self.max_ms < expiration - now_ms:
            wanted = later_ms(now_ms, self.max_ms)
        elif self.min_ms >= 0 and expiration < now_ms + self.min_ms:
            wanted = later_ms(now_ms, self.min_ms)
        if wanted != expiration:
            message.expiration = wanted


def rule_of(settings: AddressSettings) -> ExpiryRule | None:
    """Returns the expiry rule of the settings; None if messages keep their expirations."""
    if (
        not settings.no_expiry
        and settings.expiry_delay_ms < 0
        and settings.min_expiry_delay_ms < 0
        and settings.max_expiry_delay_ms < 0
    ):
        return None
    return ExpiryRule(settings)


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
