"""Branches in the log of their transaction manager, with its decisions."""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding import Reader
from atalanta.node import Node
from atalanta.wire.core.packets import Xid, decode_xid

# States of a branch in the transaction manager's log.
OPEN: Final = "open"  # undecided: it must not take effect
WHOLE: Final = "one phase"  # the node decides
COMMIT: Final = "commit"
ROLLBACK: Final = "rollback"
COMMITTED: Final = "committed"
ROLLED_BACK: Final = "rolled back"


class LoggedBranch:
    def __init__(self, xid: Xid, keys: list[str]) -> None:
        self.xid = xid
        self.keys = keys
        self.state = OPEN
        self.told = False  # the decision was sent at least once


def name_of(xid: Xid) -> str:
    return f"{xid.global_transaction_id.decode()}/{xid.branch_qualifier.decode()}"


def branches_in_doubt(node: Node) -> list[str]:
    """Returns the names of the branches that the node has in doubt."""
    branches = node.broker.branches
    found = [*(branch.xid for branch in branches.list_prepared()), *branches.heuristics]
    return [name_of(decode_xid(Reader(xid), "xid")) for xid in found]
