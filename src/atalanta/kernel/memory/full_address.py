"""Full addresses: credits of their senders wait, and messages are dropped or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_FULL, BrokerError
from atalanta.kernel.memory.address_memory import BLOCK, DROP, FAIL, Account
from atalanta.kernel.memory.memory import MESSAGE_MEMORY_BYTES
from atalanta.message.fqqn import split_fqqn

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import SenderEndpoint
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.publish.duplicate_detection import DuplicateDetection
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.transactions.transaction import SessionTransaction
    from atalanta.message.message import Message

AWAITED_MAX: Final = 1_000


class FullAddresses:
    """Grants credits to senders, and decides about messages to full addresses.

    `peer` says that the sender is another node: its messages are never failed, since its bridge waits for credits.
    """

    def __init__(
        self, addresses: AddressRegistry, memory: Memory, trace: Trace, duplicates: DuplicateDetection
    ) -> None:
        self.addresses = addresses
        self.memory = memory
        self.duplicates = duplicates
        self.trace = trace
        self.unknown = Account()  # of addresses that do not exist yet
        self.awaited: dict[str, Account] = {}  # of those whose senders wait, by name
        self.awaited_max: int = AWAITED_MAX  # what has no senders any more is forgotten then

    def request_credits(
        self, endpoint: SenderEndpoint, peer: bool, address: str, amount: int, since: int
    ) -> None:
        """Grants credits when memory allows (ServerSessionImpl.requestProducerCredits); `since`: see Memory.request.

        Internal addresses get them at once.
        """
        name = split_fqqn(address)[0]
        known = self.addresses.by_name.get(name)
        if known is not None and known.internal:
            endpoint.credits(address, amount)
            return
        if known is not None:
            account = known.account
        else:
            account = self.awaited.get(name) or Account()
            account.apply(self.addresses.settings.match(name))
        self.memory.request(endpoint, account, address, amount, peer, since)
        if known is None:
            self._remember(name, account)

    def _remember(self, name: str, account: Account) -> None:
        """Keeps the account of an address that does not exist yet while senders wait for it."""
        if account.waiting:
            if name not in self.awaited and len(self.awaited) >= self.awaited_max:
                self.awaited = {other: each for other, each in self.awaited.items() if each.waiting}
                self.awaited_max = max(AWAITED_MAX, 2 * len(self.awaited))
            self.awaited[name] = account
        else:
            self.awaited.pop(name, None)

    def drops(self, message: Message, peer: bool, endpoint: SenderEndpoint) -> bool:
        """Returns True if a full address drops the message; BrokerError ADDRESS_FULL if it fails senders, or if the
        sender ignores that it gets no credits.

        Called while any address refuses.
        """
        name = split_fqqn(message.address)[0]
        address = self.addresses.by_name.get(name)
        if address is None or address.internal:
            return False
        memory = self.memory
        account = address.account
        if not account.refusing and not memory.asks_all():
            return False
        if self.duplicates.knows(message):
            return False  # its sender may not hear that a message is refused, or dropped, that was taken
        policy = memory.refusal(account)
        if policy == FAIL and not peer:
            raise BrokerError(ADDRESS_FULL, f"AMQ229102: address {name} is full")
        exhaustion = memory.exhaustion()
        if exhaustion is not None and policy != DROP:
            raise exhaustion
        if policy == BLOCK and not peer:
            memory.refuse(account)
            self._check_overrun(endpoint, account, name, message.size)
        if policy != DROP:
            return False
        self._count_dropped(account, name)
        return True

    def check_piece(self, address_name: str, size: int, peer: bool, endpoint: SenderEndpoint) -> None:
        """Raises BrokerError ADDRESS_FULL if the sender of a large message ignores that it gets no credits, or if the
        node has no disk for it.

        Called for each piece, while any address refuses.
        """
        name = split_fqqn(address_name)[0]
        address = self.addresses.by_name.get(name)
        exhaustion = self.memory.exhaustion()
        if exhaustion is not None:
            raise exhaustion
        if peer or (address is not None and address.internal):
            return
        account = self.unknown
        if address is not None:
            account = address.account
        if self.memory.withheld(account, False):
            self._check_overrun(endpoint, account, name, size)

    def _check_overrun(
        self, endpoint: SenderEndpoint, account: Account, name: str, size: int
    ) -> None:
        if self.memory.overruns.exceeded(endpoint, account, size):
            why = f"AMQ229102: address {name} is full, and its sender goes on without credits (producerWindowSize=-1?)"
            endpoint.cut_off(why)
            raise BrokerError(ADDRESS_FULL, why)

    def drops_in_transaction(
        self, transaction: SessionTransaction, address: Address | None, message: Message
    ) -> bool:
        """Decides like `drops`, with the earlier sends of the transaction counted as if they were in the address.

        `address`: if the caller knows it. It is not called for peers.
        """
        if address is None:
            address = self.addresses.by_name.get(split_fqqn(message.address)[0])
            if address is None:
                return False
        account = address.account
        if account.policy < FAIL:
            return False
        if transaction.pressing is None:
            transaction.pressing = {}
        taken, count = transaction.pressing.get(address.name, (0, 0))
        memory = self.memory
        if (
            account.bytes + taken >= account.limit_bytes
            or account.messages + count >= account.limit_messages
            or memory.used_bytes + transaction.bytes >= memory.limit_bytes
            or memory.used_messages + len(transaction.messages) >= memory.limit_messages
        ):
            if self.duplicates.knows(message):
                return False
            if account.policy == FAIL:
                raise BrokerError(ADDRESS_FULL, f"AMQ229102: address {address.name} is full")
            self._count_dropped(account, address.name)
            return True
        transaction.pressing[address.name] = (
            taken + message.size + MESSAGE_MEMORY_BYTES,
            count + 1,
        )
        return False

    def _count_dropped(self, account: Account, name: str) -> None:
        account.dropped += 1
        self.trace.count("messages_dropped_address_full")
        if account.dropped == 1:
            self.trace.event("address_drops_messages", {"address": name})
