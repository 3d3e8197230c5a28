"""The version is said once, and the installed metadata, module and build report agree on it."""

from __future__ import annotations

import re
import tomllib

import atalanta
from atalanta.runtime.process.build import build_name, compiled_modules
from tests.source_tree import ROOT


def test_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", atalanta.__version__)


def test_project_file_takes_the_version_from_the_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "atalanta.__version__"}


def test_build_name_agrees_with_the_compiled_modules() -> None:
    assert build_name() == ("compiled" if compiled_modules() else "interpreted")
