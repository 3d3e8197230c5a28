"""The reader of a task: it reads one range of one node's queue and survives lost connections.

After a restart of the node or a lost connection it waits up to `nodeTimeout` and continues after the last returned
batch: Spark's local master never retries a task.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from atalanta.client import Chunk
from atalanta.spark.environment.worker import settle_worker
from atalanta.spark.errors import (
    DataLost,
    GatewayError,
    LeaseTaken,
    NodeTimeout,
    NodeUnavailable,
    QueueMissing,
    QueueRecreated,
    RangeIncomplete,
    Undecodable,
    lose,
)
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.options import LoginOptions, ReadOptions
from atalanta.spark.read.leases import Hold, fenced
from atalanta.spark.read.offsets import Range, spans

CHUNK_BYTES: Final = 2 << 20
RETRY_S: Final = 0.2
REASON_CHARACTERS: Final = 500  # of a property of the dead letter

log = logging.getLogger("atalanta.spark")

# Connections kept for the worker process' next task: (process id, server, login) -> connection.
_idle: dict[tuple[int, str, LoginOptions], Gateway] = {}


@dataclass
class RangePartition(InputPartition):
    """The input of a task: (start, end] of one incarnation at one node. A batch read has no lease."""

    whole: Range
    hold: Hold | None = None

    def __repr__(self) -> str:
        part = self.whole
        return f"RangePartition({part.node_id} {part.server} ({part.start}, {part.end}])"


class RangeReader:
    """The reader of one task."""

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        connect: Connector,
        partition: RangePartition,
    ) -> None:
        self.options = options
        self.connect = connect
        self.part = part = partition.whole
        self.hold = partition.hold
        self.server = part.server
        self.position = part.start
        self.gateway: Gateway | None = None
        # Imported here: the process that plans a query does not need it and would wait 0.2 s.
        from atalanta.spark.arrow.columns import BatchBuilder

        self.builder = BatchBuilder(
            schema,
            options.queue,
            part.node_id,
            options.undecodable,
            options.max_body_bytes,
            None if options.include_expired else part.planned_at_ms,
        )
        settle_worker()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields batches in the order of the sequence. Raises NodeTimeout or DataLost."""
        try:
            yield from self._all()
            self._give_back()
        finally:
            # After an error, or when Spark needs no more rows, the connection is in the middle of an answer.
            if self.gateway is not None:
                self.gateway.close()
                self.gateway = None

    def _all(self) -> Iterator[pa.RecordBatch]:
        deadline = time.monotonic() + self.options.login.node_timeout_s
        complete = False
        while not complete:
            try:
                while self.position < self.part.end:
                    for chunk in self._chunks():
                        if chunk.count:
                            batch = self.builder.build(chunk.count, chunk.content, chunk.error, chunk.unread)
                            self._move_omitted()
                            if batch.num_rows:
                                yield batch
                        self.position = self.part.end if chunk.last else chunk.next
                        deadline = time.monotonic() + self.options.login.node_timeout_s
                self._check_lost()
                complete = True
            except NodeUnavailable as error:
                self._lose(error, deadline)
            except (RangeIncomplete, QueueRecreated, QueueMissing) as error:
                self._skip(error)
                complete = not isinstance(error, RangeIncomplete)

    def _chunks(self) -> Iterator[Chunk]:
        """Yields the rest of the range."""
        return self._gateway().read(
            self.options.queue,
            self.part.incarnation,
            self.position,
            self.part.end,
            CHUNK_BYTES,
            self.options.selector,
            self.options.max_body_bytes if self.builder.has_bodies else 0,
        )

    def _move_omitted(self) -> None:
        """Moves the messages that are no rows to the dead-letter address. Raises Undecodable if that is impossible.

        A repeat of the batch lacks them, too: they have left the queue.
        """
        omitted, self.builder.omitted = self.builder.omitted, []
        hold, part, queue = self.hold, self.part, self.options.queue
        for sequence, why in omitted:
            epoch = 0 if hold is None else hold.epoch
            try:
                self._gateway().dead_letter(
                    queue, part.incarnation, self.options.group, epoch, sequence, why[:REASON_CHARACTERS]
                )
            except LeaseTaken as error:
                raise fenced(self.options, error) from error
            except (NodeUnavailable, QueueRecreated, QueueMissing):
                raise
            except GatewayError as error:
                raise Undecodable(
                    f"message {sequence} of queue {queue} at node {part.node_id}: {why}. It stays in the queue "
                    f"(undecodable=dead-letter): {error}"
                ) from error
            log.warning("node %s: message %s of queue %s is a dead letter: %s", part.node_id, sequence, queue, why)

    # -- the connection -------------------------------------------------------------------------
    def _gateway(self) -> Gateway:
        """Returns a connection to the right node: another server may use the address now."""
        if self.gateway is not None:
            return self.gateway
        gateway = _idle.pop(self._key(), None) or self._open(self.server)
        self.gateway = gateway
        try:
            found = gateway.position(self.options.queue)
        except QueueMissing:
            return gateway
        if found.node_id != self.part.node_id:
            raise NodeUnavailable(
                f"{self.server} is node {found.node_id} now, not {self.part.node_id}"
            )
        return gateway

    def _open(self, server: str) -> Gateway:
        return self.connect(server, self.options.login.quick_credentials())

    def _key(self) -> tuple[int, str, LoginOptions]:
        return os.getpid(), self.server, self.options.login

    def _give_back(self) -> None:
        gateway, self.gateway = self.gateway, None
        if gateway is None:
            return
        key = self._key()
        if key in _idle:
            gateway.close()
        else:
            _idle[key] = gateway

    def _lose(self, error: NodeUnavailable, deadline: float) -> None:
        """Closes the connection and finds the node's current server. Raises NodeTimeout."""
        gateway, self.gateway = self.gateway, None
        if gateway is not None:
            gateway.close()
        if time.monotonic() >= deadline:
            raise NodeTimeout(
                f"node {self.part.node_id} ({self.server}) did not answer for "
                f"{self.options.login.node_timeout_s:g} s (nodeTimeout): {error}"
            ) from error
        log.warning("node %s (%s): %s", self.part.node_id, self.server, error)
        time.sleep(RETRY_S)
        self.server = self._where() or self.server

    def _where(self) -> str | None:
        """Returns where the node serves now: the member that answers, or what the topology of another node shows."""
        members = (self.part.server, *self.part.backups)
        for server in dict.fromkeys((self.server, *members, *self.options.login.servers)):
            try:
                gateway = self._open(server)
            except NodeUnavailable:
                continue
            try:
                if server in members and gateway.position(self.options.queue).node_id == self.part.node_id:
                    return server
                for member in gateway.topology():
                    if member.node_id == self.part.node_id:
                        return member.server
            except (NodeUnavailable, QueueMissing):
                continue
            finally:
                gateway.close()
        return None

    def _check_lost(self) -> None:
        """Raises DataLost if a message of the range left its queue before this task could read it."""
        part = self.part
        if self.hold is None:
            return
        gateway = self._gateway()
        lost = gateway.lost_ranges(self.options.queue, part.incarnation, part.start, part.end)
        if lost:
            self.hold.check(self.options, gateway)
            lose(
                self.options.fail_on_data_loss,
                f"queue {self.options.queue} at node {part.node_id} ({self.server}): "
                f"messages left the queue after they were planned: {spans(lost)}",
            )

    def _skip(self, error: GatewayError) -> None:
        """Continues after the lost range. Raises DataLost, or LeaseTaken if another query has acknowledged it."""
        part = self.part
        if isinstance(error, RangeIncomplete) and self.hold is not None:
            self.hold.check(self.options, self._gateway())
        if self.options.fail_on_data_loss:
            raise DataLost(
                f"queue {self.options.queue} at node {part.node_id} ({self.server}): messages of "
                f"the range ({self.position}, {part.end}] are gone: {error}. Set "
                "failOnDataLoss=false to continue without them"
            ) from error
        log.warning("node %s: %s; continuing without (failOnDataLoss=false)", part.node_id, error)
        resume = part.end
        if isinstance(error, RangeIncomplete) and self.gateway is not None:
            acked = self.gateway.position(self.options.queue).acked_through
            if acked > self.position:
                resume = min(part.end, acked)
        self.position = resume
