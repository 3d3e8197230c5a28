"""Message groups and their handlers."""

from __future__ import annotations

from atalanta.cluster.grouping.local import LocalGrouping
from atalanta.cluster.grouping.remote import RemoteGrouping
from atalanta.kernel.queue.message_groups import MessageGroups
from tests.sim.mutants.patching import Patch


def group_goes_where_it_was_proposed(patch: Patch) -> None:
    """The race of real Artemis: a decision for somebody else's proposal is taken for one's own."""
    on_response = RemoteGrouping.on_response

    def hasty(
        self: RemoteGrouping, now: int, node_id: str, full_id: str,
        value: str | None, alternative: str | None, distance: int, asked: str | None,
    ) -> None:  # fmt: skip
        question = self.questions.get(full_id)
        if question is not None and question.proposed:
            value = alternative = question.proposed
        on_response(self, now, node_id, full_id, value, alternative, distance, asked)

    patch.setattr(RemoteGrouping, "on_response", hasty)


def group_freed_by_a_crash(patch: Patch) -> None:
    """As real Artemis does it after a while."""
    peer_lost = LocalGrouping.peer_lost

    def careless(self: LocalGrouping, now: int, node_id: str) -> None:
        peer_lost(self, now, node_id)
        for cluster_name in [name for name in self.by_queue if name.endswith(node_id)]:
            self.queue_gone(now, cluster_name)

    patch.setattr(LocalGrouping, "peer_lost", careless)


def groups_forgotten_by_a_restart(patch: Patch) -> None:
    start = LocalGrouping.start

    def forgetful(self: LocalGrouping, now: int) -> None:
        start(self, now)
        self.pins.clear()
        self.by_queue.clear()

    patch.setattr(LocalGrouping, "start", forgetful)


def group_read_by_two_consumers(patch: Patch) -> None:
    patch.setattr(MessageGroups, "takes", lambda self, consumer, reference: True)
