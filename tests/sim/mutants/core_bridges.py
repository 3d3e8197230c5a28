"""Core bridges."""

from __future__ import annotations

from atalanta.cluster.core_bridges.link import CoreBridgeSender
from atalanta.cluster.core_bridges.message_copies import MessageCopies
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.message.message import Message
from tests.sim.mutants.patching import Patch


def core_bridge_trusts_the_link(patch: Patch) -> None:
    """Messages that were sent over a lost link are taken to have arrived."""
    detach = CoreBridgeSender.detach

    def trusting(self: CoreBridgeSender, now: int) -> None:
        for correlation in list(self.unanswered):
            self.on_answer(correlation)
        detach(self, now)

    patch.setattr(CoreBridgeSender, "detach", trusting)


def core_bridge_sends_no_duplicate_ids(patch: Patch) -> None:
    """Neither its own nor the sender's."""
    forwarded = MessageCopies.forwarded

    def bare(self: MessageCopies, reference: Reference) -> Message:
        copy = forwarded(self, reference)
        copy.properties.remove(BRIDGE_DUPLICATE)
        copy.properties.remove("_AMQ_DUPL_ID")
        copy.properties_changed()
        return copy

    patch.setattr(MessageCopies, "forwarded", bare)


def core_bridge_overtakes(patch: Patch) -> None:
    def hasty(self: CoreBridgeSender, reference: Reference) -> int:
        self.waiting.appendleft(reference)
        self.pump()
        return reference.message.size

    patch.setattr(CoreBridgeSender, "take", hasty)
