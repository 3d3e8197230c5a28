"""The tables `[bridges.NAME]` of atalanta.toml: bridge options that broker.xml does not have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from atalanta.cluster.native_config import OwnBridge
from atalanta.config.problems import nearest

Problem = Callable[[str, str, str], None]  # key, text, hint


def read_own_bridges(value: object, problem: Problem) -> dict[str, OwnBridge]:
    """Reads the tables, by name of the bridge. The caller checks that such a bridge exists."""
    found: dict[str, OwnBridge] = {}
    if not isinstance(value, dict):
        problem("bridges", "bridges is not a table", "write [bridges.NAME]")
        return found
    known = {entry.metadata["xml"]: entry for entry in fields(OwnBridge)}
    for name, table in value.items():
        if not isinstance(table, dict):
            problem("bridges", f"bridges.{name} is not a table", f"write [bridges.{name}]")
            continue
        own = OwnBridge()
        for key, text in table.items():
            entry = known.get(key)
            if entry is None:
                problem(key, f"unknown key '{key}' in [bridges.{name}]", nearest(key, known))
            elif not isinstance(text, str):
                problem(key, f"{key}: {text!r} is not a string", "")
            elif key == "transformer" and not is_function(text):
                problem(key, f"transformer: '{text}' is not module:function", "")
            else:
                setattr(own, entry.name, text)
        found[name] = own
    return found


def is_function(text: str) -> bool:
    """Returns whether the text has the form `package.module:function`."""
    module, separator, function = text.partition(":")
    parts: list[Any] = [*module.split("."), function]
    return bool(separator) and all(part.isidentifier() for part in parts)
