"""A virtual world for each test."""

from __future__ import annotations

import pytest

from tests.cluster.networks.network_rig import NetworkRig


@pytest.fixture
def rig() -> NetworkRig:
    """A world without nodes."""
    return NetworkRig()
