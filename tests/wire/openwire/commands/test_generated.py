"""The generated files are those that the schema gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.openwire_schema import FOLDER, Schema


def test_the_files_are_those_of_the_schema() -> None:
    made = Schema().files()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
    assert sorted(there) == sorted(made)
    stale = [name for name in made if made[name] != there[name]]
    assert not stale, f"{stale}: run python -m tools.openwire_schema"


def test_a_field_of_another_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(
        '[[module]]\nname = "m"\nabout = "M."\n[[module.structure]]\nname = "X"\nabout = "X."\n'
        'fields = ["a: number"]\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="X: 'a: number' is no field"):
        Schema(path)
