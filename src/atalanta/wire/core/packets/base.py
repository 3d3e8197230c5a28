"""Packet, the base of every packet, and the wire layout that stands beside each of its fields.

A packet is a dataclass whose fields stand in the order of the wire, each with its encoding:
`queue: str = field(metadata=wire(SIMPLE_STRING))`. wire/core/packets/layout.py reads and writes them. The
packets of the message path are dataclasses too, but for their hand-written constructors, which
compiled callers reach without the interpreter.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Final

from atalanta.wire.core.packet_types import NOT_COUNTED

# Encodings of fields: the primitives of fact sheet A1.0 under the names of Reader and Writer.
# Lists are an int32 count and the entries; REST is all that is left of the packet.
BOOL: Final = 0
INT8: Final = 1
INT32: Final = 2
INT64: Final = 3
SIMPLE_STRING: Final = 4
NULLABLE_SIMPLE_STRING: Final = 5
STRING: Final = 6
NULLABLE_STRING: Final = 7
NULLABLE_BOOL: Final = 8
NULLABLE_INT32: Final = 9
NULLABLE_INT64: Final = 10
NULLABLE_TRANSPORT: Final = 11
XID: Final = 12
SIMPLE_STRINGS: Final = 13
INT8S: Final = 14
XIDS: Final = 15
LOST_RANGES: Final = 16
REST: Final = 17

# Fields that are never printed, not even while looking for a mistake.
SECRETS: Final = ("password",)


class Packet:
    """A packet's content; equal if of one class and of equal fields. The channel is the frame's.

    `type` is its code on the wire, set by `numbered`.
    """

    type: ClassVar[int] = 0

    def counts(self) -> bool:
        """Returns whether it is numbered and kept for a reattach (isRequiresConfirmations)."""
        return self.type not in NOT_COUNTED

    def values(self) -> list[object]:
        """Returns the fields' values in their order, in a form that can be compared."""
        return [getattr(self, name) for name in self._names()]

    def _names(self) -> list[str]:
        made: Any = self.__class__
        return [each.name for each in fields(made)]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Packet)
            and self.type == other.type
            and self.values() == other.values()
        )

    def __hash__(self) -> int:
        raise TypeError("packets have no hash")

    def __repr__(self) -> str:
        parts = [
            f"{name}={'***' if name in SECRETS else repr(getattr(self, name))}"
            for name in self._names()
        ]
        return f"{self.__class__.__name__}({', '.join(parts)})"


def wire(encoding: int, since: int = 0, tail: bool = False) -> dict[str, int]:
    """Returns a field's metadata: how it is encoded and when it is there.

    since: the protocol version from which on the packet has it. tail: peers of older versions may
    end the packet before this field or any of those behind it. A field that may be missing has its
    default then. Packets that still grow, without a new type, end with `more`, a REST: what a newer
    peer added is skipped, as Artemis does, and goes out again as it came.
    """
    return {"encoding": encoding, "since": since, "tail": int(tail)}


def numbered(packets: dict[int, type[Packet]]) -> dict[int, type[Packet]]:
    """Tells each packet class its code, and returns the table.

    A class variable beside the fields would become a field of the compiled class.
    """
    for code, packet in packets.items():
        packet.type = code
    return packets
