"""The source over several queues: a reader for each queue (stream_reader.py, batch.py), and one offset for all.

    {"queues": {"orders.eu": {"queue": "orders.eu", "nodes": {…}}, "orders.us": …}}

Each part is the offset of a query over that queue alone, so that such a checkpoint goes on when the query gets more
queues. A queue that appears is read from its beginning. A queue of the offsets that the options do not name any more
stops the query until removedQueues says so: messages of its last batch may be unacknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.spark.environment.compatibility import (
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from atalanta.spark.errors import SparkSourceError
from atalanta.spark.gateway.gateway import Connector
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.batch import AtalantaBatchReader
from atalanta.spark.read.batch_delay import BatchDelay
from atalanta.spark.read.batch_plan import BatchLimits, limits_of, refuse_single_batch, share
from atalanta.spark.read.batch_room import BatchRoom, PlaceOrder
from atalanta.spark.read.queue_search import QueueSearch, SharedConnections
from atalanta.spark.read.shared_lease import SharedLease
from atalanta.spark.read.stream_reader import AtalantaStreamReader, mean_bytes

Json = dict[str, Any]
SEARCH = "*"  # the search's name among the readers of SharedConnections; no queue has it



@dataclass
class QueuePartition(InputPartition):
    """The input of a task: a partition of one queue."""

    queue: str
    part: InputPartition

    def __repr__(self) -> str:
        return f"QueuePartition({self.queue} {self.part!r})"


def options_of(options: ReadOptions, queue: str) -> ReadOptions:
    """Returns the options of a query over one of the queues."""
    return replace(
        options, queue=queue, queues=(), queue_pattern=None, removed_queues=frozenset(), min_messages=None
    )


def names_of(options: ReadOptions, connect: Connector) -> list[str]:
    """Returns the queues to read at the start. Raises SparkSourceError if no queue matches the pattern."""
    if options.queue_pattern is None:
        return [name for name in options.queues if name not in options.removed_queues]
    search = QueueSearch(options, connect)
    try:
        found = search.complete(options.queue_pattern)
    finally:
        search.close()
    names = [name for name in found if name not in options.removed_queues]
    if not names:
        raise SparkSourceError(
            f"no node of {', '.join(options.login.servers)} has a queue that matches "
            f"{options.queue_pattern!r} (queuePattern) and that the user may consume"
        )
    return names


class QueuesBatchReader(DataSourceReader):
    """The batch source over several queues."""

    def __init__(self, options: ReadOptions, schema: StructType, connect: Connector) -> None:
        self.options = options
        self.schema = schema
        self.connect = connect

    def partitions(self) -> list[InputPartition]:
        return [
            QueuePartition(queue, part)
            for queue in names_of(self.options, self.connect)
            for part in self._reader(queue).partitions()
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, QueuePartition):
            return iter(())  # without a partition, Spark creates one from nothing
        return self._reader(partition.queue).read(partition.part)

    def _reader(self, queue: str) -> AtalantaBatchReader:
        return AtalantaBatchReader(options_of(self.options, queue), self.schema, self.connect)


class QueuesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The streaming source over several queues. Tasks receive a copy without readers and connections."""

    def __init__(
        self, options: ReadOptions, schema: StructType, connect: Connector, load: str = ""
    ) -> None:
        self.options = options
        self.schema = schema
        self.connect = connect
        self._lease = SharedLease(load)
        self._readers: dict[str, AtalantaStreamReader] = {}
        self._connections: SharedConnections | None = None
        self._search: QueueSearch | None = None
        self._initial: Json | None = None
        self._delay = BatchDelay(options)
        self._turns = PlaceOrder()
        self._bounded: list[str] | None = None  # the queues of a run with Trigger.AvailableNow

    # -- calls of Spark in the driver ---------------------------------------------------------------
    def initialOffset(self) -> Json:
        if self._initial is None:
            names = names_of(self.options, self.connect)
            # A start that one queue refuses leaves no position at the others.
            starts = {queue: self._reader(queue).choose_start() for queue in names}
            parts = {queue: self._reader(queue).record_start(start) for queue, start in starts.items()}
            self._initial = joined(parts)
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        self._lease.join()  # Spark asks every source of a query before it asks one for an offset
        return limits_of(self.options).read_limit()

    def prepareForTriggerAvailableNow(self) -> None:
        self._bounded = self._named()
        for queue in self._bounded:
            self._reader(queue)

    def latestOffset(self, start: Json, limit: ReadLimit, certain: bool = True) -> Json:
        """Returns the end of the next batch over all queues, as the reader of one queue does."""
        refuse_single_batch(limit)
        before = parts_of(start)
        self._lease.begin()
        self._lease.step()
        names = self._present(before)
        whole = limits_of(self.options).within(limit)
        limits, held = self._limits(whole, names, before)
        room = BatchRoom(whole.bytes)
        result = dict(before)
        for queue in self._turns.order(names):
            reader, bound = self._reader(queue), limits[queue]
            reader.set_limits(bound, room)
            old = before.get(queue) or nothing(queue)
            part = reader.next_offset(old, bound.read_limit(), certain, held)
            if part["nodes"]:
                result[queue] = part
            elif self.options.queue_pattern is None and not held:
                raise reader.members.no_queue()
            if part != old:
                self._turns.serve(queue)
            elif bound.bytes and not held:
                self._turns.wait(queue)
        return joined(result)

    def reportLatestOffset(self) -> Json | None:
        found = {queue: reader.reportLatestOffset() for queue, reader in self._readers.items()}
        parts = {queue: part for queue, part in found.items() if part is not None}
        return joined(parts) if parts else None

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        before, after = parts_of(start), parts_of(end)
        changed = [queue for queue in after if after[queue] != before.get(queue)]
        least = -(-self.options.min_partitions // max(1, len(changed)))
        result: list[InputPartition] = []
        for queue in changed:
            reader = self._reader(queue)
            reader.set_min_partitions(least)
            parts = reader.partitions(before.get(queue) or nothing(queue), after[queue])
            result.extend(QueuePartition(queue, part) for part in parts)
        return result

    def commit(self, end: Json) -> None:
        for queue, part in parts_of(end).items():
            if queue in self._readers:
                self._readers[queue].commit(part)

    def acknowledge(self, end: Json) -> None:
        """See LimitedReader."""
        for queue, part in parts_of(end).items():
            if queue in self._readers:
                self._readers[queue].acknowledge(part)

    def stop(self) -> None:
        for reader in self._readers.values():
            reader.end_leases()
        for reader in self._readers.values():  # they share connections
            reader.close()
        if self._search is not None:
            self._search.close()

    # -- calls of Spark in a task -------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, QueuePartition):
            raise TypeError(f"{partition!r} is not a partition of this source")
        options = options_of(self.options, partition.queue)
        return AtalantaStreamReader(options, self.schema, self.connect).read(partition.part)

    # -- queues -------------------------------------------------------------------------------------
    def _reader(self, queue: str) -> AtalantaStreamReader:
        found = self._readers.get(queue)
        if found is None:
            options = options_of(self.options, queue)
            connect = self._shared.connector(queue)
            found = AtalantaStreamReader(options, self.schema, connect, shared=self._lease)
            self._readers[queue] = found
            if self._bounded is not None:
                found.prepareForTriggerAvailableNow()
        return found

    @property
    def _shared(self) -> SharedConnections:
        if self._connections is None:
            self._connections = SharedConnections(self.connect)
        return self._connections

    def _named(self) -> list[str]:
        """Returns the queues of the options: those of the list, or those that match the pattern now."""
        names: Sequence[str] = self.options.queues
        if self.options.queue_pattern is not None:
            if self._search is None:
                self._search = QueueSearch(self.options, self._shared.connector(SEARCH))
            names = self._search.now(self.options.queue_pattern)
        return [name for name in names if name not in self.options.removed_queues]

    def _present(self, before: Mapping[str, Json]) -> list[str]:
        """Returns the queues to plan. Raises SparkSourceError if the offsets have another one."""
        names = self._bounded if self._bounded is not None else self._named()
        search = self._search
        missing: list[str] = []
        away: list[str] = []
        for queue, part in before.items():
            if queue in names or queue in self.options.removed_queues:
                continue
            there = search is None or search.saw(part["nodes"])
            (missing if there else away).append(queue)
        if not missing:
            return sorted({*names, *away})  # the reader of a queue waits for its nodes
        said = ", ".join(missing)
        how = (
            f"option queue ({', '.join(self.options.queues)}) does not name"
            if self.options.queue_pattern is None
            else f"no node has, or that does not match queuePattern {self.options.queue_pattern!r}"
        )
        raise SparkSourceError(
            f"the checkpoint has a position in {said}, which {how}. To go on without, set "
            f"removedQueues={','.join(missing)}: its position is kept, and messages of its last "
            "batch may still be in the queue"
        )

    def _limits(
        self, whole: BatchLimits, names: Sequence[str], before: Mapping[str, Json]
    ) -> tuple[dict[str, BatchLimits], bool]:
        """Returns the part of each queue in the limits of the batch, by its backlog, and whether the batch is held."""
        messages, size = whole.messages, whole.bytes
        if messages is None and size is None and self.options.min_messages is None:
            return dict.fromkeys(names, whole), False
        waiting: dict[str, int] = {}
        waiting_bytes: dict[str, int] = {}
        for queue in names:
            waiting[queue] = waiting_bytes[queue] = 0
            nodes = (before.get(queue) or nothing(queue))["nodes"]
            found = self._reader(queue).members.poll(self.options.position_cache_s)
            for node, located in found.items():
                position = located.position
                read = int(nodes[node]["sequence"]) if node in nodes else 0
                if node in nodes and nodes[node]["incarnation"] != position.incarnation:
                    read = 0
                rest = max(0, position.last - max(read, position.first - 1, position.acked_through))
                waiting[queue] += rest
                waiting_bytes[queue] += rest * mean_bytes(located)
        limits = {
            queue: BatchLimits(
                None if messages is None else share(messages, waiting).get(queue, 0),
                None if size is None else share(size, waiting_bytes).get(queue, 0),
            )
            for queue in names
        }
        return limits, self._bounded is None and self._delay.holds(sum(waiting.values()))


def nothing(queue: str) -> Json:
    """Returns the offset of a queue that was not read yet: its reader begins with the first message."""
    return {"queue": queue, "nodes": {}}


def joined(parts: Mapping[str, Json]) -> Json:
    return {"queues": {queue: parts[queue] for queue in sorted(parts)}}


def parts_of(value: Mapping[str, Any]) -> dict[str, Json]:
    """Returns the offset of each queue; that of a query over one queue is one part."""
    queues = value.get("queues")
    if isinstance(queues, dict) and all(isinstance(part, dict) for part in queues.values()):
        return dict(queues)
    if isinstance(value.get("queue"), str) and isinstance(value.get("nodes"), dict):
        return {value["queue"]: dict(value)}
    raise SparkSourceError(
        f"the checkpoint holds an offset that is not one of this source: {value!r}"
    )
