"""A TOML or YAML file as values, with the line of every key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from atalanta.spark.pipeline.problems import Location, PipelineError, Problem

VARIABLE: Final = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")


class Document:
    """The values of a file. `lines` has the line of a location (keys and indexes from the root).

    `unset` has the locations of texts with a variable that is not set; `problems` says which.
    """

    def __init__(self, file: str, values: dict[str, Any], lines: Mapping[Location, int]) -> None:
        self.file = file
        self.values = values
        self.lines = dict(lines)
        self.unset: set[Location] = set()
        self.problems: list[Problem] = []

    def rename(self, location: Location, key: str) -> None:
        """Gives the lines of a key, and of all in it, to another key of the same table."""
        depth = len(location)
        for known, line in list(self.lines.items()):
            if known[:depth] == location:
                self.lines[*location[:-1], key, *known[depth:]] = line

    def problem(self, location: Location, text: str, remedy: str = "") -> Problem:
        """Returns a problem at the location, or at the nearest enclosing one that the file has."""
        while location and location not in self.lines:
            location = location[:-1]
        return Problem(self.file, self.lines.get(location, 1), text, remedy)


def read_document(path: Path, variables: Mapping[str, str] | None = None) -> Document:
    """Reads a file; `${NAME}` in a text is the variable of the environment. Raises PipelineError."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PipelineError([Problem(file, 0, "no such file", "check the path")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(
            [Problem(file, 0, str(error), "a readable file in UTF-8 is needed")]
        ) from error
    document = from_yaml(file, text) if path.suffix in {".yaml", ".yml"} else from_toml(file, text)
    environment = os.environ if variables is None else variables

    def filled(value: Any, location: Location) -> Any:
        if isinstance(value, dict):
            return {key: filled(one, (*location, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [filled(one, (*location, at)) for at, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        for name in VARIABLE.findall(value):
            if name not in environment:
                said = f"variable {name} is not set"
                remedy = f"set it: export {name}=…"
                document.problems.append(document.problem(location, said, remedy))
                document.unset.add(location)
        return value if location in document.unset else VARIABLE.sub(lambda found: environment[found[1]], value)

    document.values = filled(document.values, ())
    return document


def from_toml(file: str, text: str) -> Document:
    """Parses TOML. Raises PipelineError with line and column of a syntax error."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise PipelineError(
            [Problem(file, line, f"not TOML: {error}", "correct the line")]
        ) from error
    return Document(file, values, toml_lines(text))


def toml_lines(text: str) -> dict[Location, int]:
    """Returns the line of every location.

    tomllib keeps no positions. Each statement of TOML ends with a line: so the shortest text from the beginning that
    tomllib takes and that has the location ends with its statement, which begins after the text before.
    """
    found: dict[Location, int] = {(): 1}
    lines = text.splitlines(keepends=True)
    begin = 1
    for end in range(1, len(lines) + 1):
        try:
            values = tomllib.loads("".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        for location in locations(values, ()):
            found.setdefault(location, begin)
        begin = end + 1
    return found


def locations(value: Any, location: Location) -> list[Location]:
    """Returns the locations of a value and of everything in it."""
    result = [location]
    if isinstance(value, dict):
        for key, one in value.items():
            result += locations(one, (*location, key))
    elif isinstance(value, list):
        for at, one in enumerate(value):
            result += locations(one, (*location, at))
    return result


def from_yaml(file: str, text: str) -> Document:
    """Parses YAML (safe types only). Raises PipelineError with the line of a syntax error or a repeated key."""
    lines: dict[Location, int] = {(): 1}
    problems: list[Problem] = []

    def walk(node: yaml.Node | None, location: Location) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                at = (*location, str(key.value))
                line = key.start_mark.line + 1
                if at in lines:
                    said = f"key '{key.value}' is there twice"
                    problems.append(Problem(file, line, said, f"line {lines[at]} has it, too"))
                lines[at] = line
                walk(value, at)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                lines[*location, index] = value.start_mark.line + 1
                walk(value, (*location, index))

    try:
        walk(yaml.compose(text, yaml.SafeLoader), ())
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        said = " ".join(str(getattr(error, "problem", None) or error).split())
        raise PipelineError(
            [Problem(file, line, f"not YAML: {said}", "correct the line")]
        ) from error
    if not isinstance(values, dict):
        problems.append(Problem(file, 1, "no keys at the top", "begin with 'source:' and 'query:'"))
    if problems:
        raise PipelineError(problems)
    return Document(file, values, lines)
