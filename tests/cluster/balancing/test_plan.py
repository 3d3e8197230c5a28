"""The plan says who gives how many clients to whom."""

from __future__ import annotations

import random

from atalanta.cluster.balancing.plan import MemberClients, homeward, moves_of

TOLERANCE = 10


def plan(counts: dict[str, int], zones: dict[str, str] | None = None) -> dict[str, dict[str, int]]:
    """Returns what every node gives."""
    places = [MemberClients(node, (zones or {}).get(node), count) for node, count in counts.items()]
    return {node: dict(moves_of(node, places, TOLERANCE, True)) for node in counts}


def after(counts: dict[str, int], given: dict[str, dict[str, int]]) -> dict[str, int]:
    left = dict(counts)
    for giver, moves in given.items():
        for taker, count in moves.items():
            left[giver] -= count
            left[taker] += count
    return left


def test_the_last_node_to_restart_gets_its_share() -> None:
    counts = {"a": 35, "b": 25, "c": 0}
    assert plan(counts) == {"a": {"c": 15}, "b": {"c": 5}, "c": {}}


def test_nobody_gives_within_the_tolerance() -> None:
    assert plan({"a": 22, "b": 19, "c": 19}) == {"a": {}, "b": {}, "c": {}}
    assert plan({"a": 23, "b": 19, "c": 18})["a"] == {"b": 1, "c": 2}


def test_few_clients_are_not_tossed_about() -> None:
    assert plan({"a": 1, "b": 0, "c": 0}) == {"a": {}, "b": {}, "c": {}}
    assert plan({"a": 2, "b": 1, "c": 1}) == {"a": {}, "b": {}, "c": {}}
    assert plan({"a": 3, "b": 3, "c": 0}) == {"a": {"c": 1}, "b": {"c": 1}, "c": {}}


def test_a_zone_is_balanced_within_itself() -> None:
    zones = {"a": "east", "b": "east", "c": "west"}
    given = plan({"a": 20, "b": 0, "c": 10}, zones)
    assert given == {"a": {"b": 10}, "b": {}, "c": {}}


def test_a_zone_with_too_many_gives_to_its_own_first() -> None:
    zones = {"a": "east", "b": "east", "c": "west"}
    given = plan({"a": 30, "b": 0, "c": 0}, zones)
    assert given == {"a": {"b": 10, "c": 10}, "b": {}, "c": {}}


def test_clients_stay_in_their_zone_if_that_is_wished() -> None:
    places = [MemberClients("a", "east", 30), MemberClients("b", "east", 0), MemberClients("c", "west", 0)]
    assert moves_of("a", places, TOLERANCE, False) == [("b", 15)]


def test_who_accepts_nobody_gets_nobody() -> None:
    places = [MemberClients("a", None, 30), MemberClients("b", None, 0, False), MemberClients("c", None, 0)]
    assert moves_of("a", places, TOLERANCE, True) == [("c", 10)]


def test_one_round_ends_it_whatever_the_counts() -> None:
    draw = random.Random(5)
    for _ in range(500):
        counts = {f"n{i}": draw.randrange(0, 100) for i in range(draw.randrange(1, 8))}
        zones = {node: draw.choice("xyz") for node in counts} if draw.random() < 0.5 else {}
        given = plan(counts, zones)
        left = after(counts, given)
        assert sum(left.values()) == sum(counts.values())
        for node, moves in given.items():
            assert all(not given[taker] for taker in moves), (counts, node)
        if not zones:
            assert all(not moves for moves in plan(left).values()), (counts, left)
            mean = sum(left.values()) / len(left)
            assert max(left.values()) <= max(1.1 * mean, mean + 1)


def zoned(*places: tuple[str, str, int, int]) -> dict[str, dict[str, int]]:
    """Returns the moves of every node; a place is node, zone, clients, and how many of them prefer the zone."""
    made = [MemberClients(node, zone, count, True, bound) for node, zone, count, bound in places]
    return {place.node_id: dict(moves_of(place.node_id, made, TOLERANCE, True)) for place in made}


def test_clients_that_prefer_their_zone_are_balanced_inside_it() -> None:
    given = zoned(("a", "east", 30, 30), ("b", "east", 0, 0), ("c", "west", 0, 0))
    assert given == {"a": {"b": 15}, "b": {}, "c": {}}


def test_only_clients_without_a_preference_leave_a_zone() -> None:
    given = zoned(("a", "east", 30, 18), ("b", "west", 0, 0))
    assert given == {"a": {}, "b": {}}  # those that stay are more than the mean
    given = zoned(("a", "east", 30, 10), ("b", "west", 0, 0))
    assert given == {"a": {"b": 15}, "b": {}}
    given = zoned(("a", "east", 20, 20), ("b", "east", 20, 4), ("c", "west", 0, 0))
    assert given == {"a": {}, "b": {"c": 6}, "c": {}}


def test_a_zone_full_of_its_own_clients_does_not_keep_the_others_from_being_balanced() -> None:
    given = zoned(("a", "east", 60, 60), ("b", "west", 20, 0), ("c", "north", 0, 0))
    assert given == {"a": {}, "b": {"c": 10}, "c": {}}


def test_no_plan_ever_moves_more_than_may_leave() -> None:
    draw = random.Random(7)
    for _ in range(500):
        places = []
        for number in range(draw.randrange(1, 8)):
            count = draw.randrange(0, 100)
            places.append((f"n{number}", draw.choice("xyz"), count, draw.randrange(0, count + 1)))
        zones = {node: zone for node, zone, _, _ in places}
        given = zoned(*places)
        for node, zone, count, bound in places:
            leaving = sum(moved for taker, moved in given[node].items() if zones[taker] != zone)
            assert leaving <= count - bound
            assert all(not given[taker] for taker in given[node])


def test_clients_on_their_way_home_fill_the_emptiest_members() -> None:
    takers = [MemberClients("a", "east", 3), MemberClients("b", "east", 0)]
    assert homeward(5, takers) == [("a", 1), ("b", 4)]
    assert homeward(5, []) == []
