"""XML that mostly stays well-formed: elements come, go and change places whole; texts and attributes change within."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from tests.fuzz.mutator import Mutator

TAG = re.compile(rb"<(/?)([A-Za-z_][\w.:-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*?)(/?)>")
ATTRIBUTE = re.compile(rb"([\w.:-]+)=(\"[^\"<]*\"|'[^'<]*')")
TEXT = re.compile(rb">([^<>]*)<")
VALUES = (
    b"", b"0", b"-1", b"1", b"true", b"false", b"x", b"10M", b"9999999999999999999", b"1e9", b"NaN", b"*", b"#", b"a.b",
    b"${a:b}", b"${", b"a,b", b"tcp://h:1?a=b", b"&#233;", b"&amp;", b"&lt;", b" 5 ", b"-9223372036854775809", b"PAGE",
)  # fmt: skip
RAW_SHARE = 0.08


class Element(NamedTuple):
    """Where it begins and ends; `inner_begin` and `inner_end` are where its content does."""

    begin: int
    inner_begin: int
    inner_end: int
    end: int


class XmlMutator(Mutator):
    """`texts` are values, `names` elements and attributes that some reader looks for."""

    def __init__(
        self, size_max: int, words: Sequence[bytes], names: Sequence[bytes], texts: Sequence[bytes]
    ) -> None:
        super().__init__(size_max, words)
        self.names = tuple(names)
        self.texts = (*VALUES, *texts)

    def change(self, source: random.Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        """Returns a changed file; one that is too large is cut down by whole elements."""
        made = data
        for _ in range(source.choice((1, 1, 1, 2, 3, 6))):
            made = self.step(source, made, corpus)
        for _ in range(8):
            found = elements(made) if len(made) > self.size_max else []
            if len(found) > 1:
                gone = source.choice(found[1:])
                made = made[: gone.begin] + made[gone.end :]
        return made[: self.size_max]

    def step(self, source: random.Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        if source.random() < RAW_SHARE:
            return super().step(source, data, corpus)
        chosen = source.randrange(7)
        if chosen == 0:
            return self._text(source, data)
        if chosen == 1:
            return self._attribute(source, data)
        found = elements(data)
        if len(found) < 2:
            return super().step(source, data, corpus)
        one, other = source.choice(found[1:]), source.choice(found)
        piece = data[one.begin : one.end]
        if chosen == 2:
            return data[: one.begin] + data[one.end :]
        if chosen == 3:
            at = other.inner_end
            return data[:at] + piece * source.choice((1, 1, 1, 3)) + data[at:]
        if chosen == 4:
            foreign = source.choice(corpus) if corpus else data
            theirs = elements(foreign)
            taken = source.choice(theirs) if theirs else one
            piece = (foreign if theirs else data)[taken.begin : taken.end]
            return data[: other.inner_begin] + piece + data[other.inner_begin :]
        if chosen == 5 and self.names:
            return self._renamed(data, one, source.choice(self.names))
        text = source.choice(self.texts)
        return data[: one.inner_begin] + text + data[one.inner_end :]

    def _text(self, source: random.Random, data: bytes) -> bytes:
        found = list(TEXT.finditer(data))
        if not found:
            return data
        begin, end = source.choice(found).span(1)
        return data[:begin] + self._value(source, data[begin:end]) + data[end:]

    def _attribute(self, source: random.Random, data: bytes) -> bytes:
        found = list(ATTRIBUTE.finditer(data))
        if not found:
            return data
        chosen = source.choice(found)
        if source.random() < 0.2 and self.names:
            begin, end = chosen.span(1)
            return data[:begin] + source.choice(self.names) + data[end:]
        begin, end = chosen.start(2) + 1, chosen.end(2) - 1
        value = self._value(source, data[begin:end]).replace(b'"', b"").replace(b"'", b"").replace(b"<", b"")
        return data[:begin] + value + data[end:]

    def _value(self, source: random.Random, value: bytes) -> bytes:
        if source.random() < 0.5:
            return source.choice(self.texts)
        return Mutator.step(self, source, value, self.texts).replace(b"<", b"")

    def _renamed(self, data: bytes, one: Element, name: bytes) -> bytes:
        opening = TAG.match(data, one.begin)
        assert opening is not None
        head = data[one.begin : opening.start(2)] + name + data[opening.end(2) : one.inner_end]
        if one.inner_end == one.end:
            return data[: one.begin] + head + data[one.end :]
        return data[: one.begin] + head + b"</" + name + b">" + data[one.end :]


def elements(data: bytes) -> list[Element]:
    """Those whose ends were found, in the order of their beginnings: the root comes first."""
    found: list[Element] = []
    opened: list[tuple[bytes, int, int]] = []
    for tag in TAG.finditer(data):
        name = tag[2]
        if tag[4]:
            found.append(Element(tag.start(), tag.end(), tag.end(), tag.end()))
        elif not tag[1]:
            opened.append((name, tag.start(), tag.end()))
        elif opened and opened[-1][0] == name:
            _, begin, inner = opened.pop()
            found.append(Element(begin, inner, tag.start(), tag.end()))
    return sorted(found)
