"""Conversations that activemq-client wrote, and commands with random fields."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.commands.table import CLASSES
from atalanta.wire.openwire.encoding.cache import SIZE_DEFAULT
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.encoding.throwable import StackFrame, Throwable
from atalanta.wire.openwire.options import WireFormatOptions
from tools.openwire_schema import Field, Schema, Structure

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "openwire"
CLIENTS = ("activemq-client-5.18.6", "activemq-client-6.1.4")
TEXTS = ("", "a", "é€", "𝄞", "\0", "x" * 200, "\ud800")
LONGS = (0, 1, -1, 255, 65535, 65536, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, -(1 << 63))
SCHEMA = Schema()
# DiscoveryEvent, four of journals, PartialCommand, LastPartialCommand, ReplayCommand, MessageDispatchNotification.
NOT_FOR_BROKERS = (40, 50, 52, 53, 54, 60, 61, 65, 90)
KINDS = {kind.__name__: (since, kind) for _, since, kind in CLASSES}


@dataclass(frozen=True)
class Conversation:
    """Frames that one object of Java wrote; `prefix_bytes` of each are its length.

    `not_for_brokers` are the frames of NOT_FOR_BROKERS: none of them puts anything into a cache.
    """

    place: str
    options: WireFormatOptions
    prefix_bytes: int
    frames: tuple[bytes, ...]
    not_for_brokers: tuple[bytes, ...]


def lines(name: str) -> list[dict[str, object]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@cache
def conversations() -> tuple[Conversation, ...]:
    """All of them, in the order of the files."""
    return tuple(
        conversation(f"{name}:{number}", entry)
        for name in CLIENTS
        for number, entry in enumerate(lines(name), 1)
    )


def conversation(place: str, entry: dict[str, object]) -> Conversation:
    frames, version, size = entry["frames"], entry["version"], entry["cache_size"]
    assert isinstance(frames, list) and isinstance(version, int) and isinstance(size, int)
    options = WireFormatOptions(
        version=version,
        cache=bool(entry["cache"]),
        cache_size=size or SIZE_DEFAULT,
        tight=bool(entry["tight"]),
        size_prefix_disabled=not entry["prefix"],
        stack_traces=bool(entry["traces"]),
    )
    prefix = 4 if entry["prefix"] else 0
    known: list[bytes] = []
    unknown: list[bytes] = []
    for frame in map(bytes.fromhex, frames):
        (unknown if frame[prefix] in NOT_FOR_BROKERS else known).append(frame)
    return Conversation(place, options, prefix, tuple(known), tuple(unknown))


class RandomCommands:
    """Structures with random fields. A version decides which classes exist."""

    def __init__(self, seed: int, version: int) -> None:
        self.random = random.Random(seed)
        self.version = version

    def one(self, name: str, depth: int = 0) -> DataStructure:
        made = SCHEMA.structures[name]
        fields = made.fields + SCHEMA.inherited(made)
        values = {each.name: self.value(each, depth) for each in fields}
        return KINDS[name][1](**values)

    def below(self, kind: str) -> list[str]:
        """Returns the classes of the version that may stand where `kind` is expected."""
        if kind in ("DataStructure", "Identifier"):
            return ["ConnectionId", "ConsumerId", "ProducerId"]
        return [
            name
            for name, (since, _) in KINDS.items()
            if since <= self.version and self._is_below(SCHEMA.structures[name], kind)
        ]

    def _is_below(self, made: Structure, kind: str) -> bool:
        base = SCHEMA.structures.get(made.base)
        return made.name == kind or (base is not None and self._is_below(base, kind))

    def value(self, field: Field, depth: int) -> object:
        chosen = self.random
        if field.encoding == "flag":
            return chosen.random() < 0.5
        if field.encoding == "int8":
            return chosen.randrange(-128, 128)
        if field.encoding == "int32":
            return chosen.choice((0, -1, chosen.randrange(-(1 << 31), 1 << 31)))
        if field.encoding == "long":
            return chosen.choice(LONGS)
        if field.encoding == "octets8":
            return chosen.randbytes(8)
        if chosen.random() < 0.3:
            return None
        if field.encoding == "text":
            return chosen.choice(TEXTS)
        if field.encoding == "octets":
            return chosen.randbytes(chosen.choice((0, 1, 40)))
        if field.encoding == "throwable":
            return self.throwable()
        return self.structure(field, depth)

    def throwable(self) -> Throwable:
        stack = [StackFrame("a.B", "run", None, -1), StackFrame("a.C", "é", "C.java", 7)]
        return Throwable("java.io.IOException", None, stack, Throwable("x.Y", "below"))

    def structure(self, field: Field, depth: int) -> object:
        if field.encoding == "structures":
            if depth > 1:
                return []
            return [self.one(self.random.choice(self.below(field.kind)), depth + 1) for _ in range(2)]
        if depth > 2:
            return ConnectionId("c") if field.kind in ("DataStructure", "Identifier") else None
        return self.one(self.random.choice(self.below(field.kind)), depth + 1)
