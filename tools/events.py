"""Writes docs/reference/events.md: every event that the source logs, with its level and fields.

    PYTHONPATH=src python tools/events.py

What an event means is kept from the page as it is; a new event gets an empty meaning, which
tests/test_events.py does not let pass.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "events.md"
SOURCE = ROOT / "src" / "atalanta"
# Logged by the client's or Spark's side: not a node's.
OTHERS = ("client", "spark")
REPORT_FIELDS = ["node", "why"]  # LocalNode.report(event, node, why)
BRIDGE_FIELDS = ["bridge", "to", "why"]  # CoreBridge.tell(event, why)
ROW = re.compile(r"^\| `([a-z_]+)` \| [a-z]+ \| [^|]*\| (.*) \|$", re.MULTILINE)
HEAD = """# Events

A node writes one line for each event to stderr: `name key=value …`, or with `--log-json` one JSON object with
`time`, `level`, `logger`, `event` and the fields. Names and fields are stable, so that you can search for them and
alert on them. `--log-level` is the lowest level that is written; `debug` also traces single messages (`story_…`).
At most 50 lines of one name are written in a second. The next line then has `hidden_before`, and the counter
`events.hidden` counts all hidden lines.

This page is generated from the source (`tools/events.py`). Only the meanings are written by hand.

| event | level | fields | meaning |
|---|---|---|---|
"""


class Finder(ast.NodeVisitor):
    """Calls that log an event: `trace.event(name, fields)`, `log_event(logger, name, …)`, `report(…)`,
    `trace_message(…)`, `tell(…)`."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, None]] = {}
        self.unclear: list[int] = []

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(node.func, ast.Name):
            called = node.func.id
        if called == "event" and len(node.args) == 2:
            self._add(node.args[0], fields_of(node.args[1]))
        elif called == "log_event" and len(node.args) >= 3:
            self._add(node.args[1], fields_of(node.args[2]))
        elif called == "report" and len(node.args) == 3:
            self._add(node.args[0], REPORT_FIELDS)
        elif called == "trace_message" and len(node.args) == 4:
            self._add(node.args[1], ["name", "id", "where"])
        elif called == "tell" and len(node.args) == 2:
            self._add(node.args[0], BRIDGE_FIELDS)
        for keyword in node.keywords:
            if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
                self._extra(keyword.value)

    def _extra(self, extra: ast.Dict) -> None:
        values = {
            key.value: value
            for key, value in zip(extra.keys, extra.values, strict=True)
            if isinstance(key, ast.Constant)
        }
        if "event" in values and "fields" in values:
            self._add(values["event"], fields_of(values["fields"]))

    def _add(self, name: ast.expr, fields: list[str]) -> None:
        for text in names_of(name):
            known = self.found.setdefault(text, {})
            for each in fields:
                known[each] = None


def names_of(node: ast.expr) -> list[str]:
    """The literal names an expression may have; none for a variable (whoever passes it is found)."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return names_of(node.body) + names_of(node.orelse)
    return []


def fields_of(node: ast.expr) -> list[str]:
    """Keys of a literal; `**name` stands for what cannot be read here."""
    if not isinstance(node, ast.Dict):
        return []
    return [str(key.value) for key in node.keys if isinstance(key, ast.Constant)]


@cache
def events() -> dict[str, list[str]]:
    """Name -> fields, of the whole source."""
    finder = Finder()
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] not in OTHERS:
            finder.visit(ast.parse(path.read_text(encoding="utf-8")))
    return {name: list(finder.found[name]) for name in sorted(finder.found)}


def meanings(page: str) -> dict[str, str]:
    """What the page says of each event."""
    return {match.group(1): match.group(2) for match in ROW.finditer(page)}


def page(known: dict[str, str]) -> str:
    """The whole page."""
    from atalanta.runtime.process.logs import level_of

    names = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}
    lines = []
    for name, fields in events().items():
        shown = " ".join(f"`{each}`" for each in fields)
        level = names[level_of(name)]
        lines.append(f"| `{name}` | {level} | {shown} | {known.get(name, '')} |\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(page(meanings(text)), encoding="utf-8")
