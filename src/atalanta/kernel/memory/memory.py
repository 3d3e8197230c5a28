"""The memory of all messages of the node, and the producer credits that are withheld while it is full.

A sender asks for credits (bytes) before it sends. An address may be full by its own limits or by the node's
(global-max-size, global-max-messages). Its address-full-policy then applies to its senders
(PagingStoreImpl.checkMemory): BLOCK delays the reply until consumers have freed memory; FAIL refuses the request, and
grants it later all the same; PAGE and DROP grant it. While the disk is full all requests wait. A sender that sends on
without credits is refused (kernel/memory/overrun.py). For a peer's bridge only messages in clients' queues count. If
messages for other nodes counted too, two nodes full of messages for each other would wait for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ADDRESS_FULL, ILLEGAL_STATE, BrokerError
from atalanta.kernel.memory.address_memory import (
    BLOCK,
    DROP,
    FAIL,
    PAGE,
    UNLIMITED,
    Account,
    CreditRequest,
)
from atalanta.kernel.memory.overrun import Overruns
from atalanta.kernel.memory.producer_window import CreditWindows

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import SenderEndpoint
    from atalanta.kernel.ports import Timers, Trace
    from atalanta.kernel.queue.reference import Reference

# Memory of a message's objects beside its body and headers; and of a further queue's reference to it.
MESSAGE_MEMORY_BYTES: Final = 400
REFERENCE_MEMORY_BYTES: Final = 100
# Addresses for which one session may wait for credits at a time: a client has that many producers at most.
WAITING_ADDRESSES_MAX: Final = 1_000
SENDERS_TIMER: Final = "kernel.senders"


class Memory:
    """The node's memory. `used_bytes` and `used_messages` are totals; `forward_bytes` is for store-and-forward queues.

    `paging`: addresses with the policy PAGE use page files; without page files they block instead.
    """

    def __init__(self, limit_bytes: int, limit_messages: int, trace: Trace, timers: Timers) -> None:
        self.limit_bytes: int = limit_bytes if limit_bytes >= 0 else UNLIMITED
        self.limit_messages: int = limit_messages if limit_messages >= 0 else UNLIMITED
        self.trace = trace
        self.timers = timers
        self.due: int = -1  # of the timer of the requests that wait; -1: it is not set
        self.used_bytes: int = 0
        self.used_messages: int = 0
        self.forward_bytes: int = 0
        # Upper bound of transactions' bytes; ended ones are subtracted when it seems too high (full_address.py).
        self.uncommitted_bytes: int = 0
        self.paging: bool = False
        # Pages that wait for the disk are in memory too: senders wait while there are many.
        self.disk_behind: bool = False
        self.disk_full: bool = False
        # No further file can be made: what is left of the disk is for acknowledgements.
        self.disk_exhausted: bool = False
        # Number of accounts that are refusing, and of reasons to ask all; senders check no account while it is 0.
        self.refusing: int = 0
        self.freed: bool = False
        self.waiting: list[Account] = []
        self.waits: dict[SenderEndpoint, int] = {}
        self.windows = CreditWindows()
        self.overruns = Overruns()

    # -- charging -------------------------------------------------------------------------------
    def charge(self, reference: Reference) -> bool:
        """Charges a message that a queue takes; returns true if its address, or the node, is full now."""
        queue = reference.queue
        message = reference.message
        account = queue.account
        size = reference.size + MESSAGE_MEMORY_BYTES
        if queue.internal:
            self.forward_bytes += size
            account.messages += 1
            self.used_messages += 1
        elif message.holders == 0:
            message.holders = 1
            message.account = account
            account.messages += 1
            self.used_messages += 1
        else:
            size = REFERENCE_MEMORY_BYTES
            message.holders += 1
            paying = message.account
            if paying is not None:
                account = paying
        account.bytes += size
        self.used_bytes += size
        return (
            account.bytes >= account.limit_bytes
            or account.messages >= account.limit_messages
            or self.used_bytes >= self.limit_bytes
            or self.used_messages >= self.limit_messages
        )

    def release(self, reference: Reference) -> None:
        """Releases a message that has left its queue, or memory."""
        queue = reference.queue
        message = reference.message
        account = queue.account
        size = reference.size + MESSAGE_MEMORY_BYTES
        if queue.internal:
            self.forward_bytes -= size
            account.messages -= 1
            self.used_messages -= 1
        else:
            message.holders -= 1
            paying = message.account
            if paying is not None:
                account = paying
            if message.holders == 0:
                account.messages -= 1
                self.used_messages -= 1
            else:
                size = REFERENCE_MEMORY_BYTES
        account.bytes -= size
        self.used_bytes -= size
        self.freed = True

    def full(self) -> bool:
        return self.used_bytes >= self.limit_bytes or self.used_messages >= self.limit_messages

    def full_for_peers(self) -> bool:
        return self.used_bytes - self.forward_bytes >= self.limit_bytes

    def full_for(self, account: Account) -> bool:
        """Returns true if the address is full by its own limits or by the node's."""
        return account.full() or self.full()

    # -- refusing messages ----------------------------------------------------------------------
    def refuse(self, account: Account) -> None:
        """Makes senders to the address check `refusal` before each message from here on."""
        if not account.refusing:
            account.refusing = True
            account.blockages += 1
            self.refusing += 1

    def refusal(self, account: Account) -> int:
        """Returns FAIL or DROP if the address takes no message now, BLOCK if its senders should wait; else -1, and
        checks stop until `refuse`."""
        if self.disk_full and account.disk_policy >= 0:
            return account.disk_policy
        if account.policy in (FAIL, DROP):
            if self.full_for(account):
                return account.policy
        elif account.policy == PAGE and account.page_full():
            return account.page_policy
        if self.withheld(account, False):
            return BLOCK
        if account.refusing:
            account.refusing = False
            self.refusing -= 1
        return -1

    # -- producer credits -----------------------------------------------------------------------
    def request(
        self, endpoint: SenderEndpoint, account: Account, address: str, amount: int, peer: bool, since: int = -1
    ) -> None:
        """Grants credits by `endpoint.credits` now or later; two requests of one endpoint are one.

        `since` (ns): the sender waits from then on, as long as the address lets it; -1: for ever. BrokerError if the
        endpoint waits for too many addresses.
        """
        request = account.waiting.get(endpoint)
        if request is not None:
            request.amount = min(request.amount + amount, 0x7FFFFFFF)
            self._limit_wait(account, request, since)
            if self._fails(account) and not peer:
                endpoint.refuse_credits(address, amount)
            return
        self.overruns.requested(endpoint, address, amount)
        windows = self.windows
        if not self.withheld(account, peer):
            if windows.more_bytes and not peer and self.limit_messages == UNLIMITED:
                amount = windows.answer(
                    endpoint, account, address, amount, self.used_bytes, self.limit_bytes
                )
            self.overruns.granted(endpoint, account)
            endpoint.credits(address, amount)
            return
        waits = self.waits.get(endpoint, 0)
        if waits >= WAITING_ADDRESSES_MAX:
            raise BrokerError(
                ILLEGAL_STATE, f"waiting for producer credits of {waits} addresses already"
            )
        self.waits[endpoint] = waits + 1
        if account.reported_name is None:
            self.waiting.append(account)
        request = CreditRequest(address, amount, peer)
        account.waiting[endpoint] = request
        self._limit_wait(account, request, since)
        endpoint.blocked(address)
        self._report_blocked(account, address)
        if self._fails(account) and not peer:
            endpoint.refuse_credits(address, amount)

    def _fails(self, account: Account) -> bool:
        """Returns true if an address that is full refuses credits at once."""
        return (account.disk_policy if self.disk_full else account.policy) == FAIL

    def _limit_wait(self, account: Account, request: CreditRequest, since: int) -> None:
        """Sets the timer of a request that waits since then."""
        if since >= 0 and (request.since < 0 or since < request.since):
            request.wait_since(since)
            self._arm(request.due(account.wait_ns))

    def _arm(self, due: int) -> None:
        """Sets the timer of the requests that wait, unless it is due earlier; -1: there is no need for it."""
        if due >= 0 and (self.due < 0 or due < self.due):
            self.due = due
            self.timers.set(SENDERS_TIMER, due)

    def on_timer(self, now: int) -> None:
        """Ends the requests that have waited as long as their address lets them."""
        self.due = -1
        following = -1
        for account in self.waiting:
            for endpoint, request in list(account.waiting.items()):
                due = request.due(account.wait_ns)
                if due < 0:
                    continue
                if due > now:
                    following = due if following < 0 else min(following, due)
                    continue
                request.wait_since(-1)
                if endpoint.overdue(request.address, request.amount, account.wait_ns):
                    del account.waiting[endpoint]
                    self._waits_less(endpoint)
        self._arm(following)
        self._forget_unawaited()

    def withheld(self, account: Account, peer: bool) -> bool:
        """Returns true if requests for credits of the address must wait now."""
        if account.blocked_by_operator:
            return True
        if self.disk_full or self.disk_behind:
            return account.disk_policy != DROP or self.disk_behind
        if account.policy == FAIL:
            return self.full_for(account)
        if account.policy == BLOCK or (account.policy == PAGE and not self.paging):
            return account.full() or (self.full_for_peers() if peer else self.full())
        return False

    def apply_limits(self, account: Account) -> None:
        """Applies changed limits of an account: refuses messages if it is full, and lets waiting requests be tried, or
        end at another time.
        """
        self.refuse(account)
        self.refusal(account)
        self.freed = True
        for request in account.waiting.values():
            self._arm(request.due(account.wait_ns))

    def end_account(self, account: Account) -> None:
        """Ends the account of an address that is removed: its senders wait for nothing any more, and ask again."""
        account.lift_limits()
        if account.refusing:
            account.refusing = False
            self.refusing -= 1
        self.freed = True

    def set_disk_full(self, full: bool) -> None:
        """Records the result of a disk check."""
        if full != self.disk_full:
            self.disk_full = full
            self.refusing += 1 if full else -1
        self.freed = True

    def exhaustion(self) -> BrokerError | None:
        """Returns the error for messages while the disk has room for no new file."""
        if not self.disk_exhausted:
            return None
        return BrokerError(ADDRESS_FULL, "AMQ229119: the disk of the node is full: it takes no messages")

    def set_disk_behind(self, behind: bool) -> None:
        """Records whether many pages wait for the disk."""
        if behind != self.disk_behind:
            self.disk_behind = behind
            self.refusing += 1 if behind else -1
            if not behind:
                self.freed = True

    def asks_all(self) -> bool:
        """Returns true if senders to every address must check `refusal`."""
        return self.disk_full or self.disk_behind

    def _report_blocked(self, account: Account, address: str) -> None:
        """Reports a blocked address once until it grants credits again; it stays in `waiting` even without senders."""
        if account.reported_name is None:
            account.reported_name = address
            why = "the address is full" if account.full() else "all messages of the node take too much"
            if self.disk_full:
                why = "the disk is full"
            if account.blocked_by_operator:
                why = "an operator blocks it"
            self.trace.event(
                "address_blocked",
                {
                    "address": address,
                    "bytes": account.bytes,
                    "messages": account.messages,
                    "why": why,
                },
            )

    def grant_waiting(self) -> int:
        """Grants waiting requests as far as memory allows; returns their number."""
        self.freed = False
        granted = 0
        still: list[Account] = []
        for account in self.waiting:
            for endpoint, request in list(account.waiting.items()):
                if self.withheld(account, request.peer):
                    continue
                del account.waiting[endpoint]
                self._waits_less(endpoint)
                amount = self.windows.late(endpoint, request.address, request.amount)
                self.overruns.granted(endpoint, account)
                endpoint.unblocked(request.address)
                endpoint.credits(request.address, amount)
                granted += 1
            if account.waiting or self.withheld(account, False):
                still.append(account)
            else:
                self.trace.event(
                    "address_unblocked", {"address": account.reported_name, "bytes": account.bytes}
                )
                account.reported_name = None
        self.waiting = still
        return granted

    def _waits_less(self, endpoint: SenderEndpoint) -> None:
        left = self.waits.get(endpoint, 0) - 1
        if left > 0:
            self.waits[endpoint] = left
        else:
            self.waits.pop(endpoint, None)

    def forget(self, endpoint: SenderEndpoint) -> None:
        """Removes the requests of a closed endpoint."""
        self.windows.forget(endpoint)
        self.overruns.forget(endpoint)
        if endpoint not in self.waits:
            return
        del self.waits[endpoint]
        for account in self.waiting:
            account.waiting.pop(endpoint, None)
        self._forget_unawaited()

    def _forget_unawaited(self) -> None:
        """Forgets the accounts without waiting requests, if there are many: of addresses that do not exist, perhaps."""
        if len(self.waiting) > WAITING_ADDRESSES_MAX:
            still: list[Account] = []
            for account in self.waiting:
                if account.waiting:
                    still.append(account)
                else:
                    account.reported_name = None
            self.waiting = still
