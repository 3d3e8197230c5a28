"""`atalanta.toml`, the file of our own beside broker.xml (cluster/native_config.py says what may stand in it)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final

from atalanta.cluster.discovery.dns import dns_names
from atalanta.cluster.native_config import OwnSettings
from atalanta.config.native.bridges import read_own_bridges
from atalanta.config.problems import Report, nearest
from atalanta.config.xml.reader import BadValue, convert
from atalanta.files.regular import read_regular
from atalanta.wire.uri import UriError

NAME: Final = "atalanta.toml"
DNS: Final = "dns-discovery"
SIZE_MAX_BYTES: Final = 1 << 20
KINDS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int, str),  # "10M" where it is a size
    "float": (int, float),
    "str": (str,),
}
AT_LINE: Final = re.compile(r"\(at line (\d+)")


def own_file(broker_xml: Path) -> Path:
    """`<stem>.atalanta.toml` where several broker.xml share a folder and it exists, else `atalanta.toml`."""
    particular = broker_xml.with_name(f"{broker_xml.stem}.{NAME}")
    return particular if particular.exists() else broker_xml.with_name(NAME)


def read_own_file(path: Path, report: Report) -> OwnSettings:
    """The settings in `path`, the defaults if there is no such file. What is wrong goes into `report`."""
    own = OwnSettings()
    try:
        data = read_regular(path, SIZE_MAX_BYTES)
    except FileNotFoundError:
        return own
    except OSError as error:
        report.problem(str(path), 0, f"cannot be read: {error.strerror or error}")
        return own
    if len(data) > SIZE_MAX_BYTES:
        report.problem(str(path), 0, f"has more than {SIZE_MAX_BYTES} bytes")
        return own
    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except UnicodeDecodeError as error:
        report.problem(str(path), data[: error.start].count(b"\n") + 1, "is not UTF-8")
        return own
    except tomllib.TOMLDecodeError as error:
        found = AT_LINE.search(str(error))
        # Without a line it is the last one: the file ended too early.
        line = int(found.group(1)) if found else text.count("\n") + 1
        report.problem(str(path), line, f"is no TOML: {error}")
        return own
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits, lists within lists within …
        report.problem(str(path), 0, f"is no TOML that can be read: {error}")
        return own
    OwnReader(path, text, report).read(table, own)
    return own


class OwnReader:
    """Puts what the table says into `OwnSettings`, each value checked as its option says."""

    def __init__(self, path: Path, text: str, report: Report) -> None:
        self.path = path
        self.lines = text.splitlines()
        self.report = report

    def read(self, table: dict[str, Any], own: OwnSettings) -> None:
        """Every key of the file; those nobody knows are problems."""
        known = {entry.metadata["xml"]: entry for entry in fields(OwnSettings) if entry.metadata}
        for key, value in table.items():
            entry = known.get(key)
            if key == "bridges":
                own.bridges = read_own_bridges(value, self.problem)
            elif key == DNS and isinstance(value, dict):
                own.dns_by_cluster = self._texts(key, value)
            elif entry is None:
                self.problem(key, f"unknown key '{key}'", nearest(key, [*known, "bridges"]))
            else:
                self._assign(own, entry, key, value)
        for text in own.dns_texts():
            try:
                dns_names(text)
            except UriError as error:
                self.problem(DNS, f"{DNS}: {error}")

    def _texts(self, key: str, table: dict[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, text in table.items():
            if isinstance(text, str):
                found[name] = text
            else:
                self.problem(key, f"{key}.{name}: {text!r} is no str")
        return found

    def problem(self, key: str, text: str, hint: str = "") -> None:
        """`text` at the line where `key` stands."""
        self.report.problem(str(self.path), self.line_of(key), text, hint)

    def line_of(self, key: str) -> int:
        """The first line that gives `key` or opens the table of that name; 0 if none does."""
        stands = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*[\]=.]")
        for number, line in enumerate(self.lines, 1):
            if stands.match(line):
                return number
        return 0

    def _assign(self, own: OwnSettings, entry: Field[Any], key: str, value: object) -> None:
        kind = entry.metadata["kind"]
        if isinstance(value, bool) != (kind == "bool") or not isinstance(value, KINDS[kind]):
            self.problem(key, f"{key}: {value!r} is no {kind}")
            return
        try:
            setattr(own, entry.name, convert(str(value), entry.metadata))
        except BadValue as error:
            self.problem(key, f"{key}: {error}")
