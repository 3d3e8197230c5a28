"""A lost range of a queue's log view, and its encoding."""

from __future__ import annotations

from atalanta.message.encoding.buffer import Reader, Writer


class LostRange:
    """A part of a queue's sequence that was removed without an acknowledgement through the log view.

    Sequences `start` to `end`, both included, and the reason. A value.
    """

    def __init__(self, start: int, end: int, why: str) -> None:
        self.start: int = start
        self.end: int = end
        self.why: str = why

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LostRange) and (self.start, self.end, self.why) == (
            other.start,
            other.end,
            other.why,
        )

    def __hash__(self) -> int:
        return hash((self.start, self.end, self.why))

    def __repr__(self) -> str:
        return f"LostRange({self.start}, {self.end}, {self.why!r})"


def decode_lost_range(reader: Reader, what: str) -> LostRange:
    """Decodes a range. DecodeError names `what`."""
    start = reader.int64(f"{what}.start")
    end = reader.int64(f"{what}.end")
    return LostRange(start, end, reader.simple_string(f"{what}.why"))


def encode_lost_range(writer: Writer, lost: LostRange) -> None:
    writer.int64(lost.start)
    writer.int64(lost.end)
    writer.simple_string(lost.why)
