"""Where the driver of a session listens."""

from __future__ import annotations

import os
import sys

import pytest

from atalanta.spark.environment.session import on_this_machine, prepare_environment


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local[2]", True),
        ("local-cluster[1,2,1024]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077,[::1]:7077", True),
        ("spark://localhost:7077,spark-2:7077", False),
        ("spark://10.0.0.7:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_the_loopback_interface_serves_only_executors_on_this_machine(
    master: str, here: bool
) -> None:
    assert on_this_machine(master) is here


def test_all_of_sparks_pythons_are_the_quick_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark looks for data sources with the driver's Python, and runs everything else with that of the workers."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    prepare_environment("local[1]")
    pythons = os.environ["PYSPARK_PYTHON"], os.environ["PYSPARK_DRIVER_PYTHON"]
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    prepare_environment("local[1]")
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
    assert (*pythons, os.environ["PYSPARK_DRIVER_PYTHON"]) == (pythons[0],) * 3
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    prepare_environment("spark://10.0.0.7:7077")
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
