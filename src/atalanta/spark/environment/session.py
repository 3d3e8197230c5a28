"""A Spark session with defaults that suit one machine: for the demo, tests and first steps."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from atalanta.spark.environment.interpreter import quick_python
from atalanta.spark.environment.java import find_java
from atalanta.spark.source import register

DEFAULTS: Final[Mapping[str, str]] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    # On TCP each task waits 40 ms for its input: Nagle's algorithm at Spark's end, a late acknowledgement at Python's.
    "spark.python.unix.domain.socket.enabled": "true",
    # What a task writes must be cut the same way when a batch is run again.
    "spark.sql.adaptive.enabled": "false",
}

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def prepare_environment(master: str) -> None:
    """JAVA_HOME, SPARK_LOCAL_IP and the workers' Python, where they are not set. JavaMissing."""
    os.environ["JAVA_HOME"] = str(find_java(os.environ, java_folder()))
    if on_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        folder = environment_folder()
        if folder is not None and "PYSPARK_PYTHON" not in os.environ:
            os.environ["PYSPARK_PYTHON"] = quick_python(os.environ, folder / "atalanta-python")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def on_this_machine(master: str) -> bool:
    """Are all executors certain to be here? Others could not call back a driver on 127.0.0.1."""
    if not master.startswith("spark://"):
        return master.startswith("local")
    servers = master.removeprefix("spark://").split(",")
    return all(urlsplit(f"//{server}").hostname in LOOPBACK for server in servers)


def environment_folder() -> Path | None:
    """Where the environment keeps what is no code; None where it cannot be written."""
    shared = Path(sys.prefix) / "share"
    existing = next(folder for folder in (shared, Path(sys.prefix)) if folder.exists())
    return shared if os.access(existing, os.W_OK) else None


def java_folder() -> Path:
    """In the environment's own folder; where that cannot be written, a new private one."""
    shared = environment_folder()
    if shared is not None:
        return shared / "atalanta-java"
    return Path(tempfile.mkdtemp(prefix="atalanta-java-"))


def session(
    master: str = "local[2]",
    name: str = "atalanta",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session, with the source registered. `settings` go before the defaults."""
    prepare_environment(master)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**DEFAULTS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark
