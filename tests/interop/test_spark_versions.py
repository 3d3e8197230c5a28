"""The source and sink on other versions of Spark, classic and Connect, each installed below .cache."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.interop.harness.spark import pyspark_folders
from tests.source_tree import ROOT
from tests.spark.nodes import BrokerCluster
from tests.spark.pipeline.process import PipelineProcess
from tests.spark.version_job import MESSAGES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1_200)]
STEPS = [
    "batch read",
    "batch write",
    "stream in limited batches",
    "available now, limited",
    "available now",
    "stream write",
    "select from a view",
    "select from a table",
    "stream of nodes without the log view",
    "stream of several queues",
]


@pytest.mark.parametrize("mode", ["classic", "connect"])
@pytest.mark.parametrize("version", ["4.0.5", "4.1.4", "4.2.0"])
def test_every_step_ends(version: str, mode: str, tmp_path: Path) -> None:
    path = os.pathsep.join([*pyspark_folders(version), str(ROOT / "src"), str(ROOT)])
    with BrokerCluster(tmp_path / "brokers", 2) as brokers:
        for node in brokers.nodes:
            node.publish([f"{node.server}-{number}" for number in range(MESSAGES // 2)])
        command = (sys.executable, "-m", "tests.spark.version_job", mode, brokers.servers)
        variables = {"PYTHONPATH": path}
        said = PipelineProcess(tmp_path, variables, *command, str(tmp_path)).ends(1_000)
    ended = [json.loads(line) for line in said.splitlines() if line.startswith('{"version": ')]
    assert [step["step"] for step in ended] == STEPS
    assert {step["version"] for step in ended} == {version}
