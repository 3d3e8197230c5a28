"""The query of tests/spark/soak_driver.py in processes of its own: each of them can be killed alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.source_tree import ROOT

# Words of the command line of each kind of process.
KINDS: Final = {
    "driver": "tests.spark.soak_driver",
    "jvm": "org.apache.spark.deploy.SparkSubmit",
    "planner": "python_streaming_source_runner",
    "committer": "python_streaming_sink_runner",
    "worker": "quiet_daemon.py",  # in the place of pyspark.daemon (spark/environment)
}
END_TIMEOUT_S: Final = 300.0


class QueryProcess:
    """One run of the query, from its checkpoint in `folder` until nothing is left to read."""

    def __init__(self, settings: Mapping[str, object], folder: Path) -> None:
        self.log = folder / "log"
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", KINDS["driver"], json.dumps(settings)],
                start_new_session=True, cwd=folder, env=environment, stdout=log, stderr=log,
            )  # fmt: skip

    def kill(self, kind: str, timeout_s: float) -> bool:
        """Kills the newest process of that kind as soon as there is one. Returns False if the run ends before."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            found = [pid for pid, command in self._commands() if KINDS[kind] in command]
            if found:
                os.kill(max(found), signal.SIGKILL)
                return True
            time.sleep(0.01)
        return False

    def wait(self) -> int:
        """Returns the exit status once the run has ended; then none of its processes is left. Raises TimeoutExpired."""
        try:
            return self.process.wait(END_TIMEOUT_S)
        finally:
            for pid, _ in self._commands():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended meanwhile
            self.process.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]

    def _commands(self) -> list[tuple[int, str]]:
        """Returns the processes of the run's session, with their command lines."""
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except (OSError, IndexError, ValueError):
                continue  # it has ended meanwhile
            if session == self.process.pid:
                found.append((int(folder.name), command))
        return found
