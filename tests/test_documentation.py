"""The pages under docs: generated ones are current, links lead to files and headings that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_tree import FLOORS, GENERATED, ROOT, SOURCE, everything
from tools.reference import FOLDER, PAGES

LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"\bdocs/[\w./-]*\w")
FILE_NAME = re.compile(r"(?<![\w./<:-])((?:[a-z_]+/)+[a-z_]+\.(?:py|toml|txt))\b")
NAMED = re.compile(r"`((?:\w+/)+\w+\.py)(?:`,\s`|: )(\w+)`")
# Pages whose file names are compared with the tree. Examples in guides name files of users.
NAMING = ("ARCHITECTURE.md", "CONTRIBUTING.md", "docs/internals", "docs/reference")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def pages() -> Iterator[Path]:
    """Yields every Markdown file of the project."""
    for path in sorted(ROOT.rglob("*.md")):
        if not GENERATED & set(path.relative_to(ROOT).parts):
            yield path


def anchors(path: Path) -> set[str]:
    """Returns the anchors of the headings of a page, as GitHub makes them."""
    text = CODE.sub(
        lambda match: match.group().strip("`") if "\n" not in match.group() else "",
        path.read_text("utf-8"),
    )
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        kept = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(kept.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_current(name: str) -> None:
    """`PYTHONPATH=src python -m tools.reference` brings them up to date."""
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name]()


def test_links_lead_somewhere() -> None:
    wrong = []
    for page in pages():
        for target in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            path = page.parent / name if name else page
            if not path.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
            elif anchor and anchor not in anchors(path):
                wrong.append(f"{page.relative_to(ROOT)}: no heading for {target}")
    assert not wrong, "\n".join(wrong)


def test_pages_that_the_source_mentions_exist() -> None:
    wrong = []
    for source in everything():
        for mention in MENTION.findall(source.text):
            path = ROOT / mention
            # Decisions are mentioned by their number.
            if not path.exists() and not list(path.parent.glob(f"{path.name}-*")):
                wrong.append(f"{source.name}: {mention}")
    assert not wrong, "\n".join(wrong)


def test_files_that_pages_name_exist() -> None:
    wrong = []
    for page in pages():
        name = page.relative_to(ROOT).as_posix()
        if name.startswith(NAMING):
            for mention in FILE_NAME.findall(page.read_text(encoding="utf-8")):
                if not (SOURCE / mention).exists() and not (ROOT / mention).exists():
                    wrong.append(f"{name}: {mention}")
    assert not wrong, "\n".join(wrong)


def test_functions_that_pages_name_with_their_file_exist() -> None:
    """`kernel/publish/publisher.py`, `publish` … is a function or class there, and so is `app/life.py: Life`."""
    wrong = []
    for page in pages():
        name = page.relative_to(ROOT).as_posix()
        if name.startswith(NAMING):
            for mention, noun in NAMED.findall(page.read_text(encoding="utf-8")):
                path = SOURCE / mention
                text = path.read_text(encoding="utf-8") if path.exists() else ""
                if text and not re.search(rf"^ *((async )?def |class |){noun}\b", text, re.MULTILINE):
                    wrong.append(f"{name}: {mention}, {noun}")
    assert not wrong, "\n".join(wrong)


def test_the_architecture_page_has_the_floors() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = text.partition("---\nnode\n")[2].partition("```")[0]
    shown = "\n".join(", ".join(floor) for floor in reversed(FLOORS))
    assert f"node\n{picture}" == f"{shown}\n", f"the floors are now:\n{shown}"


def test_the_architecture_page_has_the_parts() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("| part | folder in `cluster/` |\n")[2].partition("\n\n")[0]
    shown = [name for line in table.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    created = re.findall(r'by_name\["(\w+)"\] =', (SOURCE / "node/parts.py").read_text(encoding="utf-8"))
    assert set(shown) == set(created)
