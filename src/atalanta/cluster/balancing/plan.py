"""Plan of client moves. Every node computes the whole plan and does its own part, so that two nodes do not fill the
same member.

A node gives clients only if it has more than the tolerance above the mean, and gives down to the mean. Afterwards no
member is above the mean, so no client is sent back. Each zone is balanced for itself, unless a zone as a whole has too
many clients; then members of the own zone are filled first. Clients that prefer a zone (`bound`) are not moved to
another one by this plan: a zone that has too many of them for the common mean is balanced for itself.
"""

from __future__ import annotations

from collections.abc import Sequence

PERCENT = 100


class MemberClients:
    """A member and its clients, with those that are on their way to it. `accepts`: it may get more.

    `bound` of its clients prefer a zone.
    """

    def __init__(
        self, node_id: str, zone: str | None, clients: int, accepts: bool = True, bound: int = 0
    ) -> None:
        self.node_id = node_id
        self.zone = zone
        self.clients = clients
        self.accepts = accepts
        self.bound = bound


def moves_of(
    own: str, places: Sequence[MemberClients], tolerance_percent: int, across_zones: bool
) -> list[tuple[str, int]]:
    """Returns pairs of (node id, clients) that the node `own` gives; empty if it has no surplus."""
    for group in groups_of(places, tolerance_percent, across_zones):
        if any(place.node_id == own for place in group):
            return _share(own, group, tolerance_percent)
    return []


def groups_of(
    places: Sequence[MemberClients], tolerance_percent: int, across_zones: bool
) -> list[list[MemberClients]]:
    """Returns the members by zone; as one group if a zone's mean is too high and clients may leave their zone.

    Zones whose bound clients are above the common mean are never in that group.
    """
    zones: dict[str, list[MemberClients]] = {}
    for place in places:
        zones.setdefault(place.zone or "", []).append(place)
    groups = list(zones.values())
    if not across_zones or len(groups) < 2:
        return groups
    full: list[list[MemberClients]] = []
    common = groups
    while True:
        shared = [place for group in common for place in group]
        if not shared:
            return groups
        total = sum(place.clients for place in shared)
        mean = highest(total, len(shared))
        above = [group for group in common if sum(place.bound for place in group) > mean * len(group)]
        if not above:
            break
        full += above
        common = [group for group in common if group not in above]
    limit = allowed(total, len(shared), tolerance_percent)
    for group in common:
        if sum(place.clients for place in group) > limit * len(group):
            return [shared, *full]
    return groups


def homeward(count: int, takers: Sequence[MemberClients]) -> list[tuple[str, int]]:
    """Returns pairs of (node id, clients) for `count` clients that go to their zone: the emptiest members first."""
    levels = {taker.node_id: taker.clients for taker in takers}
    given: dict[str, int] = {}
    for _ in range(count if levels else 0):
        node_id = min(levels, key=lambda each: (levels[each], each))
        levels[node_id] += 1
        given[node_id] = given.get(node_id, 0) + 1
    return sorted(given.items())


def add_moves(
    moves: dict[str, int], more: Sequence[tuple[str, int]], members: Sequence[MemberClients], giver: str = ""
) -> None:
    """Adds moves to others, and to the counts of the members."""
    given = dict(more)
    for node_id, count in more:
        moves[node_id] = moves.get(node_id, 0) + count
    for member in members:
        member.clients += given.get(member.node_id, 0)
        if member.node_id == giver:
            member.clients -= sum(given.values())


def within(count: int, moves: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Returns the first `count` clients of the moves."""
    found: list[tuple[str, int]] = []
    for node_id, clients in moves:
        taken = min(clients, count)
        count -= taken
        if taken > 0:
            found.append((node_id, taken))
    return found


def highest(total: int, members: int) -> int:
    """Returns the mean of the members, rounded up."""
    return -(-total // members)


def allowed(total: int, members: int, tolerance_percent: int) -> int:
    """Returns the largest number of clients that a member may have."""
    return max(
        highest(total, members), total * (PERCENT + tolerance_percent) // (PERCENT * members)
    )


def _share(own: str, group: list[MemberClients], tolerance_percent: int) -> list[tuple[str, int]]:
    total = sum(place.clients for place in group)
    level = highest(total, len(group))
    limit = allowed(total, len(group), tolerance_percent)
    room = {
        place.node_id: level - place.clients
        for place in group
        if place.accepts and place.clients < level
    }
    for giver in sorted(group, key=_by_node):
        if giver.clients <= limit:
            continue
        given = _give(giver, giver.clients - level, group, room)
        if giver.node_id == own:
            return given
    return []


def _give(
    giver: MemberClients, surplus: int, group: list[MemberClients], room: dict[str, int]
) -> list[tuple[str, int]]:
    """Gives to the members with the fewest clients, those of the own zone first, and updates `room`."""
    given: list[tuple[str, int]] = []
    free = max(giver.clients - giver.bound, 0)
    takers = [place for place in group if room.get(place.node_id, 0) > 0]
    takers.sort(key=lambda place: (place.zone != giver.zone, place.clients, place.node_id))
    for taker in takers:
        count = min(surplus, room[taker.node_id])
        if taker.zone != giver.zone:
            count = min(count, free)
            free -= count
        if count > 0:
            given.append((taker.node_id, count))
            room[taker.node_id] -= count
            surplus -= count
    return given


def _by_node(place: MemberClients) -> str:
    return place.node_id
