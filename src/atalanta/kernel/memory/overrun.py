"""The bytes that senders send although they get no credits.

For each name of an address, queues of it included (FQQN), a client of Artemis has at most two times its largest
request for credits in hand or on its way (AbstractProducerCreditsImpl.checkCredits). It may use that up after the
address has become full. A sender that sends much more ignores credits: a client with producerWindowSize=-1 does, or one
that wants to fill the node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.memory.address_memory import UNLIMITED

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import SenderEndpoint
    from atalanta.kernel.memory.address_memory import Account

# Every sender may send that much to a full address, whether it ever asked for credits or not.
OVERRUN_BYTES_LEAST: Final = 1 << 20
# Requests above this part of it count only as far as the address could take them.
OVERRUN_BYTES_USUAL: Final = 64 << 20
REQUESTS_IN_HAND: Final = 4  # twice what a client has
NAMES_MAX: Final = 100  # of one session, whose requests are added up


class SenderRequests:
    """A sender's largest requests, their sum, and by account its bytes: (number of the account's blockage, bytes)."""

    def __init__(self) -> None:
        self.requests: dict[str, int] = {}
        self.request_bytes: int = 0
        self.sent: dict[Account, tuple[int, int]] = {}


class Overruns:
    """The senders of the node; each session is one."""

    def __init__(self) -> None:
        self._senders: dict[SenderEndpoint, SenderRequests] = {}

    def _sender(self, endpoint: SenderEndpoint) -> SenderRequests:
        sender = self._senders.get(endpoint)
        if sender is None:
            sender = self._senders[endpoint] = SenderRequests()
        return sender

    def requested(self, endpoint: SenderEndpoint, address: str, amount: int) -> None:
        """Records a request for credits."""
        sender = self._sender(endpoint)
        known = sender.requests.get(address, 0)
        if amount > known and (known > 0 or len(sender.requests) < NAMES_MAX):
            sender.requests[address] = amount
            sender.request_bytes += amount - known

    def granted(self, endpoint: SenderEndpoint, account: Account) -> None:
        """Records a grant: the sender may send again."""
        sender = self._senders.get(endpoint)
        if sender is not None and sender.sent:
            sender.sent.pop(account, None)

    def exceeded(self, endpoint: SenderEndpoint, account: Account, size: int) -> bool:
        """Counts bytes sent to an address that grants no credits; returns true if no honest sender sends so many."""
        sender = self._sender(endpoint)
        blockage, sent = sender.sent.get(account, (account.blockages, 0))
        if blockage != account.blockages:
            sent = 0
        sent += size
        sender.sent[account] = (account.blockages, sent)
        if sent <= OVERRUN_BYTES_LEAST:
            return False
        usual = OVERRUN_BYTES_USUAL
        if account.limit_bytes < UNLIMITED:
            usual = max(usual, 2 * account.limit_bytes)
        return sent > min(REQUESTS_IN_HAND * sender.request_bytes, usual)

    def forget(self, endpoint: SenderEndpoint) -> None:
        """Removes a closed sender."""
        self._senders.pop(endpoint, None)
