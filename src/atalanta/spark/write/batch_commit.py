"""The commit of a batch in the driver: one durable decision, then the commit of its branches.

The tasks of a batch prepare their rows as XA branches. The first driver that commits the batch writes the decision
"batch n of query q is these branches" at one node. A later run of the batch, whatever its partitions, finds that
decision and finishes it; its own branches are rolled back. So the rows of exactly one run of the batch arrive.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from atalanta.spark.errors import BatchDecided, BranchLost, GatewayError
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.options import LoginOptions
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.node_calls import NodeCalls
from atalanta.spark.write.servers import DECISIONS_PARTITION, server_for

DECIDABLE_S: Final = 12 * 3600  # after a task began; see abandoned_branches.py

log = logging.getLogger("atalanta.spark")


@dataclass(frozen=True)
class Prepared:
    """A prepared branch and the server that has it."""

    server: str
    branch: BranchName


class BatchCommit:
    """Commits one batch. `nodes` are the connections that it uses."""

    def __init__(self, login: LoginOptions, nodes: NodeCalls) -> None:
        self.servers = login.servers
        self.nodes = nodes
        self.tried: set[BranchName] = set()  # whose commit was asked for

    def decide_and_finish(
        self, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> dict[str, list[BranchName]]:
        """Commits the decided branches of the batch, and rolls back the others of this and of earlier batches.

        Returns the prepared branches of other queries, by server.
        """
        home, known = self._known(query)
        decisions = self.nodes.call(home, lambda node: decide(node, query, batch, prepared, known))
        decided = decisions[batch]
        own = decided == list(prepared)
        if not own:
            log.warning("batch %s of query %s was decided before: finishing that", batch, query)
        self.finish(decided, own)
        kept = {one.branch for each in decisions.values() for one in each}
        others = {
            server: self.nodes.call(server, lambda node: end_others(node, query, batch, kept))
            for server in sorted({one.server for one in (*decided, *prepared)})
        }
        self.nodes.call(home, lambda node: node.forget_decisions(query, batch))
        return others

    def finish(self, decided: Sequence[Prepared], first: bool) -> None:
        """Commits the branches. `first`: nobody else can have committed them, so a missing one is lost."""
        for one in decided:
            self.nodes.call(one.server, partial(self._commit, one, first))

    def _commit(self, one: Prepared, first: bool, node: Gateway) -> None:
        first = first and one.branch not in self.tried
        self.tried.add(one.branch)
        if not node.commit_branch(str(one.branch)) and first:
            raise BranchLost(
                f"server {one.server} does not have the prepared branch {one.branch}: its rows are lost. "
                "Somebody rolled it back, or the data of the node was replaced"
            )

    def _known(self, query: str) -> tuple[str, dict[int, str]]:
        """Returns the decisions of the query and their server: one that has some, or the one that the id names."""
        home = server_for(self.servers, query, DECISIONS_PARTITION)
        others = [server for server in self.servers if server != home]
        for server in (home, *others):
            known = self.nodes.call(server, lambda node: node.decisions(query))
            if known:
                return server, known
        return home, {}


def decide(
    node: Gateway, query: str, batch: int, prepared: Sequence[Prepared], known: dict[int, str]
) -> dict[int, list[Prepared]]:
    """Returns the decided branches by batch. If `known` has none for `batch`, they are `prepared` from now on.

    Raises BatchDecided if a later batch was decided already, GatewayError if the node keeps no decision.
    """
    newest = max(known, default=-1)
    if newest > batch:
        raise BatchDecided(
            f"batch {batch} of query {query} was written before, and batch {newest} after it: "
            "this checkpoint is older than the data. It is a copy, or was restored from a backup"
        )
    if batch not in known:
        check_age(query, batch, [one.branch for one in prepared])
        branches = [[one.server, str(one.branch)] for one in prepared]
        node.decide(query, batch, json.dumps({"branches": branches}))
        known = node.decisions(query)
        if batch not in known:
            raise GatewayError(
                f"the decision of batch {batch} of query {query} is gone from its queue: it was emptied or deleted "
                "while the batch was unfinished. Compare the rows at the target, then begin with a new checkpoint"
            )
    return {number: branches_of(text) for number, text in known.items()}


def check_age(query: str, batch: int, branches: Sequence[BranchName]) -> None:
    """Raises GatewayError if a branch is too old to be decided: another query may roll it back soon."""
    oldest_s = min((one.began_s for one in branches if one.began_s is not None), default=None)
    if oldest_s is not None and time.time() - oldest_s > DECIDABLE_S:
        raise GatewayError(
            f"batch {batch} of query {query} has rows that were prepared more than {DECIDABLE_S // 3600} hours ago, "
            "so it is not committed. Start the query again: it writes the batch once more. Make batches smaller, or "
            "compare the clocks of driver and workers"
        )


def branches_of(text: str) -> list[Prepared]:
    """Returns the branches of a decision. Raises GatewayError if the text is no decision."""
    try:
        return [Prepared(str(server), named(name)) for server, name in json.loads(text)["branches"]]
    except (ValueError, TypeError, KeyError) as error:
        raise GatewayError(f"a message in the queue of decisions is no decision: {text!r:.200}") from error


def named(text: str) -> BranchName:
    """Returns the branch of a decision. Raises ValueError: one that was passed over would be lost."""
    branch = BranchName.parse(text)
    if branch is None:
        raise ValueError(f"{text!r} is no branch")
    return branch


def end_others(
    node: Gateway, query: str, batch: int, decided: set[BranchName]
) -> list[BranchName]:
    """Ends the node's other branches of the query up to this batch: those of tasks and drivers that died.

    Returns the branches of other queries.
    """
    others: list[BranchName] = []
    for name in node.prepared_branches():
        branch = BranchName.parse(name)
        if branch is None:
            continue
        if branch.query != query:
            others.append(branch)
        elif branch.batch > batch:
            continue
        elif branch in decided:
            node.commit_branch(name)
        else:
            log.info("rolling back the branch %s", branch)
            node.roll_back_branch(name)
    return others


def roll_back(login: LoginOptions, connect: Connector, prepared: Sequence[Prepared]) -> None:
    """Rolls back the branches of a batch that Spark has given up. A node that is away ends them with the next batch."""
    for one in prepared:
        try:
            gateway = connect(one.server, login.credentials(login.request_timeout_s))
            try:
                gateway.roll_back_branch(str(one.branch))
            finally:
                gateway.close()
        except GatewayError as error:
            log.warning("the branch %s at %s stays for the next batch: %s", one.branch, one.server, error)
