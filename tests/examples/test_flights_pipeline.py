"""The pipeline file of the flights demo, which the guide names as the one to copy from."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.spark.pipeline.check import read_pipeline
from examples.flights.airports import HERE
from examples.flights.spark_driver import ARCHIVE, DELAYS, PIPELINE, WINDOWS, Settings


def test_it_has_no_problems_and_the_queries_that_the_demo_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE.parent.parent)
    settings = Settings(str(tmp_path), "local[2]", 20, 3_600)
    declaration = read_pipeline(PIPELINE, settings.variables()).declaration
    assert [query.name for query in declaration.query] == [ARCHIVE, DELAYS, WINDOWS]
