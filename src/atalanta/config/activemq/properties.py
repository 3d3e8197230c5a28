"""The `${…}` of an activemq.xml: the environment, the files that its placeholder beans name, and the folders that
Classic's start script sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os.path import realpath
from pathlib import Path
from typing import Final

from atalanta.config.problems import Report
from atalanta.config.xml.properties import (
    ExpressionValues,
    in_capitals,
    parse_properties,
    substitute,
)
from atalanta.config.xml.tree import XmlElement, below

CONF: Final = "conf"
FILE: Final = "file"
CLASSPATH: Final = "classpath"
FILE_BYTES_MAX: Final = 1 << 20


def base_folder(path: Path) -> Path:
    """Returns Classic's base: the parent of `conf/` for a file in a folder of that name, else the file's folder."""
    folder = Path(realpath(path)).parent
    return folder.parent if folder.name == CONF else folder


class Properties(Mapping[str, str]):
    """Values of expressions: the environment first (ACTIVEMQ_DATA for `activemq.data`), then the property files, then
    the folders around the file. `folders_used` are those that were taken from the file's place."""

    def __init__(self, path: Path, given: Mapping[str, str]) -> None:
        base = base_folder(path)
        self.environment = given
        self.given = ExpressionValues(given, {})
        self.of_files: dict[str, str] = {}
        self.folders = {
            "activemq.home": str(base),
            "activemq.base": str(base),
            "activemq.conf": str(Path(realpath(path)).parent),
            "activemq.data": str(base / "data"),
        }
        self.folders_used: list[str] = []

    def read_file(self, location: str) -> None:
        """Reads a property file, whose values count before those of files read earlier.

        `location` is that of Spring: a path, perhaps behind `file:`, or one in the folder of the activemq.xml behind
        `classpath:`. OSError; ValueError for a text that is no property file, or a location that is no file.
        """
        with self._path(location).open("rb") as file:
            text = file.read(FILE_BYTES_MAX + 1)
        if len(text) > FILE_BYTES_MAX:
            raise ValueError(f"it has more than {FILE_BYTES_MAX} bytes")
        for entry in parse_properties(text.decode("iso-8859-1")):
            self.of_files[entry.key] = entry.value
        self.given = ExpressionValues(self.environment, self.of_files)

    def _path(self, location: str) -> Path:
        try:
            text = substitute(location.strip(), self)
        except KeyError as missing:
            raise ValueError(f"'${{{missing.args[0]}}}' has no value") from None
        kind, colon, rest = text.partition(":")
        if not colon:
            kind, rest = FILE, text
        if kind not in (FILE, CLASSPATH):
            raise ValueError(f"only {FILE}: and {CLASSPATH}: are read")
        if rest.startswith("//"):
            rest = rest.removeprefix("//")
        folder = "activemq.conf" if kind == CLASSPATH else "activemq.base"
        return Path(self[folder]) / (rest.lstrip("/") if kind == CLASSPATH else rest)

    def __getitem__(self, name: str) -> str:
        found = self.given.get(name)
        if found is not None:
            return found
        self.folders_used.append(name)
        return self.folders[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from self.folders

    def __len__(self) -> int:
        return len(self.given) + len(self.folders)


def replace_expressions(root: XmlElement, properties: Properties, report: Report) -> None:
    """Replaces the expressions of `root` and all below it. A name without a value is a problem."""
    for node in below(root):
        for name, text in [*node.attributes.items(), ("", node.text)]:
            if "#{" in text:
                report.problem(node.file, node.line, f"'{text}' in <{node.name}>: #{{…}} is not read", "write ${NAME}")
            if "${" not in text:
                continue
            properties.folders_used.clear()
            value = _replaced(node, text, properties, report)
            if name:
                node.attributes[name] = value
            else:
                node.text = value
            for each in properties.folders_used:
                if each in properties.folders:
                    why = f"{properties.folders[each]}, from the place of this file: {in_capitals(each)} is not set"
                    report.without_effect(node.file, node.line, f"${{{each}}}", why)


def _replaced(node: XmlElement, text: str, properties: Properties, report: Report) -> str:
    try:
        return substitute(text, properties)
    except KeyError as missing:
        name = missing.args[0]
        report.problem(
            node.file,
            node.line,
            f"'${{{name}}}' has no value in <{node.name}>",
            f"set the environment variable {in_capitals(name)}, or write ${{{name}:default}}",
        )
    except ValueError as error:
        report.problem(node.file, node.line, f"in <{node.name}>: {error}")
    return ""
