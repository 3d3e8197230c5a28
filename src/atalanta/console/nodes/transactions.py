"""Prepared transactions: XA branches that wait for the decision of their transaction manager, and an operator's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from atalanta.client.management import BROKER
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.jobs import Job, JobStep
from atalanta.console.nodes.list_kinds import text_of
from atalanta.console.nodes.node import ClusterNode

JAVA_MOMENT: Final = "%m/%d/%y, %I:%M:%S %p"
SEND_MARK: Final = "(+)"
SHOWN_MAX: Final = 1_000  # of each node
ENDED_MAX: Final = 100


@dataclass(frozen=True)
class BranchDecision:
    """What an operator decides, with the operation of the node. `means` is said before it is done."""

    name: str
    label: str
    operation: str
    done: str
    means: str


COMMIT: Final = BranchDecision(
    "commit", "Commit", "commitPreparedTransaction", "committed",
    "Its messages are delivered, and those that it has read are gone for good.",
)  # fmt: skip
ROLLBACK: Final = BranchDecision(
    "rollback", "Roll back", "rollbackPreparedTransaction", "rolled back",
    "Its messages are discarded, and those that it has read are delivered again.",
)  # fmt: skip
DECISIONS: Final = {each.name: each for each in (COMMIT, ROLLBACK)}


@dataclass(frozen=True)
class PreparedTransaction:
    """A branch. `xid` is the base64 that the node takes, `created` ms since 1970 or the node's text."""

    xid: str
    created: int | str | None
    format_id: str
    global_id: str
    branch: str
    sent: int
    read: int


@dataclass(frozen=True)
class NodeTransactions:
    """The branches of a node, and those that somebody has ended by hand (their base64)."""

    prepared: list[PreparedTransaction]
    committed: list[str]
    rolled_back: list[str]


async def transactions_of(node: ClusterNode) -> NodeTransactions:
    """Returns the transactions of a node. Raises ManagementFailed."""
    text = await node.call(BROKER, "listPreparedTransactionDetailsAsJSON")
    committed = await node.call(BROKER, "listHeuristicCommittedTransactions")
    rolled_back = await node.call(BROKER, "listHeuristicRolledBackTransactions")
    return NodeTransactions(read_transactions(text, node.ours), _texts(committed), _texts(rolled_back))


def read_transactions(text: object, in_utc: bool) -> list[PreparedTransaction]:
    """Returns the transactions in an answer to listPreparedTransactionDetailsAsJSON, which is "" for none.

    An Artemis node writes times in its own time zone, which it does not tell: they stay text.
    """
    try:
        rows = json.loads(text) if isinstance(text, str) and text.strip() else []
    except (ValueError, RecursionError):
        rows = []
    found = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or not isinstance(row.get("xid_as_base64"), str):
            continue
        related = row.get("tx_related_messages")
        kinds = [str(each.get("message_operation_type")) for each in related or [] if isinstance(each, dict)]
        sent = sum(kind.startswith(SEND_MARK) for kind in kinds)
        told = text_of(row.get("creation_time"))
        found.append(PreparedTransaction(
            row["xid_as_base64"],
            moment_of(told) if in_utc else told,
            text_of(row.get("xid_format_id")) or "",
            text_of(row.get("xid_global_txid")) or "",
            text_of(row.get("xid_branch_qual")) or "",
            sent,
            len(kinds) - sent,
        ))  # fmt: skip
    return found[:SHOWN_MAX]


def moment_of(text: str | None) -> int | str | None:
    """Returns a time in ms of "11/21/26, 3:05:36 PM" in UTC; other text as it is."""
    if text is None:
        return None
    try:
        at = datetime.strptime(text.replace("\u202f", " "), JAVA_MOMENT).replace(tzinfo=UTC)
    except ValueError:
        return text
    return int(at.timestamp() * 1_000)


async def find_transaction(node: ClusterNode, xid: str) -> PreparedTransaction:
    """Returns a branch that is prepared now. Raises NotFound."""
    text = await node.call(BROKER, "listPreparedTransactionDetailsAsJSON")
    for each in read_transactions(text, node.ours):
        if each.xid == xid:
            return each
    raise NotFound("this transaction is not prepared any more: its manager, or somebody else, has ended it")


def decision_job(decision: BranchDecision, xid: str, node: ClusterNode, back: str) -> Job:
    """Returns the job that ends a branch, not yet started."""
    job = Job(f"{decision.label} the transaction {xid}", decision.done, back)
    job.add(JobStep(node.label, xid), partial(_decide, decision, xid, node))
    return job


async def _decide(decision: BranchDecision, xid: str, node: ClusterNode, job: Job, step: JobStep) -> None:
    async with node.long_conversation() as management:
        ended = await management.call(BROKER, decision.operation, xid)
    step.note = decision.done if ended is not False else "it was not prepared any more: nothing was done"


def _texts(value: object) -> list[str]:
    return [str(each) for each in value[:ENDED_MAX]] if isinstance(value, list) else []
