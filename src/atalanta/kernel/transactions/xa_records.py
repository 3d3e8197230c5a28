"""The journal records of distributed transactions: XA_PREPARED and XA_ENDED."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal.message_record import encode_message_record
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.message.encoding.buffer import Reader, Writer

if TYPE_CHECKING:
    from atalanta.kernel.queue.delivery.plan import RoutingPlan
    from atalanta.kernel.transactions.xa import XaBranch


class PreparedRecord:
    """An XA_PREPARED record, without non-durable messages and acknowledgements.

    blob xid, i64 created, i32 n, n * blob MESSAGE record (sequence 0), i32 n, n * (i64 queue, i64 message, i32 delivery
    count), then the user (nullable text), which records of older versions do not have, nor read.
    """

    def __init__(self, xid: bytes, created_at: int) -> None:
        self.writer = Writer()
        self.writer.blob(xid)
        self.writer.int64(created_at)
        self._count_at: int = len(self.writer)
        self._count: int = 0
        self.writer.int32(0)

    def add(self, plan: RoutingPlan) -> None:
        """Adds a message."""
        if not plan.message.durable:
            return
        routes = [Reference(plan.message, planned.queue, 0, planned.route_to) for planned in plan.routes]
        self.writer.blob(encode_message_record(plan.message, routes, plan.duplicates))
        self._count += 1

    def complete(self, acknowledged: list[Reference], user: str | None) -> bytes:
        """Returns the record, once all messages are in it."""
        writer = self.writer
        writer.set_int32(self._count_at, self._count)
        # Acknowledgements of a non-destructive queue have no effect, so they are not stored.
        held = [
            reference
            for reference in acknowledged
            if reference.durable and reference.state == DELIVERING
        ]
        writer.int32(len(held))
        for reference in held:
            writer.int64(reference.queue.id)
            writer.int64(reference.message.id)
            writer.int32(reference.delivery_count)
        writer.nullable_simple_string(user)
        return writer.getvalue()


def encode_prepared(branch: XaBranch) -> bytes:
    """Returns the XA_PREPARED record of a branch."""
    record = PreparedRecord(branch.xid, branch.created_at)
    for plan in branch.plans:
        record.add(plan)
    return record.complete(branch.transaction.acknowledged, branch.user)


def encode_ended(xid: bytes, outcome: int, user: str | None) -> bytes:
    """Encodes an XA_ENDED record: blob xid, i8 outcome, and, as in XA_PREPARED, the user."""
    writer = Writer()
    writer.blob(xid)
    writer.int8(outcome)
    writer.nullable_simple_string(user)
    return writer.getvalue()


def decode_user(reader: Reader) -> str | None:
    """Returns the user at the end of a record; None: nobody knows it, and the branch belongs to everybody."""
    return reader.nullable_simple_string("xa.user") if reader.left() > 0 else None
