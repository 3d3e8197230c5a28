"""A Spark session with defaults for one machine: for the demo, tests and first steps."""

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
    # Over TCP each task would wait 40 ms for its input: Nagle's algorithm at Spark, delayed acknowledgements in Python.
    "spark.python.unix.domain.socket.enabled": "true",
}

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def prepare_environment(master: str) -> None:
    """Sets JAVA_HOME, SPARK_LOCAL_IP and the workers' Python if they are missing. Raises JavaMissing."""
    os.environ["JAVA_HOME"] = str(find_java(os.environ, java_folder()))
    if on_this_machine(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        folder = environment_folder()
        if folder is not None:
            quick = quick_python(os.environ, folder / "atalanta-python")
            os.environ.setdefault("PYSPARK_PYTHON", quick)
            # Spark looks for data sources with this one.
            os.environ.setdefault("PYSPARK_DRIVER_PYTHON", quick)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def on_this_machine(master: str) -> bool:
    """Returns True if all executors run on this machine. Remote ones could not call a driver on 127.0.0.1."""
    if not master.startswith("spark://"):
        return master.startswith("local")
    servers = master.removeprefix("spark://").split(",")
    return all(urlsplit(f"//{server}").hostname in LOOPBACK for server in servers)


def environment_folder() -> Path | None:
    """Returns the data folder of the environment, None if it is not writable."""
    shared = Path(sys.prefix) / "share"
    existing = next(folder for folder in (shared, Path(sys.prefix)) if folder.exists())
    return shared if os.access(existing, os.W_OK) else None


def java_folder() -> Path:
    """Returns a folder in the environment; if that is not writable, a new private folder."""
    shared = environment_folder()
    if shared is not None:
        return shared / "atalanta-java"
    return Path(tempfile.mkdtemp(prefix="atalanta-java-"))


def session(
    master: str = "local[2]",
    name: str = "atalanta",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Returns the session with the source registered. `settings` override the defaults."""
    prepare_environment(master)
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**DEFAULTS, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark
