"""XA."""

from __future__ import annotations

from atalanta.kernel.broker.broker import Broker
from atalanta.kernel.endpoint import Reply
from atalanta.kernel.transactions import xa
from atalanta.kernel.transactions.xa import Branches
from tests.sim.mutants.patching import Patch


def prepared_branches_not_told(patch: Patch) -> None:
    patch.setattr(Branches, "in_doubt", lambda self: [])


def prepared_branch_loses_a_message(patch: Patch) -> None:
    prepare = xa.prepare

    def careless(
        broker: Broker, now: int, branch: xa.Branch, endpoint: Reply, token: int
    ) -> None:
        if len(branch.transaction.messages) > 1:
            branch.transaction.messages.pop()
        prepare(broker, now, branch, endpoint, token)

    patch.setattr(xa, "prepare", careless)


def branch_gives_back_what_it_took(patch: Patch) -> None:
    """Committed, but what it has acknowledged is there again for somebody else."""
    commit_prepared = xa.commit_prepared

    def generous(
        broker: Broker, now: int, branch: xa.Branch, outcome: int, endpoint: Reply | None, token: int
    ) -> None:
        acknowledged = branch.transaction.acknowledged
        branch.transaction.acknowledged = []
        commit_prepared(broker, now, branch, outcome, endpoint, token)
        for reference in acknowledged:
            reference.queue.give_back(reference)

    patch.setattr(xa, "commit_prepared", generous)
