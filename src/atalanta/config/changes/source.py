"""The text of an XML file with the places of its elements, to change single ones: everything else stays as it is, byte
for byte.

Expat tells where a tag begins. The text was read by lxml before, without document types and entities.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat
from xml.sax.saxutils import escape

from atalanta.config.changes.request import ChangeRefused
from atalanta.files.xml import XmlError, xml_root

DEPTH_MAX: Final = 200
COMMENT_OR_DATA: Final = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>", re.DOTALL)
ATTRIBUTE: Final = re.compile(r"(\s+)([^\s=/>]+)(\s*=\s*)(\"[^\"]*\"|'[^']*')")
# What may stand behind an element in its line and belongs to it.
LINE_REST: Final = re.compile(r"[ \t]*(<!--(?:(?!-->)[^\n])*-->[ \t]*)?(?=\r?\n)")
DECLARED: Final = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass
class Tag:
    """An element of the text: it has `text[start:end]`, and its contents `text[inner:closing]`."""

    qualified: str  # with its prefix
    line: int
    start: int
    attributes: dict[str, str] = field(default_factory=dict)
    inner: int = 0
    closing: int = 0
    end: int = 0
    empty: bool = False  # <x/>
    value: str = ""  # the text outside its children
    children: list[Tag] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Returns the name without its prefix."""
        return self.qualified.rpartition(":")[2]

    @property
    def prefix(self) -> str:
        """Returns the prefix with its colon, "" without one."""
        head, colon, _ = self.qualified.rpartition(":")
        return head + colon

    def all(self, *names: str) -> Iterator[Tag]:
        """Iterates over the children of these names."""
        return (child for child in self.children if child.name in names)


@dataclass(frozen=True)
class Encoded:
    """The text of a file, and how its bytes were made of it."""

    text: str
    mark: bytes
    encoding: str

    @classmethod
    def of(cls, data: bytes) -> Encoded:
        """Returns the text of these bytes. ChangeRefused if the same bytes could not be made of it again."""
        mark, encoding = next(((mark, name) for mark, name in MARKS if data.startswith(mark)), (b"", ""))
        body = data[len(mark) :]
        if not encoding:
            declared = DECLARED.match(body[:200])
            encoding = declared[1].decode("ascii") if declared else "utf-8"
        try:
            text = body.decode(encoding)
            if text.encode(encoding) == body:
                return cls(text, mark, encoding)
        except (LookupError, UnicodeError) as error:
            raise ChangeRefused(f"the file is not {encoding}: {error}") from error
        raise ChangeRefused(f"the file cannot be written again in its encoding, {encoding}: change it by hand")

    def data(self, text: str) -> bytes:
        """Returns the bytes of a changed text; characters that the encoding lacks are written as references."""
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace")


