"""docs/reference/events.md lists what the source logs: names, levels and fields, each with a meaning."""

from __future__ import annotations

import re

from tools.events import PAGE, events, meanings, page

UPDATE = "run PYTHONPATH=src python tools/events.py, and write into docs/reference/events.md what it means"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z_]+)`", text, re.MULTILINE))
    known = set(events())
    assert listed == known, f"new {known - listed}, gone {listed - known}: {UPDATE}"
    assert page(meanings(text)) == text, UPDATE


def test_every_event_has_a_meaning() -> None:
    said = meanings(PAGE.read_text(encoding="utf-8"))
    assert [name for name in events() if not said.get(name)] == [], UPDATE


def test_fields_do_not_collide_with_those_of_every_line() -> None:
    taken = {"time", "level", "logger", "event", "text", "traceback", "hidden_before"}
    assert {name: fields for name, fields in events().items() if taken & set(fields)} == {}
