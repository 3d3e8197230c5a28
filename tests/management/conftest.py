"""A broker with management for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from tests.management.management_rig import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A desk whose broker's invariants hold when the test ends."""
    made = Desk()
    yield made
    validate(made.broker)
