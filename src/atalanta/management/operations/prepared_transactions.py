"""Prepared transactions and an operator's decisions on them (ActiveMQServerControlImpl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.transactions import xa
from atalanta.management.request.call import Attributes, Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json, message_map
from atalanta.management.request.times import moment
from atalanta.message.encoding.buffer import Reader
from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.transactions.xa import Branches, XaBranch
    from atalanta.message.message import Message

MESSAGES_MAX: Final = 1_000  # messages of one transaction in a list
PROPERTY_SIZE_MAX: Final = 256
# The names of message types in CoreTransactionDetail.
TYPE_NAMES: Final = {
    DEFAULT: "Default", OBJECT: "ObjectMessage", TEXT: "TextMessage", BYTES: "ByteMessage",
    MAP: "MapMessage", STREAM: "StreamMessage",
}  # fmt: skip


class PreparedTransactionOperations:
    """The operations of the resource `broker` on prepared transactions, and an attribute of `queue.NAME`."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.queue_attributes: Attributes = {
            "PreparedTransactionMessageCount": lambda call: self.acknowledged_count(call.queue)
        }
        self.operations: Operations = {
            "listPreparedTransactions": [("", self.list_prepared)],
            "listPreparedTransactionDetailsAsJSON": [("", self.list_prepared_as_json)],
            "listHeuristicCommittedTransactions": [("", self.list_committed)],
            "listHeuristicRolledBackTransactions": [("", self.list_rolled_back)],
            "commitPreparedTransaction": [("s", self.commit)],
            "rollbackPreparedTransaction": [("s", self.roll_back)],
        }

    def list_prepared(self, call: Call, given: Parameters) -> object:
        """Lists the oldest transaction first: its time, and the base64 that commit and rollback take."""
        return [
            f"{moment(branch.created_at)} base64: {xa.identifier(branch.xid)} {xid_text(branch.xid)}"
            for branch in self.branches.list_prepared()
        ]

    def list_prepared_as_json(self, call: Call, given: Parameters) -> object:
        """Returns the list as JSON, an empty text if there is none."""
        found = [details(branch) for branch in self.branches.list_prepared()]
        return encode_json(found) if found else ""

    def list_committed(self, call: Call, given: Parameters) -> object:
        ended = self.branches.list_heuristic(xa.HEURISTICALLY_COMMITTED)
        return [xa.identifier(xid) for xid in ended]

    def list_rolled_back(self, call: Call, given: Parameters) -> object:
        ended = self.branches.list_heuristic(xa.HEURISTICALLY_ROLLED_BACK)
        return [xa.identifier(xid) for xid in ended]

    def commit(self, call: Call, given: Parameters) -> object:
        """Commits a transaction. Returns False if no prepared transaction has this base64."""
        return self.branches.end_by_operator(call.now, text_of(given, 0), True)

    def roll_back(self, call: Call, given: Parameters) -> object:
        return self.branches.end_by_operator(call.now, text_of(given, 0), False)

    def acknowledged_count(self, queue: Queue) -> int:
        """Returns the number of the queue's messages acknowledged by prepared transactions."""
        count = 0
        for branch in self.branches.list_prepared():
            for reference in branch.transaction.acknowledged:
                if reference.queue is queue:
                    count += 1
        return count


def xid_text(xid: bytes) -> str:
    """Returns the text of XidImpl.toString, without the identity of a Java object."""
    reader = Reader(xid)
    format_id = reader.int32("xid.format_id")
    branch_qualifier = dotted(reader.blob("xid.branch_qualifier"))
    global_id = dotted(reader.blob("xid.global_transaction_id"))
    return (
        f"XidImpl (bq:{branch_qualifier} formatID:{format_id} gtxid:{global_id}"
        f" base64:{xa.identifier(xid)}"
    )


def dotted(raw: bytes) -> str:
    return ".".join(str(byte - 256 if byte > 127 else byte) for byte in raw)


def message_details(message: Message, operation: str) -> dict[str, object]:
    return {
        "message_operation_type": operation,
        "message_type": TYPE_NAMES.get(message.kind, "(Unknown Type)"),
        "message_properties": message_map(message, PROPERTY_SIZE_MAX),
    }


def details(branch: XaBranch) -> dict[str, object]:
    """Returns the messages that the branch will send and those it has acknowledged (TransactionDetail.toJSON)."""
    messages: list[dict[str, object]] = []
    for plan in branch.plans[:MESSAGES_MAX]:
        messages.append(message_details(plan.message, "(+) send"))
    for reference in branch.transaction.acknowledged[: MESSAGES_MAX - len(messages)]:
        messages.append(message_details(reference.message, "(-) receive"))
    reader = Reader(branch.xid)
    format_id = reader.int32("xid.format_id")
    branch_qualifier = reader.blob("xid.branch_qualifier")
    return {
        "creation_time": moment(branch.created_at),
        "xid_as_base64": xa.identifier(branch.xid),
        "xid_format_id": format_id,
        "xid_global_txid": reader.blob("xid.global_transaction_id").decode("utf-8", "replace"),
        "xid_branch_qual": branch_qualifier.decode("utf-8", "replace"),
        "tx_related_messages": messages,
    }
