"""Places in a network: each client at the first broker of its order that has room."""

from __future__ import annotations

import random

import pytest

from atalanta.cluster.balancing.network_places import OWN, NetworkLoads, Room, places_of

SECOND = 1_000_000_000


def orders(count: int, seed: int, names: tuple[str, ...] = ("a", "b", "c")) -> list[list[str]]:
    """An order of the brokers for each client."""
    draw = random.Random(seed)
    return [draw.sample(names, len(names)) for _ in range(count)]


def one_round(
    at: list[str], wanted: list[list[str]], loads: dict[str, NetworkLoads], now: int, told: dict[str, int]
) -> int:
    """Every broker does its part, with the counts that it was told; returns how many clients were moved."""
    before = list(at)
    for name, known in loads.items():
        known.tell(now, {other: told[other] for other in loads if other != name})
        own = {
            number: [OWN if each == name else each for each in order]
            for number, order in enumerate(wanted)
            if before[number] == name
        }
        room = Room(len(own), known, [each for each in loads if each != name])
        room.share(known)
        for number, target in places_of(own, room).items():
            at[number] = target
            known.sent(now, target)
    return sum(one != other for one, other in zip(before, at, strict=True))


@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("seed", range(20))
def test_loads_are_bounded_and_come_to_rest(seed: int, delay: int) -> None:
    """Counts are told late, by as many rounds; all begin at one broker, or anywhere."""
    draw = random.Random(seed)
    names = ("a", "b", "c", "d")[: draw.randint(2, 4)]
    count = draw.randint(1, 60)
    wanted = orders(count, seed, names)
    at = [draw.choice(names[: draw.randint(1, len(names))]) for _ in wanted]
    loads = {name: NetworkLoads() for name in names}
    history = [{name: at.count(name) for name in names}] * (delay + 1)
    moved = [_round(history, at, wanted, loads, number, delay) for number in range(90)]
    assert not any(moved[60:])
    mean = -(-count // len(names))
    assert max(at.count(name) for name in names) <= max(mean, 1.2 * count / len(names))


def _round(
    history: list[dict[str, int]], at: list[str], wanted: list[list[str]], loads: dict[str, NetworkLoads], number: int,
    delay: int,
) -> int:  # fmt: skip
    moved = one_round(at, wanted, loads, number * SECOND, history[-1 - delay])
    history.append({name: at.count(name) for name in loads})
    return moved


def test_a_client_goes_home_when_its_broker_has_room_again() -> None:
    loads = NetworkLoads()
    loads.tell(0, {"b": 4})
    assert places_of({1: ["b", OWN], 2: [OWN, "b"]}, Room(2, loads, ["b"])) == {}
    loads.tell(SECOND, {"b": 0})
    assert places_of({1: ["b", OWN], 2: [OWN, "b"]}, Room(2, loads, ["b"])) == {1: "b"}


def test_a_broker_that_tells_no_count_always_has_room() -> None:
    loads = NetworkLoads()
    loads.tell(0, {"classic": None})
    wanted = {number: ["classic", OWN] for number in range(50)}
    assert places_of(wanted, Room(50, loads, ["classic"])) == dict.fromkeys(range(50), "classic")
    assert places_of({1: [OWN, "classic"]}, Room(1, loads, ["classic"])) == {}


def test_who_was_sent_is_counted_until_the_broker_tells_it() -> None:
    loads = NetworkLoads()
    loads.tell(0, {"b": 0})
    for _ in range(3):
        loads.sent(0, "b")
    assert loads.of("b") == 3
    loads.tell(SECOND, {"b": 2})
    assert loads.of("b") == 3
    loads.tell(4 * SECOND, {"b": 2})
    assert loads.of("b") == 2
    loads.tell(5 * SECOND, {})
    assert loads.of("b") is None
