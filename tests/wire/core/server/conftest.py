"""A server for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from tests.wire.core.server.server_rig import Server


@pytest.fixture
def server() -> Iterator[Server]:
    """A server whose invariants hold when the test ends."""
    made = Server()
    yield made
    validate(made.broker)
