"""The policies of Artemis that choose among the ready targets, with the same hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from atalanta.cluster.connection_routers.config import (
    CONSISTENT_HASH,
    CONSISTENT_HASH_MODULO,
    FIRST_ELEMENT,
    LEAST_CONNECTIONS,
)

FNV_INIT: Final = 0x811C9DC5
FNV_PRIME: Final = 0x01000193
NOT_COUNTED: Final = 1 << 31


class TargetAttributes:
    """The attributes of a target that policies use. `connections` is -1 until the target has answered."""

    node_id: str = ""
    connections: int = -1


def java_hash(text: str) -> int:
    """Returns FNV-1a over UTF-16 code units as a signed 32-bit int, like ConsistentHashPolicy."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    value = FNV_INIT
    for at in range(0, len(encoded), 2):
        value = ((value ^ int.from_bytes(encoded[at : at + 2], "little")) * FNV_PRIME) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


class Policy:
    """A policy. `number` is its property: a modulus, or the connections below which targets count as equal."""

    def __init__(self, name: str, number: int, position: int) -> None:
        self.name = name
        self.number = number
        self.position = position  # of round-robin

    @property
    def counts(self) -> bool:
        """Returns True if targets must be asked for their connections."""
        return self.name == LEAST_CONNECTIONS

    def transform(self, key: str) -> str:
        if self.name == CONSISTENT_HASH_MODULO and self.number > 0:
            return str((java_hash(key) & 0x7FFFFFFF) % self.number)
        return key

    def select(self, targets: Sequence[TargetAttributes], key: str) -> int:
        """Returns an index in `targets`, or -1 for no target."""
        if not targets or self.name == CONSISTENT_HASH_MODULO:
            return -1
        if len(targets) == 1 or self.name == FIRST_ELEMENT:
            return 0
        if self.name == CONSISTENT_HASH:
            return _by_hash(targets, key)
        places = list(range(len(targets)))
        if self.name == LEAST_CONNECTIONS:
            least = min(self._count(each) for each in targets)
            places = [at for at in places if self._count(targets[at]) == least]
        self.position = (self.position + 1) % (1 << 31)
        return places[self.position % len(places)]

    def _count(self, target: TargetAttributes) -> int:
        if target.connections < 0:
            return NOT_COUNTED
        return 0 if target.connections < self.number else target.connections


def _by_hash(targets: Sequence[TargetAttributes], key: str) -> int:
    """Returns the target with the greatest hash not above the key's, else the one with the lowest hash."""
    ordered = sorted((java_hash(target.node_id), at) for at, target in enumerate(targets))
    wanted = java_hash(key)
    found = ordered[-1]
    for entry in ordered:
        if entry[0] <= wanted:
            found = entry
    return found[1] if found[0] <= wanted else ordered[0][1]
