"""Marks at branches: everything that can be reached or not is told apart, and nothing else changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.fuzz.coverage import MARK, MARKS, Branches, Marking

SOURCE = '''
"""Told."""
from __future__ import annotations

def look(n: int) -> object:
    """Said."""
    if n == 1:
        return "one"
    elif n == 2 and n + 0:
        return [m for m in range(n) if m > 5]
    for m in range(n - 3):
        if m == 7:
            break
    while n > 100:
        n -= 50
    try:
        1 // (n - 4)
    except ZeroDivisionError:
        return "four"
    else:
        n += 1
    return (lambda: "six" if n == 6 else n)()

class Some:
    def method(self, n: int) -> int:
        match n:
            case 1:
                return 1
            case _:
                return 0
'''


@pytest.fixture
def marked() -> tuple[Branches, dict[str, object]]:
    branches = Branches()
    names: dict[str, object] = {MARKS: branches.hits, MARK: branches.hits.__setitem__}
    tree = ast.fix_missing_locations(Marking(branches).visit(ast.parse(SOURCE)))
    exec(compile(tree, "made", "exec"), names)
    return branches, names


def test_each_new_way_is_news_once(marked: tuple[Branches, dict[str, object]]) -> None:
    branches, names = marked
    look = names["look"]
    assert callable(look)
    branches.news()
    told = []
    for n, answer in ((1, "one"), (1, "one"), (2, []), (3, 4), (0, 1), (4, "four"), (5, "six"), (11, 12), (120, 71)):
        assert look(n) == answer
        told.append(branches.news())
    assert told == [True, False, True, True, False, True, True, True, True]


def test_what_is_reached_aside_stays_unseen(marked: tuple[Branches, dict[str, object]]) -> None:
    branches, names = marked
    some = names["Some"]
    assert isinstance(some, type)
    with branches.aside():
        some().method(1)
    assert branches.reached == 0 and not branches.news()
    some().method(1)
    assert branches.news()
    branches.forget()
    some().method(1)
    assert branches.news()


def test_texts_and_names_are_as_before(marked: tuple[Branches, dict[str, object]]) -> None:
    _, names = marked
    assert names["__doc__"] == "Told."
    assert getattr(names["look"], "__doc__", "") == "Said."


def test_every_module_of_ours_can_be_marked() -> None:
    branches = Branches()
    for path in sorted((Path(__file__).resolve().parent.parent.parent / "src" / "atalanta").rglob("*.py"))[::15]:
        tree = ast.fix_missing_locations(Marking(branches).visit(ast.parse(path.read_bytes())))
        compile(tree, str(path), "exec", dont_inherit=True)
    assert len(branches.hits) > 100
