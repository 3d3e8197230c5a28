"""A server for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from tests.wire.stomp.stomp_rig import StompServer, classic_server


@pytest.fixture
def server() -> Iterator[StompServer]:
    """A server whose invariants hold when the test ends."""
    made = StompServer()
    yield made
    validate(made.broker)


@pytest.fixture
def classic() -> Iterator[StompServer]:
    """A server as an activemq.xml makes it."""
    made = classic_server()
    yield made
    validate(made.broker)


@pytest.fixture(params=["artemis", "classic"])
def either(request: pytest.FixtureRequest) -> Iterator[StompServer]:
    """A server of each kind."""
    made = StompServer() if request.param == "artemis" else classic_server()
    yield made
    validate(made.broker)
