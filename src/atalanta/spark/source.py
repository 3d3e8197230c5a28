"""The data source `atalanta`: batch and streaming, reading and writing."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

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
from atalanta.spark.environment.package_archive import ship
from atalanta.spark.errors import OptionError
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.gateway.gateway import Credentials, Gateway
from atalanta.spark.options import read_options, write_options
from atalanta.spark.wal.source_mode import batch_reader, stream_reader

if TYPE_CHECKING:
    from atalanta.spark.wal.wal_node import WalNode


class AtalantaDataSource(DataSource):
    """The data source, registered once per session, then `format("atalanta")`; see docs/guide/spark.md.

    Options are checked before any connection: OptionError. A query starts a process that plans it, whose start waits
    for every import: what few queries use is imported where it is used.
    """

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.load = uuid.uuid4().hex  # names the loaded stream in every process that gets a copy (shared_lease.py)

    @staticmethod
    def connect(server: str, credentials: Credentials) -> Gateway:
        """Connects to a server. Tests replace this method."""
        return connect(server, credentials)

    @staticmethod
    def open_node(server: str, credentials: Credentials) -> WalNode:
        """Connects to a node without the log view. Tests replace this method."""
        from atalanta.spark.wal.wal_node import open_node

        return open_node(server, credentials)

    @classmethod
    def name(cls) -> str:
        return "atalanta"

    def schema(self) -> StructType:
        options = read_options(self.options)
        return default_schema(options.include_headers, options.columns, options.typed_properties)

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(schema)
        return batch_reader(read_options(self.options), schema, self.connect, self.open_node)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        check_schema(schema)
        return stream_reader(
            read_options(self.options), schema, self.connect, self.open_node, self.load
        )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise OptionError('messages can only be added: use mode("append")')
        from atalanta.spark.write.sink import AtalantaBatchWriter

        return AtalantaBatchWriter(write_options(self.options), schema, self.connect)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = write_options(self.options)
        if overwrite and not options.key_columns:  # Spark says so for outputMode("complete")
            raise OptionError(
                "outputMode complete writes every row of the result again in each batch: name its key in "
                "keyColumns, and write to a last-value queue, which keeps the newest message of each key"
            )
        from atalanta.spark.write.sink import AtalantaStreamWriter

        return AtalantaStreamWriter(options, schema, self.connect)


def register(spark: SparkSession) -> None:
    """Registers `format("atalanta")` in a session, and the package in its workers (see package_archive.py)."""
    ship(spark)
    spark.dataSource.register(AtalantaDataSource)
