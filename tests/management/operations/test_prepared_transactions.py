"""The prepared transactions that an operator lists."""

from __future__ import annotations

from atalanta.kernel.transactions.xa import XaBranch
from atalanta.management.operations.prepared_transactions import details
from atalanta.message.encoding.buffer import Writer


def test_a_prepared_transaction_is_shown_with_the_parts_of_its_id() -> None:
    writer = Writer()
    writer.int32(7)
    writer.blob(b"branch")
    writer.blob(b"global\xff")
    shown = details(XaBranch(writer.getvalue(), 0, -1, None))
    assert shown["xid_format_id"] == 7
    assert shown["xid_branch_qual"] == "branch"
    assert shown["xid_global_txid"] == "global\ufffd"
    assert shown["tx_related_messages"] == []
