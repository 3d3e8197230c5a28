"""The short form of `make demo-network`: real clients, restarts, a killed data centre."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


def test_nothing_is_lost_or_doubled_and_everybody_is_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    environment = {**os.environ, "MESSAGES": "400", "OUT": str(out)}
    command = [sys.executable, "-m", "examples.network"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["fine"] and report["astray"] == []
    assert report["totals"]["received"] >= 400
    *_, killed, back = report["phases"]
    assert killed["clients"] == {"north-1": {}, "north-2": {}, "south-1": {"north": 8, "south": 4}}
    assert back["clients"]["south-1"] == {"south": 4}
    assert (out / "network.png").stat().st_size > 10_000 and (out / "network.svg").stat().st_size > 10_000
