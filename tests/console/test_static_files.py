"""The files beside the code: all of them are in the wheel, and nothing in them comes from elsewhere."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch

from atalanta.console.static_files import static_files
from tests.source_tree import ROOT, SOURCE

CONSOLE = SOURCE / "console"


def test_every_file_is_part_of_the_package() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = document["tool"]["setuptools"]["package-data"]["atalanta.console"]
    found = [
        path.relative_to(CONSOLE).as_posix()
        for path in CONSOLE.rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    assert len(found) > 15
    assert not [name for name in found if not any(fnmatch(name, pattern) for pattern in patterns)]


def test_they_name_no_other_host_and_nothing_inline() -> None:
    for path in [*(CONSOLE / "static").iterdir(), *(CONSOLE / "templates").iterdir()]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|//cdn|@import|url\(|\beval\b|innerHTML", text), path.name
        if path.suffix == ".html":
            inline = r"\son\w+=|\sstyle=|<style|<script(?! type=\"module\" src)|\|\s*safe\b"
            assert not re.search(inline, text), path.name


def test_static_files_are_served_by_their_names() -> None:
    assert {"console.css", "page.js", "icon.svg"} <= set(static_files())
    assert static_files()["page.js"].kind == "text/javascript"
