"""A virtual world for each test."""

from __future__ import annotations

import pytest

from tests.cluster.core_bridges.bridge_rig import BridgeRig


@pytest.fixture
def rig() -> BridgeRig:
    """A world without nodes, which remembers the dials."""
    return BridgeRig()
