"""The planner of a query ends when it waits for a node and nobody waits for it any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import ROOT

# In the place of Spark: starts the planner, lets it run into a node that is away, and is killed.
SPARK = """
import subprocess, sys
planner = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
planner.wait()
"""
PLANNER = """
import os, signal
from atalanta.spark.errors import DriverGone, NodeUnavailable
from atalanta.spark.read.members import PolledMembers
from atalanta.spark.options import read_options

tries = 0

def away(server, credentials):
    global tries
    tries += 1
    if tries == 2:
        os.kill(os.getppid(), signal.SIGKILL)
    raise NodeUnavailable(f"{server} is away")

members = PolledMembers(read_options({"servers": "away:1", "queue": "q", "nodeTimeout": "100s"}), away)
try:
    %s
except DriverGone as error:
    print("gone:", error, flush=True)
"""


@pytest.mark.parametrize(
    "waiting",
    ["members.wait_for({}, True, 0.0)", "members.call('node', lambda gateway: None)"],
    ids=["for all nodes", "for one node"],
)
def test_a_planner_whose_spark_was_killed_ends_at_once(waiting: str, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    # The pipe is closed when the planner, too, has ended: long before nodeTimeout.
    spark = subprocess.run(
        [sys.executable, "-c", SPARK, PLANNER % waiting],
        stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert spark.returncode == -9
    assert spark.stdout.startswith("gone: Spark (process ")
