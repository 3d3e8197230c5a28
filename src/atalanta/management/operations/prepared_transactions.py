"""Prepared transactions and an operator's decisions on them (ActiveMQServerControlImpl,
kernel/transactions/xa.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.transactions import xa
from atalanta.management.request.call import Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json, message_map
from atalanta.management.request.times import date_text

if TYPE_CHECKING:
    from atalanta.kernel.transactions.xa import Branch

MESSAGES_MAX: Final = 1_000  # messages of one transaction in a list


def list_prepared(call: Call, given: Parameters) -> object:
    """Lists the oldest transaction first: its time, and the base64 that commit and rollback take."""
    return [
        f"{date_text(branch.created_at)} base64: {xa.identifier(branch.xid)}"
        for branch in xa.list_prepared(call.broker)
    ]


def list_prepared_as_json(call: Call, given: Parameters) -> object:
    """Returns the list as JSON, an empty text if there is none."""
    found = [details(branch) for branch in xa.list_prepared(call.broker)]
    return encode_json(found) if found else ""


def details(branch: Branch) -> dict[str, object]:
    """Returns the messages that the branch will send and those it has acknowledged (TransactionDetail.toJSON)."""
    messages: list[dict[str, object]] = []
    for plan in branch.plans[:MESSAGES_MAX]:
        messages.append({**message_map(plan.message, 256), "message_operation_type": "(+) send"})
    for reference in branch.transaction.acknowledged[: MESSAGES_MAX - len(messages)]:
        shown = message_map(reference.message, 256)
        messages.append({**shown, "message_operation_type": "(-) receive"})
    return {
        "creation_time": date_text(branch.created_at),
        "xid_as_base64": xa.identifier(branch.xid),
        "tx_related_messages": messages,
    }


def list_committed(call: Call, given: Parameters) -> object:
    ended = xa.list_heuristic(call.broker, xa.HEURISTICALLY_COMMITTED)
    return [xa.identifier(xid) for xid in ended]


def list_rolled_back(call: Call, given: Parameters) -> object:
    ended = xa.list_heuristic(call.broker, xa.HEURISTICALLY_ROLLED_BACK)
    return [xa.identifier(xid) for xid in ended]


def commit(call: Call, given: Parameters) -> object:
    """Commits a transaction. Returns False if no prepared transaction has this base64."""
    return xa.end_by_operator(call.broker, call.now, text_of(given, 0), True)


def roll_back(call: Call, given: Parameters) -> object:
    return xa.end_by_operator(call.broker, call.now, text_of(given, 0), False)


TRANSACTION_OPERATIONS: Final[Operations] = {
    "listPreparedTransactions": [("", list_prepared)],
    "listPreparedTransactionDetailsAsJSON": [("", list_prepared_as_json)],
    "listHeuristicCommittedTransactions": [("", list_committed)],
    "listHeuristicRolledBackTransactions": [("", list_rolled_back)],
    "commitPreparedTransaction": [("s", commit)],
    "rollbackPreparedTransaction": [("s", roll_back)],
}
