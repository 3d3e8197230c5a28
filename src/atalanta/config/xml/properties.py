"""Java `.properties` files, and `${name:default}` in texts with the values that stand for names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

ROUNDS_MAX: Final = (
    100  # maximum number of replacements in one text, so that values that refer to each other end
)
TEXT_MAX: Final = 1024 * 1024
ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
BLANKS: Final = " \t\f"
ENVIRONMENT: Final = "env."


@dataclass(frozen=True)
class PropertyEntry:
    """An entry. `line` is its first line, counted from 1; `lines` is the number of its lines."""

    key: str
    value: str
    line: int
    lines: int = 1


class PropertiesError(ValueError):
    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.text = text


def parse_properties(text: str) -> list[PropertyEntry]:
    """Parses entries in the order of the file.

    Supports `key=value`, `key:value`, `key value`, `#` and `!` comments, `\\` at a line's end, and backslash
    escapes. PropertiesError for a malformed `\\uXXXX`.
    """
    entries: list[PropertyEntry] = []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at = 0
    while at < len(lines):
        number = at + 1
        line = lines[at].lstrip(BLANKS)
        at += 1
        if not line or line[0] in "#!":
            continue
        while continues(line):
            line = line[:-1]
            if at >= len(lines):
                break
            line += lines[at].lstrip(BLANKS)
            at += 1
        entries.append(_entry(line, number, at + 1 - number))
    return entries


def property_line(key: str, value: str) -> str:
    """Returns the line that `parse_properties` and Java read as this entry, in ASCII."""
    escaped = _escape(value)
    if escaped[:1] == " ":
        escaped = "\\" + escaped
    name = _escape(key)
    for mark in " =:#!":
        name = name.replace(mark, "\\" + mark)
    return f"{name} = {escaped}"


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Replaces every `${name}` and `${name:default}` in `text`, as Artemis' XMLUtil does.

    Replacement goes from left to right, also within inserted values. KeyError (name) for a name without value
    and default; ValueError if replacement does not end.
    """
    for _ in range(ROUNDS_MAX):
        start = text.find("${")
        end = text.find("}", start)
        if start < 0 or end < 0:
            return text
        whole = text[start : end + 1]
        name, colon, default = whole[2:-1].partition(":")
        value = values.get(name.strip())
        if value is None:
            if not colon:
                raise KeyError(name.strip())
            value = default.strip()
        # Checked before the text is built: many small placeholders may have a large value.
        if len(text) + text.count(whole) * (len(value) - len(whole)) > TEXT_MAX:
            break
        text = text.replace(whole, value)
    raise ValueError("placeholders replace each other without end, or stand for more than 1 MiB")


class ExpressionValues(Mapping[str, str]):
    """Resolves expressions as WildFly does: `name`, `first,second` (the first with a value), `env.NAME`.

    A name is looked up in `given` (system properties, environment), then in the file's own
    `<system-properties>`. The last choice is NAME_IN_CAPITALS in the environment, since a shell can set no
    other: SHOP_PASSWORD for `shop.password`.
    """

    def __init__(self, given: Mapping[str, str], properties: Mapping[str, str]) -> None:
        self.given = given
        self.properties: dict[str, str] = {}
        for name, text in properties.items():
            try:
                self.properties[name] = substitute(text, self)
            except (KeyError, ValueError):
                continue  # the element that uses it reports the missing value

    def __getitem__(self, name: str) -> str:
        for each in name.split(","):
            found = self._one(each.strip())
            if found is not None:
                return found
        raise KeyError(name)

    def _one(self, name: str) -> str | None:
        if name.startswith(ENVIRONMENT):
            return self.given.get(name.removeprefix(ENVIRONMENT))
        for values in (self.given, self.properties):
            if name in values:
                return values[name]
        return self.given.get(in_capitals(name))

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from (name for name in self.properties if name not in self.given)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def in_capitals(name: str) -> str:
    """Returns SHOP_PASSWORD for `shop.password`."""
    return "".join(each if each.isalnum() else "_" for each in name).upper()


def continues(line: str) -> bool:
    """Returns whether the next line belongs to this one, if it is no comment."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _entry(line: str, number: int, lines: int) -> PropertyEntry:
    end = 0
    while end < len(line):
        if line[end] == "\\":
            end += 2
            continue
        if line[end] in "=:" or line[end] in BLANKS:
            break
        end += 1
    rest = line[end:].lstrip(BLANKS)
    if rest and rest[0] in "=:":
        rest = rest[1:].lstrip(BLANKS)
    return PropertyEntry(_unescape(line[:end], number), _unescape(rest, number), number, lines)


def _escape(text: str) -> str:
    """Escapes backslashes, line ends and characters outside ASCII."""
    parts: list[str] = []
    for character in text:
        if character == "\\":
            parts.append("\\\\")
        elif " " <= character <= "~":
            parts.append(character)
        else:
            data = character.encode("utf-16-be", "surrogatepass")
            parts += [f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2)]
    return "".join(parts)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        character = text[at]
        if character != "\\" or at + 1 >= len(text):
            parts.append(character)
            at += 1
            continue
        escaped = text[at + 1]
        at += 2
        if escaped == "u":
            digits = text[at : at + 4]
            if len(digits) < 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                raise PropertiesError(line, f"'\\u{digits}' is not a character")
            parts.append(chr(int(digits, 16)))
            at += 4
        else:
            parts.append(ESCAPES.get(escaped, escaped))
    # Characters above 65,535 are written as two escapes.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
