"""A local transaction: sends and acknowledgements that become durable in one record, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.publish.preparation import Preparation
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.transactions.draft import Draft
    from atalanta.kernel.transactions.prepared_draft import PreparedDraft
    from atalanta.message.message import Message

TRANSACTION_BYTES_MAX: Final = 256 << 20


class SessionTransaction:
    """A transaction, invisible before its commit; `rollback_only` holds the error that the commit answers with."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.acknowledged: list[Reference] = []
        self.duplicate_ids: dict[tuple[str, bytes], bool] = {}
        self.bytes: int = 0
        # Its sends to addresses that fail or drop when they are full: name -> bytes, messages.
        self.pressing: dict[str, tuple[int, int]] | None = None
        self.rollback_only: BrokerError | None = None
        # How far its commit or prepare has come, if that goes in steps.
        self.preparation: Preparation | None = None
        self.draft: Draft | None = None
        self.prepared: PreparedDraft | None = None

    def add_send(self, message: Message) -> None:
        self.bytes += message.size
        if self.bytes > TRANSACTION_BYTES_MAX:
            self.fail(f"transaction is larger than {TRANSACTION_BYTES_MAX} bytes")
        if self.rollback_only is None:
            self.messages.append(message)

    def fail(self, why: str) -> None:
        """Marks the transaction as rollback-only because it is too large, and releases its sends at once."""
        self.rollback_only = BrokerError(ILLEGAL_STATE, why)
        self.messages = []

    def forget_drafts(self) -> None:
        """Drops how far a commit or prepare has come."""
        self.preparation = None
        self.draft = None
        self.prepared = None

    def held_bytes(self) -> int:
        """Returns the bytes of messages that stay in memory until the end of the transaction."""
        return self.bytes if self.messages else 0

    def add_acknowledged(self, reference: Reference) -> None:
        self.acknowledged.append(reference)

    def take_acknowledged(self) -> list[Reference]:
        """Returns the acknowledged messages and forgets them: the rollback leaves them to the caller."""
        taken = self.acknowledged
        self.acknowledged = []
        return taken

    def empty(self) -> bool:
        return not self.messages and not self.acknowledged and self.rollback_only is None
