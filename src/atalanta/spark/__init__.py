"""The PySpark data source `atalanta`: queues of a whole cluster into Spark and back, exactly once.

    import atalanta.spark
    atalanta.spark.register(spark)
    rows = spark.readStream.format("atalanta").option("servers", …).option("queue", …).load()

See docs/guide/spark.md.
"""

from atalanta.spark.environment.interpreter import quick_python
from atalanta.spark.environment.java import JavaMissing, find_java
from atalanta.spark.environment.session import session
from atalanta.spark.errors import SparkSourceError
from atalanta.spark.source import AtalantaDataSource, register

__all__ = [
    "AtalantaDataSource",
    "JavaMissing",
    "SparkSourceError",
    "find_java",
    "quick_python",
    "register",
    "session",
]
