"""The expirations that an address gives to messages sent to it (PostOfficeImpl.applyExpiryDelay)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.message.instant import later_ms

if TYPE_CHECKING:
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
