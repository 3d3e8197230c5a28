"""The source and sink on other versions of Spark, classic and Connect, each installed below .cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.nodes import ROOT, BrokerCluster
from tests.spark.version_job import MESSAGES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
STEPS = [
    "batch read",
    "batch write",
    "stream in limited batches",
    "available now, limited",
    "available now",
    "stream write",
    "select from a view",
]
INSTALLED = "4.2.0"


def packages(version: str) -> list[str]:
    """Returns the folder of that PySpark, which comes first on the path."""
    if version == INSTALLED:
        return []
    folder = ROOT / ".cache" / "spark" / version
    if not (folder / "pyspark").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
        command += [str(folder), f"pyspark=={version}", "py4j==0.10.9.9"]
        subprocess.run(command, check=True)
    return [str(folder)]


@pytest.mark.parametrize("mode", ["classic", "connect"])
@pytest.mark.parametrize("version", ["4.0.5", "4.1.4", INSTALLED])
def test_every_step_ends(version: str, mode: str, tmp_path: Path) -> None:
    if mode == "connect":
        pytest.importorskip("grpc")
    path = os.pathsep.join([*packages(version), str(ROOT / "src"), str(ROOT)])
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        for node in brokers.nodes:
            node.publish([f"{node.server}-{number}" for number in range(MESSAGES // 2)])
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.version_job", mode, brokers.servers, str(tmp_path)],
            env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-5000:]
    ended = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [step["step"] for step in ended] == STEPS
    assert {step["version"] for step in ended} == {version}
