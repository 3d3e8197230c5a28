"""XA."""

from __future__ import annotations

from atalanta.kernel.endpoint import Reply
from atalanta.kernel.transactions.xa import Branches, XaBranch
from tests.sim.mutants.patching import Patch


def prepared_branches_not_told(patch: Patch) -> None:
    patch.setattr(Branches, "in_doubt", lambda self: [])


def prepared_branch_loses_a_message(patch: Patch) -> None:
    prepare = Branches.prepare

    def careless(
        self: Branches, now: int, branch: XaBranch, endpoint: Reply, token: int
    ) -> None:
        if len(branch.transaction.messages) > 1:
            branch.transaction.messages.pop()
        prepare(self, now, branch, endpoint, token)

    patch.setattr(Branches, "prepare", careless)


def branch_gives_back_what_it_took(patch: Patch) -> None:
    """Committed, but what it has acknowledged is there again for somebody else."""
    commit_prepared = Branches.commit_prepared

    def generous(
        self: Branches, branch: XaBranch, outcome: int, endpoint: Reply | None, token: int
    ) -> None:
        acknowledged = branch.transaction.acknowledged
        branch.transaction.acknowledged = []
        commit_prepared(self, branch, outcome, endpoint, token)
        for reference in acknowledged:
            reference.queue.give_back(reference)

    patch.setattr(Branches, "commit_prepared", generous)
