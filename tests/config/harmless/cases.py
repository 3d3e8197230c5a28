"""What a case of an option without effect is: a test that does with a client what the option is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])
# (name of the table, name of the entry) -> the test. Filled while the test files of this folder are imported.
CASES: dict[tuple[str, str], str] = {}


def case(table: str, *entries: str) -> Callable[[Test], Test]:
    """Records that the test below shows that no client sees a difference with and without these entries of a table."""

    def record(test: Test) -> Test:
        for entry in entries:
            assert CASES.get((table, entry), test.__name__) == test.__name__, f"{table}: two cases of {entry}"
            CASES[table, entry] = test.__name__
        return test

    return record
