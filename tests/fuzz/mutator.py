"""Inputs from inputs: bytes changed, moved, repeated, and pieces of one in another."""

from __future__ import annotations

import random
from collections.abc import Sequence

INTEGERS = (
    0, 1, 2, 7, 8, 9, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 1 << 20,
    0x3FFFFFFF, 0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63,
    (1 << 64) - 1,
)  # fmt: skip
NUMBERS = (b"0", b"-1", b"1e999", b"-9223372036854775809", b"9223372036854775807", b"1" * 5000)


class Mutator:
    """`words` are pieces the decoder looks for."""

    def __init__(self, size_max: int, words: Sequence[bytes] = ()) -> None:
        self.size_max = size_max
        self.words = tuple(words)

    def change(self, source: random.Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        """A few steps away from `data`, at most `size_max` bytes."""
        made = data
        for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
            made = self.step(source, made, corpus)
        return made[: self.size_max]

    def step(self, source: random.Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        chosen = source.randrange(9)
        at = source.randrange(len(data) + 1)
        if chosen == 0 and data:
            at = min(at, len(data) - 1)
            return data[:at] + bytes([data[at] ^ (1 << source.randrange(8))]) + data[at + 1 :]
        if chosen == 1:
            return data[:at] + source.randbytes(source.choice((1, 1, 2, 4))) + data[at + 1 :]
        if chosen == 2:
            width = source.choice((1, 2, 4, 4, 8))
            number = (source.choice(INTEGERS) & ((1 << 8 * width) - 1)).to_bytes(width, "big")
            return data[:at] + number + data[at + width :]
        if chosen == 3:  # a piece goes
            return data[:at] + data[at + self.span(source, data) :]
        if chosen == 4:  # a piece comes again
            piece = data[at : at + self.span(source, data)]
            return data[:at] + piece * source.choice((2, 2, 3, 50)) + data[at:]
        if chosen == 5:  # a piece of another input
            other = source.choice(corpus) if corpus else data
            begin = source.randrange(len(other) + 1)
            piece = other[begin : begin + self.span(source, other)]
            return data[:at] + piece + data[at + source.choice((0, len(piece))) :]
        if chosen == 6 and self.words:
            word = source.choice(self.words)
            return data[:at] + word + data[at + source.choice((0, len(word))) :]
        if chosen == 7:
            return data[:at] if source.random() < 0.3 else self._number(source, data, at)
        return data[:at] + source.randbytes(source.randrange(1, 9)) + data[at:]

    def _number(self, source: random.Random, data: bytes, at: int) -> bytes:
        """Digits replaced by other digits, where there are some."""
        while at < len(data) and not 0x30 <= data[at] <= 0x39:
            at += 1
        end = at
        while end < len(data) and 0x30 <= data[end] <= 0x39:
            end += 1
        return data[:at] + source.choice(NUMBERS) + data[end:] if end > at else data

    def span(self, source: random.Random, data: bytes) -> int:
        return source.randrange(1, min(len(data), source.choice((4, 16, 64, 4096))) + 1) if data else 0


class FrameMutator(Mutator):
    """For streams of frames behind `head` bytes: frames come, go and change places, lengths stay right."""

    def __init__(self, size_max: int, head: int, frames: Sequence[bytes]) -> None:
        super().__init__(size_max)
        self.head = head
        self.frames = tuple(frames)

    def step(self, source: random.Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        if source.random() < 0.1:
            return super().step(source, data, corpus)
        if source.random() < 0.05:
            at = source.randrange(self.head)
            return data[:at] + source.randbytes(1) + data[at + 1 :]
        head, frames = data[: self.head], cut(data[self.head :])
        at = source.randrange(len(frames) + 1)
        chosen = source.randrange(8)
        if chosen < 2:
            frames.insert(at, source.choice(self.frames))
        elif chosen == 2 and corpus:
            frames[at:at] = cut(source.choice(corpus)[self.head :])[:8]
        elif at < len(frames):
            if chosen == 3:
                del frames[at]
            elif chosen == 4:
                frames.insert(source.randrange(len(frames)), frames[at])
            else:
                frames[at] = self._frame(source, frames[at])
        return head + b"".join(frames)

    def _frame(self, source: random.Random, frame: bytes) -> bytes:
        """Type or channel changed now and then, the payload mostly."""
        chosen = source.randrange(12)
        if chosen == 0 and len(frame) > 5:
            return frame[:4] + source.randbytes(1) + frame[5:]
        if chosen == 1:
            channel = source.choice((0, 1, 3, 10, 11, 12)).to_bytes(8, "big")
            return frame[:5] + channel + frame[13:]
        payload = super().step(source, frame[13:], self.frames)
        return (len(payload) + 9).to_bytes(4, "big") + frame[4:13] + payload


def cut(stream: bytes) -> list[bytes]:
    """Frames as far as they are whole; the rest is the last piece."""
    frames: list[bytes] = []
    at = 0
    while at < len(stream):
        end = at + 4 + int.from_bytes(stream[at : at + 4], "big")
        if end < at + 13 or end > len(stream):
            end = len(stream)
        frames.append(stream[at:end])
        at = end
    return frames
