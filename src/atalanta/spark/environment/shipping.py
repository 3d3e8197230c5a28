"""The package itself in Spark's Python processes, when the job was given it as a wheel or a zip.

`spark-submit --py-files x.whl` puts a wheel on the driver's path, but PySpark's workers look only
into .zip, .egg and .jar files. A wheel is a zip: sent on under such a name it serves as well.

The process that plans a stream (and the one that commits a sink's batches) runs beside the driver
and gets no such file at all: Spark 4.2 tells it a folder for them, `streaming_job`, that it never
fills (PythonStreamingSourceRunner.scala). It does get the environment of the data source, so its
PYTHONPATH names the archive.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

WHEEL: Final = ".whl"
# Spark sends these on by itself.
ZIPS: Final = (".zip", ".egg", ".jar")
PATH: Final = "PYTHONPATH"

log = logging.getLogger("atalanta.spark")


def archive_of(module_file: str) -> Path | None:
    """The wheel or zip a module was imported from, None if it lies in an ordinary folder."""
    for parent in Path(module_file).parents:
        if parent.suffix in (WHEEL, *ZIPS) and parent.is_file():
            return parent.absolute()
    return None


def ship(spark: SparkSession) -> None:
    """Makes the archive known to the processes Spark starts, if there is one; once a context."""
    archive = archive_of(__file__)
    if archive is None:
        return
    context = spark.sparkContext
    paths = [path for path in context.environment.get(PATH, "").split(os.pathsep) if path]
    if str(archive) in paths:
        return
    context.environment[PATH] = os.pathsep.join([str(archive), *paths])
    if compiled(archive):
        log.warning(
            "%s has compiled modules, which Python cannot import from an archive: it uses their "
            "sources, which is slower. Install the wheel on the workers, or send it unpacked "
            "(--archives, see docs/guide/spark.md)",
            archive.name,
        )
    if archive.suffix == WHEEL:
        # Executors fetch the file when they start: it stays as long as the driver.
        folder = tempfile.mkdtemp(prefix="atalanta-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        copy = Path(folder) / f"{archive.stem}.zip"
        shutil.copyfile(archive, copy)
        context.addPyFile(str(copy))


def compiled(archive: Path) -> bool:
    """Has the archive modules for this Python that only an unpacked package can use?"""
    with zipfile.ZipFile(archive) as opened:
        return any(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in opened.namelist())
