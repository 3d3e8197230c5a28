"""The pages under docs: generated ones are current, links lead to files and headings that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_tree import GENERATED, ROOT, everything
from tools.reference import FOLDER, PAGES

LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"\bdocs/[\w./-]*\w")
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
