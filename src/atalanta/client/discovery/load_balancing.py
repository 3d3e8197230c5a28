"""Which server a new connection goes to: Artemis' policies (package …api.core.client.loadbalance), or one's own.

A URL names one of the four by its class; it never names code that is loaded. One's own is a Python object, given as
`connect(…, balancing=policy)`: a function of the number of servers that returns an index, or an object with such a
`select`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Protocol

PACKAGE: Final = "org.apache.activemq.artemis.api.core.client.loadbalance."
SUFFIX: Final = "ConnectionLoadBalancingPolicy"


class Balancing(Protocol):
    """Asked once for every new connection."""

    def select(self, count: int) -> int:
        """0 <= index < count; `count` is at least 1."""


class RoundRobin:
    """One after the other, from a random one on."""

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        self._draw = draw
        self._position = -1

    def select(self, count: int) -> int:
        """The next one."""
        if self._position < 0:
            self._position = self._draw(count)
        else:
            self._position += 1
            if self._position >= count:
                self._position = 0
        return self._position


class Random:
    """Any, each time."""

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        self._draw = draw

    def select(self, count: int) -> int:
        """Drawn anew."""
        return self._draw(count)


class RandomSticky:
    """Any, and then always that one; where there are fewer servers than it says, the last."""

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        self._draw = draw
        self._position = -1

    def select(self, count: int) -> int:
        """Drawn once."""
        if self._position < 0:
            self._position = self._draw(count)
        return min(self._position, count - 1)


class FirstElement:
    """Always the first."""

    def select(self, count: int) -> int:
        """The first."""
        return 0


class Chosen:
    """A function of one's own."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def select(self, count: int) -> int:
        """What the function says."""
        return self._choose(count)


POLICIES: Final[dict[str, Callable[[], Balancing]]] = {
    "RoundRobin": RoundRobin,
    "Random": Random,
    "RandomSticky": RandomSticky,
    "FirstElement": FirstElement,
}


def policy_named(name: str) -> Balancing:
    """A new policy by Artemis' class name, with or without package and suffix. ValueError for any other class."""
    short = name.removeprefix(PACKAGE).removesuffix(SUFFIX)
    make = POLICIES.get(short)
    if make is None:
        known = ", ".join(f"{each}{SUFFIX}" for each in POLICIES)
        raise ValueError(f"is none of {known}; one's own is given as connect(…, balancing=…)")
    return make()


def policy_given(balancing: Balancing | Callable[[int], int]) -> Balancing:
    """What `connect` was given. TypeError if it can choose nothing."""
    if hasattr(balancing, "select"):
        return balancing
    if callable(balancing):
        return Chosen(balancing)
    raise TypeError(f"balancing={balancing!r} is neither a function nor has a method select")


def select(policy: Balancing, count: int) -> int:
    """The policy's choice. ValueError if it is no index."""
    index = policy.select(count)
    if not isinstance(index, int) or not 0 <= index < count:
        raise ValueError(f"{type(policy).__name__}.select({count}) returned {index!r}")
    return index


__all__ = [
    "Balancing",
    "FirstElement",
    "Random",
    "RandomSticky",
    "RoundRobin",
    "policy_given",
    "policy_named",
    "select",
]
