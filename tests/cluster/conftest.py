"""A virtual world for each test."""

from __future__ import annotations

import pytest

from tests.cluster.cluster_rig import Rig


@pytest.fixture
def rig() -> Rig:
    """A world without nodes."""
    return Rig()
