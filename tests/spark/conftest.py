"""One Spark session for all tests: it takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from atalanta.spark import register, session
from tests.spark.fake_node import FakeCluster, FakeDataSource

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Workers import the fake and the package by name.
    os.environ["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    warehouse = tmp_path_factory.mktemp("warehouse")
    made = session(name="tests", settings={"spark.sql.warehouse.dir": str(warehouse)})
    yield made
    made.stop()


@pytest.fixture
def fake(spark: SparkSession) -> SparkSession:
    """The session with the fake in the place of real nodes."""
    spark.dataSource.register(FakeDataSource)
    return spark


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    made = FakeCluster(2)
    yield made
    made.close()


@pytest.fixture
def real(spark: SparkSession) -> SparkSession:
    """The session with the source and the sink of real nodes."""
    register(spark)
    return spark
