"""Prepared branches of queries that do not run any more: the next batch of another query at their node ends them.

No decided branch may be rolled back, so three things must hold. The branch is older than a day, and no driver decides
for branches that are older than half a day. Its query had the same servers as this one, one of which then has its
decisions. All of these servers were asked, and none has a decision with the branch. Everything else is left to the
query itself and to an operator (doctor: prepared_transactions).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from atalanta.spark.errors import SparkSourceError
from atalanta.spark.write.batch_commit import branches_of
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.node_calls import NodeCalls

ABANDONED_S: Final = 24 * 3600  # twice DECIDABLE_S: for clocks that differ, and for the decision itself
JOB: Final = "batch-"  # begins the name of a batch job, which writes no decision

log = logging.getLogger("atalanta.spark")


class AbandonedBranches:
    """The abandoned branches at nodes of a query with these `servers`."""

    def __init__(self, servers: Sequence[str], nodes: NodeCalls) -> None:
        self.servers = servers
        self.nodes = nodes

    def end(self, others: Mapping[str, Sequence[BranchName]]) -> None:
        """Ends the abandoned ones of these branches of other queries, by server.

        An error leaves them for the next batch.
        """
        try:
            for server, branches in others.items():
                for branch in branches:
                    if self._is_abandoned(branch):
                        self._end(server, branch)
        except SparkSourceError as error:
            log.warning("abandoned branches stay for the next batch: %s", error)

    def _is_abandoned(self, branch: BranchName) -> bool:
        return (
            branch.is_of(self.servers)
            and not branch.query.startswith(JOB)
            and time.time() - (branch.began_s or 0) > ABANDONED_S
        )

    def _end(self, server: str, branch: BranchName) -> None:
        """Commits the branch if any server has a decision with it, else rolls it back."""
        decided = any(
            one.branch == branch
            for each in self.servers
            for text in self.nodes.gateway(each).decisions(branch.query).values()
            for one in branches_of(text)
        )
        log.warning("ending the abandoned branch %s at %s (decided: %s)", branch, server, decided)
        node = self.nodes.gateway(server)
        (node.commit_branch if decided else node.roll_back_branch)(str(branch))
