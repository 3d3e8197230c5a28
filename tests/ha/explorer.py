"""An explorer of small worlds: breadth first through every state that a world can reach.

A world has `key()` (a hashable value: equal for equal states), `steps()` (each step gives a label and the next
world), and `wrong` (the broken promise in words, "" if none). Worlds are not changed once they are explored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Protocol, TypeAlias, TypeVar

from atalanta.ha.lease import ActiveLease, Promise
from atalanta.ha.register import Register, RegisterView


class World(Protocol):
    """A state, and what can happen next."""

    wrong: str

    def key(self) -> Hashable: ...

    def steps(self) -> Iterator[tuple[str, World]]: ...

    def healed(self) -> str:
        """Returns the broken promise after all faults have ended, "" if none."""
        ...


# Classes of the product whose objects belong to one process and change.
MUTABLE = (RegisterView, Promise, ActiveLease)
UNCHANGING = {"terms"}
# Classes whose objects are copied by reference; the rest of them is asked for more slowly.
PLAIN = {int, str, bool, bytes, tuple, NoneType, Register}

Path: TypeAlias = "tuple[str, Path] | None"
T = TypeVar("T")


@dataclass
class Result:
    """A search: how many states it saw, whether these were all, and the first broken promise with its steps."""

    states: int
    complete: bool
    wrong: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.states} states, {self.wrong or 'nothing wrong'}", *self.trace])


def explore(start: World, states_max: int, heal_every: int = 0) -> Result:
    """Searches until a promise is broken, everything was seen, or `states_max` states were.

    Of every `heal_every` states one is healed, too; 0 heals none.
    """
    seen = {hash(start.key())}
    waiting: deque[tuple[World, Path]] = deque([(start, None)])
    count = 0
    while waiting:
        world, path = waiting.popleft()
        count += 1
        wrong = world.wrong
        if not wrong and heal_every and count % heal_every == 0:
            wrong = world.healed()
        if wrong:
            return Result(count, False, wrong, tuple(trace(path)))
        if count >= states_max:
            return Result(count, False)
        for label, following in world.steps():
            key = hash(following.key())
            if key not in seen:
                seen.add(key)
                waiting.append((following, (label, path)))
    return Result(count, True)


def trace(path: Path) -> list[str]:
    """Returns the labels of a path, the first step first."""
    labels = []
    while path is not None:
        label, path = path
        labels.append(label)
    return labels[::-1]


def copied(value: T) -> T:
    """Returns a copy of an object of the product with its lists, dictionaries and objects, but not what is frozen."""
    fresh: T = object.__new__(type(value))
    parts = vars(value).copy()
    for name, part in parts.items():
        kind = type(part)
        if kind in PLAIN:
            continue
        if kind is list or kind is dict:
            parts[name] = part.copy()
        elif isinstance(part, MUTABLE):
            parts[name] = copied(part)
    fresh.__dict__ = parts
    return fresh


def key_of(value: object) -> Hashable:
    """Returns a hashable value with everything that the object knows."""
    parts: list[Hashable] = [type(value).__name__]
    for name, part in vars(value).items():
        kind = type(part)
        if kind in PLAIN:
            parts.append(part)
        elif kind is list:
            parts.append(tuple(part))
        elif kind is dict:
            parts.append(tuple(sorted(part.items())))
        elif isinstance(part, MUTABLE):
            parts.append(key_of(part))
        elif name not in UNCHANGING:
            parts.append(part)
    return tuple(parts)
