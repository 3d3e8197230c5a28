"""A server for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from tests.wire.stomp.stomp_rig import StompServer


@pytest.fixture
def server() -> Iterator[StompServer]:
    """A server whose invariants hold when the test ends."""
    made = StompServer()
    yield made
    validate(made.broker)
