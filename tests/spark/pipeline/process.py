"""`atalanta pipeline …` and other programs of Spark as processes, which a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from atalanta.spark.environment.java import find_java
from atalanta.spark.environment.session import java_folder
from tests.source_tree import ROOT

ATALANTA = (sys.executable, "-m", "atalanta")


def user_environment() -> dict[str, str]:
    """Returns the environment of a user with this Python on PATH, and a JVM for a short life on two cores."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The second compiler and a parallel collector cost more than they give.
    environment["JAVA_TOOL_OPTIONS"] = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    environment.pop("PYSPARK_PYTHON", None)
    return environment


class PipelineProcess:
    """A process in `folder`, whose output is in its file `log`. `variables` go into its environment."""

    def __init__(self, folder: Path, variables: Mapping[str, str], *command: str) -> None:
        self.log = folder / "log"
        environment = user_environment()
        # For spark-submit, which looks for PySpark with the Python of PATH, and for Java.
        environment["PYSPARK_PYTHON"] = sys.executable
        environment["JAVA_HOME"] = str(find_java(os.environ, java_folder()))
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        environment |= variables
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def text(self) -> str:
        return self.log.read_text()

    def until(self, reached: Callable[[], bool], timeout_s: float = 200.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            assert self.process.poll() is None and time.monotonic() < deadline, self.text()
            time.sleep(0.2)

    def ends(self, timeout_s: float = 400.0) -> str:
        """Returns the output when the process has ended well."""
        try:
            assert self.process.wait(timeout_s) == 0, self.text()[-8000:]
        finally:
            self.kill()
        return self.text()

    def kill(self) -> None:
        """Kills the process with its JVM and Spark's Python processes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(30)
