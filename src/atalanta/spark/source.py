"""The data source `atalanta`: batch and streaming, reading and writing."""

from __future__ import annotations

import uuid

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from atalanta.spark.arrow.schema import check_schema, default_schema
from atalanta.spark.environment.compatibility import ADMISSION_CONTROL
from atalanta.spark.environment.package_archive import ship
from atalanta.spark.errors import OptionError
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials, Gateway
from atalanta.spark.options import read_options, write_options
from atalanta.spark.read.batch import AtalantaBatchReader
from atalanta.spark.read.older_stream_reader import OlderStreamReader
from atalanta.spark.read.several_queues import QueuesBatchReader, QueuesStreamReader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from atalanta.spark.write.sink import AtalantaBatchWriter, AtalantaStreamWriter


class AtalantaDataSource(DataSource):
    """The data source, registered once per session, then `format("atalanta")`; see docs/guide/spark.md.

    Options are checked before any connection: OptionError.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.load = uuid.uuid4().hex  # names the loaded stream in every process that gets a copy (shared_lease.py)

    @staticmethod
    def connect(server: str, credentials: Credentials) -> Gateway:
        """Connects to a server. Tests replace this method."""
        return connect(server, credentials)

    @classmethod
    def name(cls) -> str:
        return "atalanta"

    def schema(self) -> StructType:
        options = read_options(self.options)
        return default_schema(options.include_headers, options.columns, options.typed_properties)

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(schema)
        options = read_options(self.options)
        if options.several:
            return QueuesBatchReader(options, schema, self.connect)
        return AtalantaBatchReader(options, schema, self.connect)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        check_schema(schema)
        options = read_options(self.options)
        if options.several:
            if not ADMISSION_CONTROL:
                raise OptionError("several queues in one stream need Spark 4.2: read one queue a query")
            return QueuesStreamReader(options, schema, self.connect)
        reader = AtalantaStreamReader if ADMISSION_CONTROL else OlderStreamReader
        return reader(options, schema, self.connect, self.load)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise OptionError('messages can only be added: use mode("append")')
        return AtalantaBatchWriter(write_options(self.options), schema, self.connect)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = write_options(self.options)
        if overwrite and not options.key_columns:  # Spark says so for outputMode("complete")
            raise OptionError(
                "outputMode complete writes every row of the result again in each batch: name its key in "
                "keyColumns, and write to a last-value queue, which keeps the newest message of each key"
            )
        return AtalantaStreamWriter(options, schema, self.connect)


def register(spark: SparkSession) -> None:
    """Registers `format("atalanta")` in a session, and the package in its workers (see package_archive.py)."""
    ship(spark)
    spark.dataSource.register(AtalantaDataSource)
