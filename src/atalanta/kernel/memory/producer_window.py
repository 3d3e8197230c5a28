"""Larger producer windows for clients that ask with Artemis' default window, while memory is far from full.

A client of Artemis keeps two times half a producerWindowSize (64 KiB by default) in hand or on its way
(AbstractProducerCreditsImpl.checkCredits). With 1 KiB messages, that is a packet of credit for every 26 messages, and
reads that bring as few. A client that once gets more credit than it asked for asks for that much more from then on,
because `arriving` has become negative. A client that once gets that much less returns to its own window. So the node
chooses the window, and takes it back when memory gets short. A client with another window gets exactly the credit it
asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.memory.address_memory import BLOCK, PAGE, UNLIMITED
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import SenderEndpoint
    from atalanta.kernel.memory.address_memory import Account

USUAL_WINDOW_BYTES: Final = 64 * 1024
# Clients ask for half of their window at a time.
USUAL_REQUEST_BYTES: Final = USUAL_WINDOW_BYTES // 2
# The windows' growth takes at most this part of a limit: senders may exceed a reached limit by that.
LIMIT_PART: Final = 8
# Addresses of one session; for further ones the session gets the credit it asks for.
ADDRESSES_MAX: Final = 100


class CreditWindows:
    """The growth of the clients' windows.

    `more_bytes`: credit that a client gets once beyond its request; 0: none. Its window grows by two times that.
    `given_bytes`: the growth of all windows.
    """

    def __init__(self) -> None:
        self.more_bytes: int = 0
        self.given_bytes: int = 0
        self._of_address: dict[str, int] = {}
        # By session: address -> extra credit; 0: none, or taken back, until the session closes.
        self._of_endpoint: dict[SenderEndpoint, dict[str, int]] = {}

    def choose(self, window_bytes: int) -> None:
        """Sets the window for clients with the default one; at that size or less, windows do not grow."""
        self.more_bytes = max(0, (window_bytes - USUAL_WINDOW_BYTES) // 2)

    def answer(
        self,
        endpoint: SenderEndpoint,
        account: Account,
        address: str,
        amount: int,
        used_bytes: int,
        limit_bytes: int,
    ) -> int:
        """Returns the credits for a request that need not wait; `used_bytes` and `limit_bytes` are the node's."""
        given = self._of_endpoint.get(endpoint)
        if given is None:
            given = {}
            self._of_endpoint[endpoint] = given
        more = given.get(address)
        has_room = account.bytes * 2 <= account.limit_bytes and used_bytes * 2 <= limit_bytes
        if more is not None:
            return amount if has_room or more == 0 else self._take_back(given, address, amount)
        if len(given) >= ADDRESSES_MAX:
            return amount
        given[address] = 0
        if amount != USUAL_REQUEST_BYTES or not has_room or account.policy not in (PAGE, BLOCK):
            return amount
        more = self.more_bytes
        name = split_fqqn(address)[0]
        of_address = self._of_address.get(name, 0) + 2 * more
        if (
            of_address * LIMIT_PART > account.limit_bytes
            or (self.given_bytes + 2 * more) * LIMIT_PART > limit_bytes
            or account.limit_messages != UNLIMITED
        ):
            return amount
        given[address] = more
        self._of_address[name] = of_address
        self.given_bytes += 2 * more
        return amount + more

    def late(self, endpoint: SenderEndpoint, address: str, amount: int) -> int:
        """Returns the credits for a request that had to wait for memory."""
        given = self._of_endpoint.get(endpoint)
        return amount if given is None else self._take_back(given, address, amount)

    def _take_back(self, given: dict[str, int], address: str, amount: int) -> int:
        """Takes the extra credit back from a client's next full request, not from the rest for one large message."""
        more = given.get(address, 0)
        anew = amount == USUAL_REQUEST_BYTES  # a client that was refused, or forgot its credits: it has no more
        if more == 0 or (amount < USUAL_REQUEST_BYTES + more and not anew):
            return amount
        self._release(address, more)
        given[address] = 0
        return amount if anew else amount - more

    def forget(self, endpoint: SenderEndpoint) -> None:
        """Removes the windows of a closed session."""
        given = self._of_endpoint.pop(endpoint, None)
        if given is not None:
            for address, more in given.items():
                if more:
                    self._release(address, more)

    def _release(self, address: str, more: int) -> None:
        self.given_bytes -= 2 * more
        name = split_fqqn(address)[0]
        left = self._of_address[name] - 2 * more
        if left:
            self._of_address[name] = left
        else:
            del self._of_address[name]
