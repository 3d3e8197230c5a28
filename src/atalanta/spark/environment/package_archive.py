"""Distribution of the package to Spark's Python processes, if the job received it as a wheel or a zip.

`spark-submit --py-files x.whl` puts a wheel on the driver's path, but PySpark's workers read only .zip, .egg and .jar
files. A wheel is a zip, so it is sent under such a name.

The process that plans a stream (and the one that commits a sink's batches) runs next to the driver and receives no
such file: Spark 4.2 gives it a folder, `streaming_job`, that stays empty (PythonStreamingSourceRunner.scala). It
receives the environment of the data source, whose PYTHONPATH names the archive.
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
# Archives that Spark distributes itself.
ZIPS: Final = (".zip", ".egg", ".jar")
PATH: Final = "PYTHONPATH"

log = logging.getLogger("atalanta.spark")


def archive_of(module_file: str) -> Path | None:
    """Returns the wheel or zip a module was imported from, None for an ordinary folder."""
    for parent in Path(module_file).parents:
        if parent.suffix in (WHEEL, *ZIPS) and parent.is_file():
            return parent.absolute()
    return None


def ship(spark: SparkSession) -> None:
    """Adds the archive, if there is one, to the processes that Spark starts; once per context."""
    archive = archive_of(__file__)
    if archive is None:
        return
    if type(spark).__module__.startswith("pyspark.sql.connect"):  # such a session has no context
        spark.addArtifacts(str(zip_of(archive)), pyfile=True)
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
        context.addPyFile(str(zip_of(archive)))


def zip_of(archive: Path) -> Path:
    """Returns the archive under a name that Spark takes: a copy of a wheel, which exists as long as the driver."""
    if archive.suffix != WHEEL:
        return archive
    folder = tempfile.mkdtemp(prefix="atalanta-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = Path(folder) / f"{archive.stem}.zip"
    shutil.copyfile(archive, copy)  # executors fetch it at their start
    return copy


def compiled(archive: Path) -> bool:
    """Returns True if the archive has compiled modules for this Python, which work only in an unpacked package."""
    with zipfile.ZipFile(archive) as opened:
        return any(name.endswith(tuple(EXTENSION_SUFFIXES)) for name in opened.namelist())
