"""The time from which on a zone that was away counts again."""

from __future__ import annotations

from atalanta.cluster.balancing.zones import ZonePresence
from atalanta.kernel.ports import Ids

SECOND = 1_000_000_000
STABILITY = 30 * SECOND
OLD = 3_600 * SECOND


class Drawn(Ids):
    """Secrets in a row."""

    def __init__(self) -> None:
        self.number = 0

    def secret(self, size: int) -> bytes:
        self.number += 1_234_567_890
        return self.number.to_bytes(size, "big")


def node(started: int, ids: Ids | None = None) -> ZonePresence:
    made = ZonePresence(STABILITY, ids or Drawn())
    made.started = started
    return made


def test_a_zone_that_comes_back_counts_after_the_time_and_at_most_a_quarter_more() -> None:
    ids = Drawn()
    times = []
    for _ in range(20):
        presence = node(-OLD, ids)
        presence.observe(0, [("east", OLD)])
        times.append(presence.since["east"])
    assert all(STABILITY <= at <= STABILITY * 5 // 4 for at in times)
    assert len(set(times)) == 20  # nodes do not begin at the same moment


def test_another_member_does_not_begin_the_time_again_and_an_absence_does() -> None:
    presence = node(-OLD)
    presence.observe(0, [("east", OLD)])
    first = presence.since["east"]
    presence.observe(10 * SECOND, [("east", 0), ("east", OLD), (None, OLD)])
    assert presence.since == {"east": first}
    assert not presence.stable(first - 1, "east")
    assert presence.stable(first, "east")
    presence.observe(50 * SECOND, [])
    assert not presence.stable(50 * SECOND, "east")
    presence.observe(51 * SECOND, [("east", OLD)])
    assert presence.since["east"] >= 51 * SECOND + STABILITY


def test_a_node_that_has_just_started_asks_how_long_the_members_have_been_up() -> None:
    presence = node(0)
    presence.observe(SECOND, [("east", 5 * SECOND), ("west", OLD), ("north", SECOND)])
    presence.observe(2 * SECOND, [("east", 6 * SECOND), ("west", OLD), ("north", 2 * SECOND), ("north", OLD)])
    assert presence.stable(2 * SECOND, "west")
    assert presence.stable(2 * SECOND, "north")
    assert presence.since["east"] == 26 * SECOND
