"""The memory account of one address: its messages in memory, and its address-full-policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import SenderEndpoint
    from atalanta.kernel.settings.address_settings import AddressSettings

READ_BYTES_LEAST: Final = 20 << 20
UNLIMITED: Final = 1 << 62
PAGE: Final = 0
BLOCK: Final = 1
FAIL: Final = 2
DROP: Final = 3
POLICIES: Final = {"PAGE": PAGE, "BLOCK": BLOCK, "FAIL": FAIL, "DROP": DROP}


class CreditRequest:
    """A sender that waits for `amount` credits (bytes) of an address; `since` (ns): its wait has an end where the
    address sets one, -1: it has none."""

    def __init__(self, address: str, amount: int, peer: bool) -> None:
        self.address = address
        self.amount = amount
        self.peer = peer
        self.since: int = -1

    def wait_since(self, since: int) -> None:
        """Sets the beginning of the wait (ns), if it is to have an end; -1: it is not."""
        self.since = since


class Account:
    """Bytes and messages of one address in memory, and their limits (this part of PagingStoreImpl).

    A message is charged to the address of the first queue that takes it; a message in a store-and-forward queue is
    charged to that queue's address. `refusing`: senders must check whether the address is still full; the flag stays
    set until one of them has checked. `blockages`: how often it was set. Limits are inclusive: at the limit an address
    is full.
    """

    def __init__(self) -> None:
        self.bytes: int = 0
        self.messages: int = 0
        self.limit_bytes: int = UNLIMITED
        self.limit_messages: int = UNLIMITED
        self.policy: int = PAGE
        self.refusing: bool = False
        self.blockages: int = 0
        # The policies of max-size, of the page limit and of a full disk; -1: senders wait.
        self.page_policy: int = -1
        self.disk_policy: int = -1
        self.page_limit_bytes: int = UNLIMITED
        self.page_limit_messages: int = UNLIMITED
        self.page_size_bytes: int = 10 << 20
        self.max_read_bytes: int = UNLIMITED
        self.max_read_messages: int = UNLIMITED
        # Limits of read messages that no consumer has yet; UNLIMITED unless set.
        self.prefetch_bytes: int = UNLIMITED
        self.prefetch_messages: int = UNLIMITED
        # Messages in page files, or in the tail of a page.
        self.paged_bytes: int = 0
        self.paged_messages: int = 0
        self.dropped: int = 0
        self.wait_ns: int = -1  # how long senders wait for credits, -1 for ever
        self.waiting: dict[SenderEndpoint, CreditRequest] = {}
        self.reported_name: str | None = None  # the address' name, after the event that its senders wait
        self.blocked_by_operator: bool = False  # blocked by an operator (AddressControl.block), until the next start

    def apply(self, settings: AddressSettings) -> None:
        """Takes the limits of these settings; -1 is none (PagingStoreImpl.applySetting)."""
        self.limit_bytes = _limit(settings.max_size_bytes)
        self.limit_messages = _limit(settings.max_size_messages)
        self.policy = POLICIES[settings.address_full_policy]
        self.disk_policy = _policy(settings.disk_full_policy)
        self.page_policy = _policy(settings.page_full_policy)
        self.page_limit_bytes = _limit(settings.page_limit_bytes)
        self.page_limit_messages = _limit(settings.page_limit_messages)
        self.page_size_bytes = settings.page_size_bytes
        self.wait_ns = settings.blocked_send_timeout_ms * 1_000_000
        read_bytes = settings.max_read_page_bytes
        if read_bytes is None:
            # Artemis takes two pages of any size; consumers that acknowledge late or use selectors then stop.
            read_bytes = max(2 * settings.page_size_bytes, READ_BYTES_LEAST)
        self.max_read_bytes = _read_limit(read_bytes)
        self.max_read_messages = _read_limit(settings.max_read_page_messages)
        self.prefetch_bytes = _read_limit(settings.prefetch_page_bytes)
        self.prefetch_messages = _read_limit(settings.prefetch_page_messages)

    def lift_policies(self) -> None:
        """Lifts the policies of the broker's own addresses: senders never wait (PagingManagerImpl.getPageStore)."""
        self.policy = PAGE
        self.page_policy = -1
        self.disk_policy = -1

    def full(self) -> bool:
        """Returns true if the address is full by its own limits; the node's limits are in Memory."""
        return self.bytes >= self.limit_bytes or self.messages >= self.limit_messages

    def page_full(self) -> bool:
        return self.page_policy >= 0 and (
            self.paged_bytes >= self.page_limit_bytes
            or self.paged_messages >= self.page_limit_messages
        )


def _limit(value: int) -> int:
    return UNLIMITED if value < 0 else value


def _read_limit(value: int | None) -> int:
    """Returns the limit; an absent value, 0 and less are none (QueueImpl.needsDepage)."""
    return UNLIMITED if value is None or value <= 0 else value


def _policy(name: str | None) -> int:
    """Returns a policy that refuses messages; -1 for policies that let senders wait."""
    policy = POLICIES[name] if name is not None else -1
    return policy if policy in (FAIL, DROP) else -1
