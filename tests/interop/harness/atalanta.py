"""An Atalanta node in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import atalanta

from .node import BrokerProcess


class AtalantaNode(BrokerProcess):
    """`atalanta run` on the harness's broker.xml, or on conf/activemq.xml if a test has written one."""

    kind = "atalanta"

    def _create(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def _command(self) -> list[str]:
        classic = self.folder / "conf" / "activemq.xml"
        path = classic if classic.exists() else self.folder / "etc" / "broker.xml"
        return [sys.executable, "-m", "atalanta", "run", str(path)]

    def _environment(self) -> dict[str, str]:
        path = str(Path(atalanta.__file__).parents[1])  # the build that is under test
        if os.environ.get("PYTHONPATH"):
            path += os.pathsep + os.environ["PYTHONPATH"]
        return {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}

    def _ready(self) -> bool:
        return any(line.startswith("ready") for line in self.log.read_text().splitlines())
