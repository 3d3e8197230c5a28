"""STOMP frames: commands, headers and their escapes (STOMP 1.2, sections "STOMP Frames" and "Value Encoding")."""

from __future__ import annotations

from typing import Final

from atalanta.wire.protocol_error import ProtocolError

# Versions, the highest first.
V12: Final = 12
V11: Final = 11
V10: Final = 10
VERSIONS: Final = {"1.2": V12, "1.1": V11, "1.0": V10}
VERSION_NAMES: Final = {V12: "1.2", V11: "1.1", V10: "1.0"}

COMMANDS: Final = {
    name.encode(): name
    for name in (
        "CONNECT", "STOMP", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT",
    )
}  # fmt: skip

ESCAPED: Final = {"n": "\n", "c": ":", "\\": "\\", "r": "\r"}
NUMBER_DIGITS_MAX: Final = 18  # a long has 19


class Frame:
    """A frame of a client. A repeated header has its first value. `sized`: the frame has a content-length."""

    def __init__(self, command: str, headers: dict[str, str]) -> None:
        self.command = command
        self.headers = headers
        self.body: bytes = b""
        self.sized: bool = "content-length" in headers

    def head_size(self) -> int:
        """Returns the size of the headers in characters."""
        return sum([len(name) + len(value) for name, value in self.headers.items()])

    def get(self, name: str) -> str | None:
        """Returns the value of a header, None without it."""
        return self.headers.get(name)

    def first(self, names: tuple[str, ...]) -> str | None:
        """Returns the value of the first of these headers that the frame has; None without any."""
        for name in names:
            if name in self.headers:
                return self.headers[name]
        return None

    def required(self, name: str) -> str:
        """Returns the value of a header. ProtocolError without it."""
        value = self.headers.get(name)
        if value is None:
            raise ProtocolError(f"{self.command} without the header {name}")
        return value

    def number(self, name: str, default: int) -> int:
        """Returns the value of a header as a whole number. ProtocolError if it is none."""
        value = self.headers.get(name)
        if value is None:
            return default
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or len(digits) > NUMBER_DIGITS_MAX:
            raise ProtocolError(f"{self.command}: the header {name} is {value[:40]!r}, not a whole number")
        return int(value)

    def flag(self, name: str) -> bool:
        """Returns True if the header is `true`, in any case."""
        return self.headers.get(name, "").lower() == "true"


def unescaped(text: str, version: int, classic: bool = False) -> str:
    """Returns the name or value that the client means. ProtocolError for an escape that its version does not have.

    With `classic` such an escape stays as it is, with its backslash.
    """
    at = text.find("\\")
    if at < 0 or version == V10:
        return text
    parts: list[str] = []
    start = 0
    while at >= 0:
        code = text[at + 1 : at + 2]
        plain = ESCAPED.get(code)
        if plain is None or (code == "r" and version < V12):
            if classic:
                at = text.find("\\", at + 1)
                continue
            raise ProtocolError(f"header {text[:40]!r}: STOMP {VERSION_NAMES[version]} has no escape \\{code}")
        parts.append(text[start:at])
        parts.append(plain)
        start = at + 2
        at = text.find("\\", start)
    parts.append(text[start:])
    return "".join(parts)


def escaped(text: str, version: int) -> str:
    """Returns the name or value as it is sent. What a version cannot express becomes a space: no header ends early."""
    if "\x00" in text:
        text = text.replace("\x00", " ")
    if version == V10:
        return text.replace("\r", " ").replace("\n", " ")
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if "\n" in text:
        text = text.replace("\n", "\\n")
    text = escaped_colons(text)
    if "\r" in text:
        text = text.replace("\r", "\\r" if version == V12 else " ")
    return text


def escaped_colons(text: str) -> str:
    """Returns the name or value with the escape of its colons, for those that have nothing else to escape."""
    return text.replace(":", "\\c") if ":" in text else text


def encoded_head(command: str, headers: list[tuple[str, str]], version: int) -> bytes:
    """Returns the frame up to its body. Without escapes (1.0) a header whose name has a colon is left out."""
    lines = [command]
    for name, value in headers:
        lines.append(f"{name}:{value}")
    lines.append("\n")
    text = "\n".join(lines)
    # Searched at once: a search of each name and value costs more than the frame.
    rare = "\\" in text or "\r" in text or "\x00" in text or text.count("\n") != len(headers) + 2
    if not rare and text.count(":") == len(headers):
        return text.encode("utf-8", "replace")
    lines = [command]
    for name, value in headers:
        if version == V10 and ":" in name:
            continue
        if rare:
            lines.append(f"{escaped(name, version)}:{escaped(value, version)}")
        elif version == V10:
            lines.append(f"{name}:{value}")
        else:
            lines.append(f"{escaped_colons(name)}:{escaped_colons(value)}")
    lines.append("\n")
    return "\n".join(lines).encode("utf-8", "replace")


def encoded_frame(command: str, headers: list[tuple[str, str]], body: bytes, version: int) -> bytes:
    """Returns a whole frame, with a line end behind it."""
    return encoded_head(command, headers, version) + body + b"\x00\n"
