"""The difference of two texts, and the places that an undo puts back."""

from __future__ import annotations

import difflib
import random
import time

from atalanta.config.changes.difference import hunks, undone, unified


def test_a_diff_has_the_lines_of_the_whole_text() -> None:
    before = "".join(f"{number}\n" for number in range(1, 31))
    after = before.replace("\n12\n", "\ntwelve\n").replace("\n25\n", "\n")
    wanted = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm=""))[2:]
    assert unified("f", before, after).splitlines()[2:] == wanted


def test_an_undo_gives_the_text_back() -> None:
    chance = random.Random(7)
    for _ in range(100):
        before = [f"{number}\n" for number in range(chance.randrange(1, 40))]
        after = list(before)
        for number in range(chance.randrange(1, 4)):
            at = chance.randrange(len(after) + 1)
            after[at : at + chance.randrange(3)] = [f"new {number} {each}\n" for each in range(chance.randrange(3))]
        one, two = "".join(before), "".join(after)
        assert undone(two, hunks(one, two), "f") == one


def test_many_equal_lines_cost_little() -> None:
    before = "<a>\n</a>\n" * 20_000
    after = before.replace("<a>\n</a>\n", "<a>\n</a>\n", 1) + "<b>\n</b>\n"
    begin = time.process_time()
    found = hunks(before, after)
    assert unified("f", before, after).splitlines()[2] == "@@ -39998,3 +39998,5 @@"
    assert undone(after, found, "f") == before
    assert time.process_time() - begin < 3
