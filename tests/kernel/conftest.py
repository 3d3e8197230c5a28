"""A broker on the bench for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from tests.kernel.broker_rig import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    """A bench whose broker's invariants hold when the test ends."""
    made = Bench()
    yield made
    validate(made.broker)
