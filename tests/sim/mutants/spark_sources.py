"""The Spark source. These mutants are looked for in worlds of tests.sim.spark.source_load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql.datasource import InputPartition

from atalanta.spark.gateway.gateway import Gateway
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.leases import Hold, Leases
from atalanta.spark.read.offsets import Offset
from atalanta.spark.read.partition_reader import RangeReader
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from tests.sim.mutants.patching import Patch
from tests.sim.spark.fibers import install
from tests.sim.spark.source_load import SparkSource

LOAD: Final = SparkSource
prepare: Final = install


def lost_range_is_not_looked_at(patch: Patch) -> None:
    """A task does not ask whether messages of its range have left the queue."""
    patch.setattr(RangeReader, "_check_lost", lambda self: None)


def fenced_driver_is_told_of_lost_data(patch: Patch) -> None:
    def nothing(self: Hold, options: ReadOptions, gateway: Gateway) -> None:
        return None

    patch.setattr(Hold, "check", nothing)
    patch.setattr(Leases, "verify", lambda self, node_id, incarnation: None)


def batch_is_acknowledged_when_it_is_planned(patch: Patch) -> None:
    partitions = AtalantaStreamReader.partitions

    def hasty(
        self: AtalantaStreamReader, start: dict[str, Any], end: dict[str, Any]
    ) -> Sequence[InputPartition]:
        parts = partitions(self, start, end)
        self._acknowledge(Offset.from_json(end, self.options.queue))
        return parts

    patch.setattr(AtalantaStreamReader, "partitions", hasty)
