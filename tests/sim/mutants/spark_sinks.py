"""The Spark sink. These mutants are looked for in worlds of tests.sim.spark.sink_load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql.datasource import WriterCommitMessage

from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.write import batch_commit
from atalanta.spark.write.batch_commit import BatchCommit, Prepared
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.sink import AtalantaStreamWriter
from tests.sim.mutants.patching import Patch
from tests.sim.spark.sink_load import SparkSinks

LOAD: Final = SparkSinks
Decided = tuple[list[str], dict[int, list[Prepared]]]


def decision_after_commit(patch: Patch) -> None:
    decide_and_finish = BatchCommit.decide_and_finish

    def hasty(
        self: BatchCommit, query: str, batch: int, prepared: Sequence[Prepared]
    ) -> dict[str, list[BranchName]]:
        self.finish(prepared, False)
        return decide_and_finish(self, query, batch, prepared)

    patch.setattr(BatchCommit, "decide_and_finish", hasty)


def decision_forgets_a_branch(patch: Patch) -> None:
    decide = BatchCommit._decide

    def forgetful(self: BatchCommit, query: str, batch: int, prepared: Sequence[Prepared]) -> Decided:
        return decide(self, query, batch, prepared[: max(1, len(prepared) - 1)])

    patch.setattr(BatchCommit, "_decide", forgetful)


def repeat_commits_its_own_branches(patch: Patch) -> None:
    """The decision of the batch is not asked for: each run takes its own branches."""
    decide = BatchCommit._decide

    def stubborn(self: BatchCommit, query: str, batch: int, prepared: Sequence[Prepared]) -> Decided:
        places, decisions = decide(self, query, batch, prepared)
        return places, decisions | {batch: list(prepared)}

    patch.setattr(BatchCommit, "_decide", stubborn)


def moved_branch_counts_as_committed(patch: Patch) -> None:
    """A node without a decided branch is taken for one that has committed it."""
    patch.setattr(BatchCommit, "_commit_those", lambda self, left, node: None)


def decided_batch_is_not_finished(patch: Patch) -> None:
    """A repeat rolls back what an earlier run decided and has not committed."""
    finish = BatchCommit.finish

    def lazy(self: BatchCommit, decided: Sequence[Prepared], first: bool) -> None:
        if first:
            finish(self, decided, first)

    def end_all(node: Gateway, query: str, batch: int, decided: object) -> list[BranchName]:
        return end_others(node, query, batch, set())

    end_others = batch_commit.end_others
    patch.setattr(BatchCommit, "finish", lazy)
    patch.setattr(batch_commit, "end_others", end_all)


def leftovers_stay(patch: Patch) -> None:
    patch.setattr(batch_commit, "end_others", lambda node, query, batch, decided: [])


def abort_rolls_back_what_is_decided(patch: Patch) -> None:
    def abort(
        self: AtalantaStreamWriter, messages: list[WriterCommitMessage | None], batch: int
    ) -> None:
        self.writer.abort(messages)

    patch.setattr(AtalantaStreamWriter, "abort", abort)
