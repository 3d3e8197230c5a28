"""The package itself on Spark's workers, when the job was given it as a wheel.

`spark-submit --py-files x.whl` puts a wheel on the driver's path, but PySpark's workers look only
into .zip, .egg and .jar files. A wheel is a zip: sent on under such a name it serves as well.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

SUFFIX = ".whl"


def wheel_of(module_file: str) -> Path | None:
    """The wheel a module was imported from, None if it lies in an ordinary folder."""
    for parent in Path(module_file).parents:
        if parent.suffix == SUFFIX and parent.is_file():
            return parent
    return None


def ship(spark: SparkSession) -> None:
    """Sends the wheel on, if there is one."""
    wheel = wheel_of(__file__)
    if wheel is None:
        return
    # Executors fetch the file when they start: it stays as long as the driver.
    folder = tempfile.mkdtemp(prefix="atalanta-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = Path(folder) / f"{wheel.stem}.zip"
    shutil.copyfile(wheel, copy)
    spark.sparkContext.addPyFile(str(copy))
