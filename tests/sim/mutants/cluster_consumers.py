"""Consumers at all members of a cluster."""

from __future__ import annotations

from collections.abc import Iterable

from atalanta.wire.core.client.consumer import Delivery
from atalanta.wire.core.client.member_consumer import MemberConsumer
from atalanta.wire.core.client.member_consumers import MemberConsumers
from atalanta.wire.core.client.topology import Member
from tests.sim.mutants.patching import Patch


def earlier_ones_stay_unacknowledged(patch: Patch) -> None:
    """A cumulative acknowledgement counts at the member of its message only."""
    through = MemberConsumers._through

    def one(self: MemberConsumers, delivery: Delivery) -> list[Delivery]:
        return [each for each in through(self, delivery) if each.consumer is delivery.consumer]

    patch.setattr(MemberConsumers, "_through", one)


def first_members_are_all(patch: Patch) -> None:
    """Members that come later are not followed."""
    topology = MemberConsumers.topology

    def once(self: MemberConsumers, members: Iterable[Member]) -> None:
        if not self.members:
            topology(self, members)

    patch.setattr(MemberConsumers, "topology", once)


def turn_ends_at_its_first_member(patch: Patch) -> None:
    """With a window of 0 the same member is asked each time."""
    in_turn = MemberConsumers._in_turn

    def first(self: MemberConsumers) -> list[MemberConsumer]:
        members = in_turn(self)
        return sorted(members, key=lambda each: each.node_id)[:1] if self.window == 0 else members

    patch.setattr(MemberConsumers, "_in_turn", first)
