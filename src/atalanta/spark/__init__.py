"""The PySpark data source `atalanta`: queues of a whole cluster into Spark and back, exactly once.

    import atalanta.spark
    atalanta.spark.register(spark)
    rows = spark.readStream.format("atalanta").option("servers", …).option("queue", …).load()

See docs/guide/spark.md.
"""

import gc
from typing import TYPE_CHECKING

from atalanta.face import face

# The imports make no garbage. A collection amid them looks at all that Spark has imported: a tenth of a query's start.
collects = gc.isenabled()
gc.disable()
try:
    from atalanta.spark.errors import SparkSourceError
    from atalanta.spark.source import AtalantaDataSource, register
finally:
    if collects:
        gc.enable()

if TYPE_CHECKING:
    from atalanta.spark.environment.interpreter import quick_python
    from atalanta.spark.environment.java import JavaMissing, find_java
    from atalanta.spark.environment.session import session
else:
    # What prepares a session is loaded by its use: the processes that Spark starts have no use for it.
    __getattr__ = face(__name__)

__all__ = [
    "AtalantaDataSource",
    "JavaMissing",
    "SparkSourceError",
    "find_java",
    "quick_python",
    "register",
    "session",
]
