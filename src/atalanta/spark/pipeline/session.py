"""The session of a pipeline: that of spark-submit, else one of its own."""

from __future__ import annotations

import os

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from atalanta.spark.environment.session import session
from atalanta.spark.pipeline.declaration import Declaration, texts
from atalanta.spark.source import register


def open_session(declaration: Declaration) -> SparkSession:
    """Returns the session with the source registered. The master of spark-submit overrides that of the file."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # PySpark logs each refused statement with the JVM's stack; the problem has its text and its line.
        PySparkLogger.getLogger(name).disabled = True
    settings = texts(declaration.spark)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # set by spark-submit, which has started the JVM
        return session(declaration.master, declaration.name, settings)
    builder = SparkSession.builder.appName(declaration.name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
