"""The data source `atalanta`: batch and streaming, reading and writing."""

from __future__ import annotations

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
from atalanta.spark.wal.wal_node import WalNode, open_node
from atalanta.spark.write.sink import AtalantaBatchWriter, AtalantaStreamWriter


class AtalantaDataSource(DataSource):
    """The data source, registered once per session, then `format("atalanta")`; see docs/guide/spark.md.

    Options are checked before any connection: OptionError.
    """

    @staticmethod
    def connect(server: str, credentials: Credentials) -> Gateway:
        """Connects to a server. Tests replace this method."""
        return connect(server, credentials)

    @staticmethod
    def open_node(server: str, credentials: Credentials) -> WalNode:
        """Connects to a node without the log view. Tests replace this method."""
        return open_node(server, credentials)

    @classmethod
    def name(cls) -> str:
        return "atalanta"

    def schema(self) -> StructType:
        return default_schema(read_options(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(schema)
        return batch_reader(read_options(self.options), schema, self.connect, self.open_node)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        check_schema(schema)
        return stream_reader(read_options(self.options), schema, self.connect, self.open_node)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        refuse_overwrite(overwrite)
        return AtalantaBatchWriter(write_options(self.options), schema, self.connect)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        refuse_overwrite(overwrite)
        return AtalantaStreamWriter(write_options(self.options), schema, self.connect)


def refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise OptionError('messages can only be added: use mode("append")')


def register(spark: SparkSession) -> None:
    """Registers `format("atalanta")` in a session, and the package in its workers (see package_archive.py)."""
    ship(spark)
    spark.dataSource.register(AtalantaDataSource)
