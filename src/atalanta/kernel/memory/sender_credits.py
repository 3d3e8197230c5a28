"""Credits of the senders of one client whose protocol has none: the server asks for them in the client's name.

A message for a full address waits until the address has room; what waits with it is the protocol's decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

REQUEST_BYTES: Final = 64 << 10
ADDRESSES_MAX: Final = 1_000


class SenderCredits:
    """The credits by address, in bytes (`left`). Messages for the addresses in `blocked` wait; those in `unblocked`
    have room for the message that has waited.
    """

    def __init__(self) -> None:
        self.left: dict[str, int] = {}
        self.blocked: dict[str, bool] = {}
        self.unblocked: dict[str, bool] = {}

    def take(self, address: str, size: int, refusing: bool, request: Callable[[str, int], None]) -> bool:
        """Takes the credits of a message of `size` bytes. Returns False if it must wait.

        `refusing`: some address refuses messages, so no more is asked for than this one needs. `request` asks for
        credits, and is answered by `grant` or `block`, perhaps at once.
        """
        if self.blocked and address in self.blocked:
            return False
        left = self.left.get(address, 0)
        if self.unblocked and address in self.unblocked:
            del self.unblocked[address]  # this is the message that waited
        elif left <= 0 or refusing:
            if len(self.left) >= ADDRESSES_MAX:
                self.left.clear()
            self.left[address] = 0
            request(address, size + (0 if refusing else REQUEST_BYTES))
            if address in self.blocked:
                return False
            left = self.left[address]
        self.left[address] = left - size
        return True

    def grant(self, address: str, amount: int) -> None:
        """Adds credits in bytes; a negative amount takes some back."""
        self.left[address] = self.left.get(address, 0) + amount

    def block(self, address: str) -> None:
        """Records that the message for the address waits."""
        self.blocked[address] = True

    def unblock(self, address: str) -> bool:
        """Records that the waiting message may go on. Returns False if none waits for the address."""
        if address not in self.blocked:
            return False
        del self.blocked[address]
        if len(self.unblocked) >= ADDRESSES_MAX:
            self.unblocked.clear()  # marks of messages that are not sent any more
        self.unblocked[address] = True
        return True
