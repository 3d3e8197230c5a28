"""The producer credits of one session: bytes that it may send to an address.

Clients, and links between nodes, use the rule of ClientProducerCreditsImpl: at least half of the window is available
or requested. A broker short of memory does not answer the request, and the messages wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits

CREDITS_MAX: Final = (1 << 31) - 1


class AddressCredits:
    """The credits for one address. `send` sends a packet of the session; `window_bytes` up to 0: no flow control."""

    def __init__(self, address: str, window_bytes: int, send: Callable[[Packet], None]) -> None:
        self.address = address
        self.unlimited: bool = window_bytes <= 0
        self._half: int = window_bytes // 2 if window_bytes > 0 else 0
        self._balance: int = 0
        self._arriving: int = 0
        self._send = send

    def begin(self) -> None:
        """Requests the window; a new session has no credits."""
        self._balance = 0
        self._arriving = 0
        if not self.unlimited:
            self._request(self._half * 2)

    def take(self, cost: int) -> bool:
        """Takes credits, and requests more before they run out; returns False if there are not enough."""
        if self.unlimited:
            return True
        self._balance -= cost
        if self._balance + self._arriving < self._half:
            self._request(self._half * 2 - self._balance - self._arriving)
        if self._balance >= 0:
            return True
        self._balance += cost
        if self._balance + self._arriving < cost:
            self._request(cost - self._balance - self._arriving)
        return False

    def granted(self, amount: int) -> None:
        """Adds the credits of SESS_PRODUCER_CREDITS."""
        self._balance += amount
        self._arriving = max(0, self._arriving - amount)

    def _request(self, amount: int) -> None:
        amount = min(amount, CREDITS_MAX)
        if amount > 0:
            self._arriving += amount
            self._send(RequestProducerCredits(amount, self.address))


class SessionCredits:
    """The credits of one session by address, requested when the first message of an address is sent."""

    def __init__(self, window_bytes: int, send: Callable[[Packet], None]) -> None:
        self.window_bytes = window_bytes
        self.by_address: dict[str, AddressCredits] = {}
        self._send = send

    def take(self, address: str, cost: int) -> bool:
        """Takes credits for a message; returns False if there are not enough."""
        credits = self.by_address.get(address)
        if credits is None:
            credits = AddressCredits(address, self.window_bytes, self._send)
            self.by_address[address] = credits
            credits.begin()
        return credits.take(cost)

    def granted(self, packet: ProducerCredits) -> None:
        """Adds the credits that the broker granted."""
        credits = self.by_address.get(packet.address)
        if credits is not None:
            credits.granted(packet.credits)
