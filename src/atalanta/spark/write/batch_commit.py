"""The commit of a batch in the driver: one durable decision, then the commit of its branches.

The tasks of a batch prepare their rows as XA branches. The first driver that commits the batch writes the decision
"batch n of query q is these branches" at one node. A later run of the batch, whatever its partitions, finds that
decision and finishes it; its own branches are rolled back. So the rows of exactly one run of the batch arrive.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from atalanta.spark.errors import (
    BatchDecided,
    BranchLost,
    GatewayError,
    LoginRefused,
    NodeTimeout,
    NodeUnavailable,
)
from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import LoginOptions
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.node_calls import NodeCalls
from atalanta.spark.write.servers import DECISIONS_PARTITION, further_servers, server_for

DECIDABLE_S: Final = 12 * 3600  # after a task began; see abandoned_branches.py
TWICE: Final = 2  # all nodes are asked: one that was asked may be the target of a scale-down while the others are

Result = TypeVar("Result")

log = logging.getLogger("atalanta.spark")


@dataclass(frozen=True)
class Prepared:
    """A prepared branch and the server that has it, or another one of its node (`backups`)."""

    server: str
    branch: BranchName
    backups: tuple[str, ...] = field(default=(), compare=False)


class BatchCommit:
    """Commits one batch. `nodes` are the connections that it uses."""

    def __init__(self, login: LoginOptions, nodes: NodeCalls) -> None:
        self.servers = login.servers
        self.nodes = nodes
        self.unanswered: set[BranchName] = set()  # asked to commit, and the node was lost: it may have done so

    def decide_and_finish(
        self, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> dict[str, list[BranchName]]:
        """Commits the decided branches of the batch, and rolls back the others of this and of earlier batches.

        Returns the prepared branches of other queries, by server.
        """
        for one in prepared:
            self.nodes.servers.remember((one.server, *one.backups))
        places, decisions = self._decide(query, batch, prepared)
        decided = decisions[batch]
        own = decided == list(prepared)
        if not own:
            log.warning("batch %s of query %s was decided before: finishing that", batch, query)
            for place in places if decided else []:
                self.nodes.call(place, lambda node: node.take_over(query, batch))
        try:
            self.finish(decided, own)
        except BranchLost:
            if not self._is_taken_over(query, batch):
                raise
            log.warning("batch %s of query %s was finished by another driver of the query", batch, query)
        kept = {one.branch for each in decisions.values() for one in each}
        writers = {one.server for one in (*decided, *prepared)}
        others = self._end_others(writers, partial(end_others, query=query, batch=batch, decided=kept))
        for place in places:
            self.nodes.call(place, lambda node: node.forget_decisions(query, batch))
        return others

    def _end_others(
        self, writers: set[str], end: Callable[[Gateway], list[BranchName]]
    ) -> dict[str, list[BranchName]]:
        """Ends the other branches at every server: a run of the batch in more partitions may have left them anywhere.

        A server without a branch of this batch is not waited for.
        """
        others: dict[str, list[BranchName]] = {}
        for server in sorted(self.servers):
            if server in writers:
                others[server] = self.nodes.call(server, end)
                continue
            try:
                others[server] = end(self.nodes.gateway(server))
            except GatewayError as error:
                log.warning("server %s: %s; its abandoned branches stay for the next batch", server, error)
        return others

    def _decide(
        self, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> tuple[list[str], dict[int, list[Prepared]]]:
        """Returns the servers with decisions, and the decided branches by batch: `prepared`, unless others are.

        Raises BatchDecided if a later batch was decided already, GatewayError if the node keeps no decision.
        """
        found = self._known(query, batch)
        known = merged(found)
        self.nodes.remember(known.values())
        check_newest(query, batch, known)
        if batch not in known:
            check_age(query, batch, [one.branch for one in prepared])
            pairs = [[server, *others] for server in self.servers if (others := self.nodes.servers.others(server))]
            branches = json.dumps(
                {"branches": [[one.server, str(one.branch)] for one in prepared]} | ({"nodes": pairs} if pairs else {})
            )
            try:
                self.nodes.call(self._home(query), lambda node: node.decide(query, batch, branches))
            except LoginRefused:  # no decision will be there: each repeat would leave its branches
                self.roll_back(prepared)
                raise
            found |= self._known(query, batch)
            known |= merged(found)
            check_newest(query, batch, known)
        if batch not in known:
            raise GatewayError(
                f"the decision of batch {batch} of query {query} is gone from its queue: it was emptied or deleted "
                "while the batch was unfinished. Compare the rows at the target, then begin with a new checkpoint"
            )
        return sorted(found), {number: branches_of(text) for number, text in known.items()}

    def roll_back(self, prepared: Sequence[Prepared]) -> None:
        """Rolls back the branches of a batch that is given up. A node that is away ends them with the next batch."""
        for one in prepared:
            self.nodes.servers.remember((one.server, *one.backups))
            try:
                self.nodes.gateway(one.server).roll_back_branch(str(one.branch))
            except GatewayError as error:
                log.warning("the branch %s at %s stays for the next batch: %s", one.branch, one.server, error)

    def finish(self, decided: Sequence[Prepared], first: bool) -> None:
        """Commits the branches. `first`: nobody else can have committed them, so a missing one is lost.

        A server that does not have a branch may have moved it to another node: a scale-down moves prepared branches.
        """
        left = {
            one.branch: one.server
            for one in decided
            if one.server not in self.servers
            or not self.nodes.call(one.server, partial(self._commit, one.branch))
        }
        if not left:
            return
        commit = partial(self._commit_those, left)
        for server in TWICE * self.servers:
            self.nodes.call(server, commit)
        if left:
            self._at_further(commit)
        for server in sorted(set(left.values()) - set(self.servers)):
            self._at_former(server, commit)
        lost = [str(branch) for branch in left if branch not in self.unanswered]
        if first and lost:
            raise BranchLost(
                f"no node has the prepared branch {lost[0]}: its rows are lost. "
                "Somebody rolled it back, or the data of its node was replaced"
            )

    def _commit_those(self, left: dict[BranchName, str], node: Gateway) -> None:
        """Commits the branches of `left` that the node has, and removes them there."""
        prepared = set(node.prepared_branches())
        for branch in [one for one in left if str(one) in prepared]:
            if self._commit(branch, node):
                log.warning("branch %s of server %s is committed at another node", branch, left.pop(branch))

    def _commit(self, branch: BranchName, node: Gateway) -> bool:
        """Returns False if the node does not have the branch."""
        try:
            return node.commit_branch(str(branch))
        except NodeUnavailable:
            self.unanswered.add(branch)
            raise

    def is_decided(self, query: str, batch: int) -> bool:
        """Returns True if a run of the batch was decided."""
        return batch in merged(self._known(query, batch))

    def _is_taken_over(self, query: str, batch: int) -> bool:
        """Returns True if another driver finishes, or has finished, what this one has decided."""
        found = self._known(query, batch)
        return max(merged(found), default=-1) > batch or any(
            self.nodes.call(place, lambda node: node.is_taken_over(query, batch)) for place in found
        )

    def _home(self, query: str) -> str:
        """Returns the server at which the query's batches are decided."""
        return server_for(self.servers, query, DECISIONS_PARTITION)

    def _known(self, query: str, batch: int) -> dict[str, dict[int, str]]:
        """Returns the decisions of the query by server.

        After a scale-down, or with other `servers`, they are not at home. Home is asked first: it does not answer
        before its scale-down has ended, and another node then has all that it had.
        """

        def ask(node: Gateway) -> dict[int, str]:
            return node.decisions(query)

        home = self._home(query)
        try:
            self.nodes.gateway(home)
        except NodeUnavailable:
            self.nodes.remember_pairs(query)
        known = self.nodes.call(home, ask)
        if batch in known:
            return {home: known}
        if known:  # a later one is elsewhere, if `servers` was another list meanwhile
            found: dict[str, dict[int, str]] = {home: known}
            for server in self.servers:
                try:
                    found[server] = ask(self.nodes.gateway(server)) | found.get(server, {})
                except NodeUnavailable as error:
                    log.info("server %s is not asked for decisions: %s", server, error)
            return {server: each for server, each in found.items() if each}
        found = {}
        for server in TWICE * self.servers:
            found[server] = self.nodes.call(server, ask) | found.get(server, {})
        if not any(found.values()):
            found = self._at_further(ask)
        return {server: known for server, known in found.items() if known}

    def _at_further(self, ask: Callable[[Gateway], Result]) -> dict[str, Result]:
        """Asks the nodes of the cluster that `servers` does not name: a scale-down may have chosen one of them.

        The driver may be unable to reach such a node at all, so it does not wait for them.
        """
        topologies = [self.nodes.call(server, lambda node: node.topology()) for server in self.servers]
        found = {}
        for server in further_servers(self.servers, topologies):
            try:
                self.nodes.gateway(server)
            except GatewayError as error:
                log.warning(
                    "server %s is not asked for branches and decisions: %s. If a node of this query was scaled "
                    "down to it, name it in servers", server, error,
                )  # fmt: skip
                continue
            found[server] = self.nodes.call(server, ask)
        return found

    def _at_former(self, server: str, commit: Callable[[Gateway], None]) -> None:
        """Asks a server that is not in the options any more, and that may still have a branch of the batch."""
        try:
            self.nodes.call(server, commit)
        except NodeTimeout as error:
            raise NodeTimeout(
                f"{error}. It is not in servers, and no other node has its branches of an unfinished batch. Start it "
                "again; if it was scaled down, start it with its empty data"
            ) from error


def merged(found: Mapping[str, Mapping[int, str]]) -> dict[int, str]:
    """Returns the decisions of all servers by batch."""
    return {batch: text for known in found.values() for batch, text in known.items()}


def check_newest(query: str, batch: int, known: Mapping[int, str]) -> None:
    """Raises BatchDecided if a later batch was decided already."""
    newest = max(known, default=-1)
    if newest > batch:
        raise BatchDecided(
            f"batch {batch} of query {query} was written before, and batch {newest} after it: "
            "this checkpoint is older than the data. It is a copy, or was restored from a backup, or another driver "
            "of the query runs"
        )


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
