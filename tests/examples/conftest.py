"""The flights, read once."""

from __future__ import annotations

import pandas as pd
import pytest

from examples.flights import data, oracle


@pytest.fixture(scope="session")
def flights() -> pd.DataFrame:
    """All rows of the packaged file."""
    return data.load()


@pytest.fixture(scope="session")
def small(flights: pd.DataFrame) -> oracle.Oracle:
    """The oracle of a short run."""
    return oracle.expected(flights.head(3_000))
