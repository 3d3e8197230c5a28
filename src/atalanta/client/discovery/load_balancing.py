"""Balancing policies, which choose the server of a new connection (Artemis' package …api.core.client.loadbalance).

A URL names one of the four by its class; it never names code to be loaded. A policy of the program is a Python object
given as `connect(…, balancing=policy)`: a function of the number of servers that returns an index, or an object with
such a method `select`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Protocol

PACKAGE: Final = "org.apache.activemq.artemis.api.core.client.loadbalance."
SUFFIX: Final = "ConnectionLoadBalancingPolicy"


class Balancing(Protocol):
    """A policy, asked once for every new connection."""

    def select(self, count: int) -> int:
        """Returns an index, 0 <= index < count; `count` is at least 1."""


class RoundRobin:
    """The servers in turn, from a random one on."""

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        self._draw = draw
        self._position = -1

    def select(self, count: int) -> int:
        """Returns the next index."""
        # The result is a local name: several threads may open connections of one factory.
        position = self._draw(count) if self._position < 0 else self._position + 1
        if position >= count:
            position = 0
        self._position = position
        return position


class Random:
    """A random server for each connection."""

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        self._draw = draw

    def select(self, count: int) -> int:
        """Returns a new random index."""
        return self._draw(count)


class RandomSticky:
    """A random server, then always the same one; the last server if there are fewer now."""

    def __init__(self, draw: Callable[[int], int] = random.randrange) -> None:
        self._draw = draw
        self._position = -1

    def select(self, count: int) -> int:
        """Returns the index drawn once."""
        if self._position < 0:
            self._position = self._draw(count)
        return min(self._position, count - 1)


class FirstElement:
    """The first server, always."""

    def select(self, count: int) -> int:
        """Returns 0."""
        return 0


class Chosen:
    """A function of the program as a policy."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self._choose = choose

    def select(self, count: int) -> int:
        """Returns the function's result."""
        return self._choose(count)


POLICIES: Final[dict[str, Callable[[], Balancing]]] = {
    "RoundRobin": RoundRobin,
    "Random": Random,
    "RandomSticky": RandomSticky,
    "FirstElement": FirstElement,
}


def policy_named(name: str) -> Balancing:
    """Returns a new policy by Artemis' class name, with or without package and suffix. Raises ValueError otherwise."""
    short = name.removeprefix(PACKAGE).removesuffix(SUFFIX)
    make = POLICIES.get(short)
    if make is None:
        known = ", ".join(f"{each}{SUFFIX}" for each in POLICIES)
        raise ValueError(f"is not one of {known}; pass a policy of your own as connect(…, balancing=…)")
    return make()


def policy_given(balancing: Balancing | Callable[[int], int]) -> Balancing:
    """Returns the policy given to `connect`. Raises TypeError if the object cannot choose."""
    if hasattr(balancing, "select"):
        return balancing
    if callable(balancing):
        return Chosen(balancing)
    raise TypeError(f"balancing={balancing!r} is neither a function nor has a method select")


def select(policy: Balancing, count: int) -> int:
    """Returns the policy's choice. Raises ValueError if it is not a valid index."""
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
