"""A server for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from tests.wire.openwire.server.openwire_rig import OpenWireServer


@pytest.fixture
def server() -> Iterator[OpenWireServer]:
    """A server whose invariants hold when the test ends."""
    made = OpenWireServer()
    yield made
    validate(made.broker)
