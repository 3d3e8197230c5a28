"""The module by which Spark finds `format("atalanta")` without `register`.

PySpark imports every top-level module whose name begins with `pyspark_` and takes its `DefaultSource`
(pyspark/sql/worker/lookup_data_sources.py).
"""

from atalanta.spark.source import AtalantaDataSource as DefaultSource

__all__ = ["DefaultSource"]
