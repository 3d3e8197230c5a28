"""Decoders of texts: selectors, properties files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.problems import ConfigError
from atalanta.config.users.users import ROLES_FILE, USERS_FILE, read_security
from atalanta.config.xml.properties import (
    PropertiesError,
    parse_properties,
    property_line,
    substitute,
)
from atalanta.message.codec import text_body
from atalanta.message.message import Message
from atalanta.message.selector.selector import FilterError, parse
from tests.fuzz.target import Target

# Where files are made quickly, if there is such a place.
MEMORY = Path("/dev/shm")
CONFIG_DATA = Path(__file__).resolve().parent.parent / "config" / "data"

SELECTORS = (
    b"colour = 'red' AND price > 5", b"x BETWEEN 1 AND 3 OR NOT (a IS NULL)",
    b"name LIKE '%a_b%' ESCAPE '!'", b"JMSPriority IN (1, 2, 3)", b"a + b * -c / 0 % 2 <= 1e3",
    b"hyphenated_props:a-b = 1", b"convert_string_expressions:a = '1'", b"AMQUserID = 'ID:1'",
    b"XPATH '//b[c=\"5\" and @d > 1]/e = 2' OR NOT XPATH 'contains(/a/b, \"x\") or count(.//e[2]) = last()'",
    b"c NOT IN ('x') AND c NOT LIKE 'y%' AND c IS NOT NULL", b"0x1F = 037 /* c */ -- d\n",
)  # fmt: skip
WORDS = (
    b" AND ", b" OR ", b" NOT ", b" LIKE '", b"%", b"_", b" ESCAPE '", b" IN (", b" BETWEEN ", b" IS NULL",
    b"(", b")", b"'", b"''", b"-", b"1e999", b"0x", b"NULL", b"TRUE", b"*", b"/0", b"/*", b"--", b"<>",
    b"JMSTimestamp", b"JMSMessageID", b"AMQPriority", b"hyphenated_props:", b"convert_string_expressions:",
    b"9223372036854775807", b"1L", b"1.5f", b"\"", b"XPATH '",
    b"//", b"/", b"[", b"]", b"@", b"..", b"::", b"|", b"text()", b"count(", b"contains(", b"position()", b" and ",
)  # fmt: skip


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="fuzz-", dir=MEMORY if MEMORY.is_dir() else None)


def decoded(data: bytes) -> str:
    """As config/users/users.py reads a file."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def filtered_messages() -> list[Message]:
    """Every kind of property, and a long text for LIKE."""
    plain = Message.create("orders", b"", 3, True, 1_700_000_000_000, 4)
    rich = Message.create("orders", b"", 3, False, 0, 9)
    values: dict[str, bool | int | float | str | bytes | None] = {
        "colour": "red", "price": 6, "x": 2.5, "a": None, "b": 1 << 62, "c": b"y", "name": "ab" * 2000,
        "t": True, "n": float("nan"), "i": float("inf"), "s": "9" * 400, "e": "1e400",
    }  # fmt: skip
    for key, value in values.items():
        rich.put_property(key, value)
    document = "<a d='2'>" + "<b d='3'><c>5</c><e>2</e>x<e/></b>" * 500 + "</a>"
    return [plain, rich, Message.create("orders", text_body(document), 3)]


class SelectorTarget(Target):
    """Parsed, and asked about messages."""

    name = "selectors"
    refusals = (FilterError,)
    words = WORDS
    bytes_per_byte = 1024

    def __init__(self) -> None:
        self.messages = filtered_messages()

    def seeds(self) -> list[bytes]:
        return [*SELECTORS, b"(" * 40 + b"a = 1" + b")" * 40, b"a=1 AND " * 100 + b"b=2"]

    def run(self, data: bytes) -> None:
        condition = parse(data.decode("utf-8", "surrogateescape"))
        for message in self.messages:
            condition.matches(message)


class PropertiesTarget(Target):
    """A properties file: its entries, their way back into a file, placeholders in them."""

    name = "properties"
    refusals = (PropertiesError,)
    base_bytes = 12 << 20  # placeholders may stand for 1 Mi characters of up to four bytes, old and new
    words = (b"\\u0041", b"\\", b"\\\n", b"=", b":", b"#", b"!", b"${", b"}", b"\\ud83d", b"\r\n", b"\f")

    def seeds(self) -> list[bytes]:
        return [
            b"admin = admin\nguest=ENC(1024:00ff:aabb)\n# comment\n! other\nkey\\ with\\:blank value\\\n  more",
            b"a=${b}\nb=${c:d}${e}\ne=\\u00e9\\ud83d\\ude00",
        ]

    def run(self, data: bytes) -> None:
        entries = parse_properties(decoded(data))
        values = {entry.key: entry.value for entry in entries}
        for entry in entries[:50]:
            again = parse_properties(property_line(entry.key, entry.value))
            assert [(one.key, one.value) for one in again] == [(entry.key, entry.value)]
        for entry in entries[:2]:
            # Short values stand for much now and then only: a million characters take their time.
            short = {key: value[:80] for key, value in values.items()} if len(data) % 8 else values
            try:
                substitute(entry.value, short)
            except (KeyError, ValueError) as error:
                repr(error)


class UsersTarget(Target):
    """u16 size of the users' file · users' file · roles' file, as a node reads them at start."""

    name = "users"
    refusals = (ConfigError,)
    words = (b"=", b",", b"\n", b"ENC(", b":", b")", b"admin", b"\\", b"999999999")

    def __init__(self) -> None:
        self.folder = scratch_folder()
        path = Path(self.folder.name)
        (path / "broker.xml").write_text("<configuration><core><name>a</name></core></configuration>")
        self.configuration = read_broker_xml(path / "broker.xml")
        self.path = self.configuration.users_folder

    def seeds(self) -> list[bytes]:
        users = b"admin = admin\nguest = ENC(1024:00ff:aabb)\n"
        return [len(users).to_bytes(2, "big") + users + b"amq = admin,guest\nview = guest\n"]

    def run(self, data: bytes) -> None:
        size = int.from_bytes(data[:2], "big")
        (self.path / USERS_FILE).write_bytes(data[2 : 2 + size])
        (self.path / ROLES_FILE).write_bytes(data[2 + size :])
        del self.configuration.files[:]
        del self.configuration.warnings[:]
        security = read_security(self.configuration)
        for name in list(security.users)[:3]:
            repr(security.users[name].password.slow)
