"""What one address holds in memory, and what happens to its senders when that is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.endpoint import SessionEndpoint
    from atalanta.kernel.settings.address_settings import AddressSettings

READ_BYTES_LEAST: Final = 20 << 20
UNLIMITED: Final = 1 << 62
PAGE: Final = 0
BLOCK: Final = 1
FAIL: Final = 2
DROP: Final = 3
POLICIES: Final = {"PAGE": PAGE, "BLOCK": BLOCK, "FAIL": FAIL, "DROP": DROP}


class CreditRequest:
    """A sender that waits for `amount` credits (bytes) of an address."""

    def __init__(self, address: str, amount: int, peer: bool) -> None:
        self.address = address
        self.amount = amount
        self.peer = peer


class Account:
    """Bytes and messages of one address in memory, beside its limits (PagingStoreImpl's part of them).

    A message is charged to the address of the first queue that takes it; one in a store-and-forward queue to that
    queue's address. `refusing`: senders have to look whether the address still is full (FAIL, DROP, a page limit or
    a disk limit); it stays set until one of them has looked. Limits are inclusive: at the limit an address is full.
    """

    def __init__(self) -> None:
        self.bytes: int = 0
        self.messages: int = 0
        self.limit_bytes: int = UNLIMITED
        self.limit_messages: int = UNLIMITED
        self.policy: int = PAGE
        self.refusing: bool = False
        # max-size and the page and disk limits know what to do with senders; -1: they wait.
        self.page_policy: int = -1
        self.disk_policy: int = -1
        self.page_limit_bytes: int = UNLIMITED
        self.page_limit_messages: int = UNLIMITED
        self.page_size_bytes: int = 10 << 20
        self.max_read_bytes: int = UNLIMITED
        self.max_read_messages: int = UNLIMITED
        # Of those read, the ones that no consumer has yet; UNLIMITED unless set.
        self.prefetch_bytes: int = UNLIMITED
        self.prefetch_messages: int = UNLIMITED
        # In page files, or on the way there.
        self.paged_bytes: int = 0
        self.paged_messages: int = 0
        self.dropped: int = 0
        self.waiting: dict[SessionEndpoint, CreditRequest] = {}
        self.told: str | None = None  # the address' name, while its senders are said to wait
        self.held: bool = False  # an operator lets nobody send more (AddressControl.block), until the next start

    def apply(self, settings: AddressSettings) -> None:
        """Take the limits of these settings; -1 is none (PagingStoreImpl.applySetting)."""
        self.limit_bytes = _limit(settings.max_size_bytes)
        self.limit_messages = _limit(settings.max_size_messages)
        self.policy = POLICIES[settings.address_full_policy]
        self.disk_policy = _policy(settings.disk_full_policy)
        self.page_policy = _policy(settings.page_full_policy)
        self.page_limit_bytes = _limit(settings.page_limit_bytes)
        self.page_limit_messages = _limit(settings.page_limit_messages)
        self.page_size_bytes = settings.page_size_bytes
        read_bytes = settings.max_read_page_bytes
        if read_bytes is None:
            # Artemis takes two pages however small they are, and consumers that acknowledge late or select stand still.
            read_bytes = max(2 * settings.page_size_bytes, READ_BYTES_LEAST)
        self.max_read_bytes = _read_limit(read_bytes)
        self.max_read_messages = _read_limit(settings.max_read_page_messages)
        self.prefetch_bytes = _read_limit(settings.prefetch_page_bytes)
        self.prefetch_messages = _read_limit(settings.prefetch_page_messages)

    def shield(self) -> None:
        """The broker's own addresses: nobody is refused or made to wait (PagingManagerImpl.getPageStore)."""
        self.policy = PAGE
        self.page_policy = -1
        self.disk_policy = -1

    def full(self) -> bool:
        """By its own limits; the node's are Memory's."""
        return self.bytes >= self.limit_bytes or self.messages >= self.limit_messages

    def page_full(self) -> bool:
        return self.page_policy >= 0 and (
            self.paged_bytes >= self.page_limit_bytes
            or self.paged_messages >= self.page_limit_messages
        )


def _limit(value: int) -> int:
    return UNLIMITED if value < 0 else value


def _read_limit(value: int | None) -> int:
    """0 and less are none, as absent (QueueImpl.needsDepage)."""
    return UNLIMITED if value is None or value <= 0 else value


def _policy(name: str | None) -> int:
    """A policy that refuses messages; -1 for those that let senders wait."""
    policy = POLICIES[name] if name is not None else -1
    return policy if policy in (FAIL, DROP) else -1
