"""Packet, the base class of every packet, and the wire layout in the metadata of its fields.

A packet is a dataclass with its fields in the order of the wire, each with its encoding: `queue: str =
field(metadata=wire(SIMPLE_STRING))`. wire/core/packets/layout.py reads and writes them. The packets of the message
path have hand-written constructors, which compiled callers call without the interpreter; they, and packets without
fields of their own, say `init=False`. The others share one constructor (message/quick_dataclass.py): each one that the
standard library makes takes 0.1 ms of every start.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Final

from atalanta.wire.core.packet_types import NOT_COUNTED

# Encodings of fields, under the names of Reader and Writer.
# Lists are an int32 count and the entries; REST is the rest of the packet.
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
POSITION: Final = 18

# Fields that are never printed, not even in traces.
SECRETS: Final = ("password",)


class Packet:
    """The content of a packet; two are equal if class and fields are equal. The frame has the channel.

    `type` is the packet's code on the wire, set by `numbered`.
    """

    type: ClassVar[int] = 0

    def counts(self) -> bool:
        """Returns True if the packet is numbered and kept for a reattach (isRequiresConfirmations)."""
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
    """Returns a field's metadata: its encoding, and the versions that have the field.

    since: the first protocol version whose packet has the field. tail: peers of older versions may end the packet
    before this field or any field behind it. A missing field has its default. Packets that grow without a new type
    end with `more`, a REST: fields of a newer peer are skipped, as Artemis does, and are sent on as they came.
    """
    return {"encoding": encoding, "since": since, "tail": int(tail)}


def numbered(packets: dict[int, type[Packet]]) -> dict[int, type[Packet]]:
    """Sets the code of each packet class, and returns the table.

    A class variable beside the fields would become a field of the compiled class.
    """
    for code, packet in packets.items():
        packet.type = code
    return packets