class XmlSource:
    """The text of a file. Its methods return changed texts; it never changes itself."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.root = _Parser(text).root

    # --- lines ------------------------------------------------------------------------------------

    def indentation(self, tag: Tag) -> str | None:
        """Returns the blanks before an element that begins its line; None for one that does not."""
        begin = self.text.rfind("\n", 0, tag.start) + 1
        before = self.text[begin : tag.start]
        return before if not before.strip(" \t") and (begin > 0 or not before) else None

    def _behind(self, index: int) -> int:
        """Returns the end of the line from `index` on, if nothing but a comment stands there; else `index`."""
        found = LINE_REST.match(self.text, index)
        return index if found is None else found.end()

    def _line_of(self, parent: Tag, tag: Tag) -> str | None:
        """Returns the blanks before the first child in the line of `tag`, which ends the line; else None."""
        begin = self.text.rfind("\n", 0, tag.start) + 1
        first = next(each for each in parent.children if each.start >= begin)
        return None if self._behind(tag.end) == tag.end and self.text[tag.end : tag.end + 1] not in "\r\n" else (
            self.indentation(first)
        )

    def _step(self, parent: Tag) -> str:
        """Returns by how much children stand further right than their parent."""
        around = self._around(parent)
        alike = around[-1].children if around else []
        for tag in [parent, *alike, *reversed(around)]:
            for child in tag.children:
                outer, inner = self.indentation(tag), self.indentation(child)
                if outer is not None and inner is not None and inner.startswith(outer) and inner != outer:
                    return inner[len(outer) :]
        return "  "

    def _around(self, tag: Tag) -> list[Tag]:
        """Returns the elements around a tag, the root first."""
        found: list[Tag] = []
        at = self.root
        while at is not tag:
            found.append(at)
            at = next(child for child in at.children if child.start <= tag.start < child.end)
        return found

    # --- changes ----------------------------------------------------------------------------------

    def inserted(self, parent: Tag, after: Tag | None, element: str) -> str:
        """Returns the text with `element` (without line ends) as the child behind `after`, or as the first child."""
        text = self.text
        if after is not None:
            indent = self.indentation(after) or self._line_of(parent, after)
            if indent is None:
                return text[: after.end] + element + text[after.end :]
            at = self._behind(after.end)
            return text[:at] + self.line_end + indent + element + text[at:]
        outer = self.indentation(parent)
        first = parent.children[0] if parent.children else None
        indent = None if first is None else self.indentation(first)
        if first is not None and indent is None:
            return text[: parent.inner] + element + text[parent.inner :]
        if indent is None:
            indent = (outer or "") + self._step(parent)
        if parent.empty:
            opened = text[parent.start : parent.end - 2].rstrip() + ">"
            closed = f"{self.line_end}{outer or ''}</{parent.qualified}>"
            return f"{text[: parent.start]}{opened}{self.line_end}{indent}{element}{closed}{text[parent.end :]}"
        at = self._behind(parent.inner)
        rest = text[at : parent.closing]
        # The end tag of an element without children begins a line of its own.
        closing = "" if first is not None or "\n" in rest else f"{self.line_end}{outer or ''}"
        return text[:at] + self.line_end + indent + element + closing + text[at:]

    def removed(self, tag: Tag) -> str:
        """Returns the text without an element, and without its lines if nothing else is in them."""
        text = self.text
        start, end = tag.start, tag.end
        indent = self.indentation(tag)
        if indent is not None:
            rest = re.compile(r"[ \t]*(\r?\n|\Z)").match(text, end)
            if rest is not None:
                start, end = start - len(indent), rest.end()
        return text[:start] + text[end:]

    def with_value(self, tag: Tag, value: str) -> str:
        """Returns the text with another text of an element without children. Comments in it stay."""
        text = self.text
        shown = escape(value)
        if tag.empty:
            opened = text[tag.start : tag.end - 2].rstrip() + ">"
            return f"{text[: tag.start]}{opened}{shown}</{tag.qualified}>{text[tag.end :]}"
        inside = text[tag.inner : tag.closing]
        comments = "".join(found for found in COMMENT_OR_DATA.findall(inside) if found.startswith("<!--"))
        lead = inside[: len(inside) - len(inside.lstrip())] if inside.strip() else ""
        tail = inside[len(inside.rstrip()) :] if inside.strip() else ""
        return text[: tag.inner] + lead + shown + comments + tail + text[tag.closing :]

    def with_attribute(self, tag: Tag, name: str, value: str | None) -> str:
        """Returns the text with another value of an attribute; None takes it out."""
        text = self.text
        at = tag.start + 1 + len(tag.qualified)
        end = tag.inner if not tag.empty else tag.end
        while True:
            found = ATTRIBUTE.match(text, at, end)
            if found is None:
                break
            if found[2] == name:
                if value is None:
                    return text[: found.start()] + text[found.end() :]
                return text[: found.start(4)] + quoted(value, found[4][0]) + text[found.end(4) :]
            at = found.end()
        return text if value is None else f"{text[:at]} {name}={quoted(value)}{text[at:]}"


def quoted(value: str, quote: str = '"') -> str:
    """Returns the value of an attribute with its quotes."""
    name = "&quot;" if quote == '"' else "&apos;"
    return quote + escape(value, {quote: name}) + quote


def read_source(data: bytes) -> tuple[Encoded, XmlSource]:
    """Returns the text of a file and its elements. ChangeRefused if it has a document type, or is no XML."""
    try:
        xml_root(data)
    except XmlError as error:
        raise ChangeRefused(f"the file cannot be changed: {error.text} (line {error.line})") from error
    encoded = Encoded.of(data)
    return encoded, XmlSource(encoded.text)


class _Parser:
    """Finds the elements of a text. Expat counts bytes of UTF-8, the text characters."""

    def __init__(self, text: str) -> None:
        self.data = text.encode("utf-8")
        self.plain = len(self.data) == len(text)
        self.text = text
        self.passed = (0, 0)  # bytes and characters up to where a place was found last
        self.open: list[Tag] = []
        parser = self.parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        self.roots: list[Tag] = []
        try:
            parser.Parse(self.data, True)
        except expat.ExpatError as error:
            raise ChangeRefused(f"the file is not well-formed XML: {error}") from error
        [self.root] = self.roots

    def _place(self, index: int) -> int:
        """Returns the character at a byte. Places ascend."""
        if self.plain:
            return index
        seen, characters = self.passed
        characters += len(self.data[seen:index].decode("utf-8"))
        self.passed = (index, characters)
        return characters

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.open) >= DEPTH_MAX:
            raise ChangeRefused(f"the file has more than {DEPTH_MAX} elements within each other")
        tag = Tag(name, self.parser.CurrentLineNumber, self._place(self.parser.CurrentByteIndex), attributes)
        tag.inner = tag_end(self.text, tag.start)
        tag.empty = self.text[tag.inner - 2] == "/"
        if self.open:
            self.open[-1].children.append(tag)
        else:
            self.roots.append(tag)
        self.open.append(tag)

    def _end(self, name: str) -> None:
        tag = self.open.pop()
        if tag.empty:
            tag.closing = tag.end = tag.inner
        else:
            tag.closing = self._place(self.parser.CurrentByteIndex)
            tag.end = self.text.index(">", tag.closing) + 1

    def _characters(self, text: str) -> None:
        if self.open:
            self.open[-1].value += text

    def _doctype(self, *described: object) -> None:
        raise ChangeRefused("the file has a document type (DOCTYPE): change it by hand")


def tag_end(text: str, start: int) -> int:
    """Returns where the start tag at `start` ends, behind its ">"."""
    at = start
    while True:
        mark = min(found for found in (text.find(each, at) for each in "\"'>") if found >= 0)
        if text[mark] == ">":
            return mark + 1
        at = text.index(text[mark], mark + 1) + 1
