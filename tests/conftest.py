"""What the whole suite shares: it says which build of atalanta is under test, and insists on it."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

import atalanta
from atalanta.runtime.process.build import compiled_modules

# The same examples every time, and no deadline: the machine may be busy.
settings.register_profile("atalanta", derandomize=True, deadline=None, database=None)
settings.load_profile("atalanta")


def pytest_report_header() -> str:
    """One line above the run: where atalanta comes from and how much of it is compiled."""
    return f"atalanta: {atalanta.__file__} ({len(compiled_modules())} compiled modules)"


def pytest_sessionstart() -> None:
    """`make test` runs the suite against both builds; a mix-up would test one of them twice."""
    wanted = os.environ.get("ATALANTA_BUILD")
    if wanted is None:
        return
    found = "compiled" if compiled_modules() else "interpreted"
    if wanted != found:
        pytest.exit(f"ATALANTA_BUILD={wanted}, but {atalanta.__file__} is {found}", returncode=4)
