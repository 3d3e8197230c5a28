"""The streaming source over nodes without the log view (`sourceMode=wal`): messages go into a folder first.

The driver receives from every queue of every node and writes one file for each in a batch; tasks only read files. An
offset is the number of a file, whose header names its queue:

    {"queue": "flights::archive", "wal": "<id of the folder>", "sequence": 12}

Spark passes as `start` of `latestOffset` only offsets whose batch is in its commit log, so the files up to it are
removed there. The crash points are in wal_reception.py, two drivers at once in wal_folder.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.spark.environment.compatibility import (
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from atalanta.spark.errors import (
    NodeTimeout,
    NodeUnavailable,
    QueueMissing,
    SparkSourceError,
    lose,
)
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.batch_delay import BatchDelay
from atalanta.spark.read.batch_plan import BatchLimits, limits_of, share
from atalanta.spark.read.batch_room import BatchRoom, PlaceOrder
from atalanta.spark.read.members import RETRY_S
from atalanta.spark.wal.location import location_of
from atalanta.spark.wal.queue_names import QueueNames, check_found
from atalanta.spark.wal.wal_file import INDEX_BITS, FileDamaged, WalFileReader
from atalanta.spark.wal.wal_folder import WalFolder
from atalanta.spark.wal.wal_node import Opener, WalNode
from atalanta.spark.wal.wal_nodes import WalNodes
from atalanta.spark.wal.wal_options import check_stream
from atalanta.spark.wal.wal_reception import FileLimits, Receiver

# Without a limit of the options a file has at most so much: it is read by one task.
FILE_MESSAGES: Final = 200_000
FILE_BYTES: Final = 128 << 20
TWICE: Final = 2
# After a node gave nothing although its queue has messages: consumers have them, or they are scheduled.
NOTHING_S: Final = 0.2

Place = tuple[str, str]  # node and queue
Backlog = dict[Place, int]  # number of messages

log = logging.getLogger("atalanta.spark")


@dataclass
class FilePartition(InputPartition):
    """The input of a task: one file."""

    location: str
    folder_id: str
    name: str
    number: int


class WalStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader. Tasks receive a pickled copy without connections."""

    def __init__(self, options: ReadOptions, schema: StructType, open_node: Opener) -> None:
        check_stream(options)
        self.options = options
        self.schema = schema
        self.open_node = open_node
        self._nodes: WalNodes | None = None
        self.names = QueueNames(options)
        self._receiver: Receiver | None = None
        self._bounded = False  # Trigger.AvailableNow
        self._target: Backlog | None = None  # its messages left, once the nodes were asked
        self._settled = False
        self._delay = BatchDelay(options)
        self._turns = PlaceOrder()

    # -- calls of Spark in the driver ---------------------------------------------------------------
    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset before the oldest file. Each queue must be at one node at least."""
        check_found(self.options, {queue for _, queue in self._waiting()[1]})
        folder = self.receiver.folder
        return self._offset(min(folder.files, default=folder.last + 1) - 1)

    def getDefaultReadLimit(self) -> ReadLimit:
        return limits_of(self.options).read_limit()

    def prepareForTriggerAvailableNow(self) -> None:
        self._bounded = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit, certain: bool = True) -> dict[str, Any]:
        """Returns the end of the next batch. `certain`: Spark never repeats the batch before, so its files may go."""
        folder = self.receiver.folder
        before = self._sequence(start)
        self._check_start(before)
        self._settle_left(before)
        if certain:
            folder.remove_through(before)
        if folder.last > before:
            return self._offset(folder.last)  # an earlier driver has received them
        deadline = time.monotonic() + self.options.login.node_timeout_s
        while not self._round(limits_of(self.options).within(limit)):
            if time.monotonic() >= deadline:
                raise NodeTimeout(
                    f"no batch could be received for {self.options.login.node_timeout_s:g} s (nodeTimeout), "
                    "since a node's connection is lost again and again"
                )
            time.sleep(RETRY_S)
        return self._offset(folder.last)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plans a task for each file. After a restart Spark begins here with the unfinished batch."""
        first, last = self._sequence(start), self._sequence(end)
        found, missing = self.receiver.folder.between(first, last)
        if missing:
            self._lost(
                f"files {missing[0]} to {missing[-1]} of the batch are gone from walLocation"
            )
        return [
            FilePartition(
                str(self.options.wal_location), self.receiver.folder.id, str(one), one.number
            )
            for one in found
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Removes nothing (see above)."""

    def acknowledge(self, end: dict[str, Any]) -> None:
        """Removes the files of every batch up to `end`, which Spark never repeats (see older_stream_reader.py)."""
        self.receiver.folder.remove_through(self._sequence(end))

    def stop(self) -> None:
        if self._nodes is not None:
            self._nodes.close()

    # -- calls of Spark in a task -------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, FilePartition):
            raise TypeError(f"{partition!r} is not a partition of this source")
        # Imported here: the process that plans a query does not need it and would wait 0.2 s.
        from atalanta.spark.wal.wal_batches import batches

        file = WalFileReader(
            location_of(partition.location), partition.name, partition.folder_id
        )
        header = file.header()
        first = partition.number << INDEX_BITS
        queue, node_id = str(header["queue"]), str(header["node"])
        received_at_ms = header.get("received_at")
        return batches(self.schema, self.options, queue, node_id, file.chunks(), first, received_at_ms)

    # -- offsets --------------------------------------------------------------------------------------
    @property
    def nodes(self) -> WalNodes:
        if self._nodes is None:
            self._nodes = WalNodes(self.options, self.open_node)
        return self._nodes

    @property
    def receiver(self) -> Receiver:
        """Returns the receiver. The first call claims the folder."""
        if self._receiver is None:
            location = location_of(str(self.options.wal_location))
            self._receiver = Receiver(self.options, WalFolder(location, self.names))
        return self._receiver

    def _offset(self, sequence: int) -> dict[str, Any]:
        return {
            "queue": self.options.queue,
            "wal": self.receiver.folder.id,
            "sequence": sequence,
        }

    def _sequence(self, offset: Mapping[str, Any]) -> int:
        """Returns the number of an offset. Raises SparkSourceError if it is that of another folder or mode."""
        if "wal" not in offset:
            raise SparkSourceError(
                "the checkpoint is that of a query with sourceMode=log: use a checkpoint of its own"
            )
        if offset["wal"] != self.receiver.folder.id:
            raise SparkSourceError(
                f"the checkpoint is that of a query over queue {offset['queue']} with another walLocation: "
                "a checkpoint and its folder belong together"
            )
        return int(offset["sequence"])

    def _check_start(self, before: int) -> None:
        """Raises DataLost if files after `before` were removed, or if the folder ends before it."""
        folder = self.receiver.folder
        oldest = min(folder.files, default=folder.last + 1)
        if oldest > before + 1:
            self._lost(
                f"walLocation begins with file {oldest}, but the checkpoint is at {before} (is it an old copy?)"
            )
        if folder.last < before:
            self._lost(
                f"walLocation ends with file {folder.last}, but the checkpoint is at {before}"
            )
            folder.go_on_after(before)

    # -- reception ------------------------------------------------------------------------------------
    def _settle_left(self, before: int) -> None:
        """Ends the branches of earlier drivers. A file is in an offset only when its branch is committed."""
        if self._settled:
            return
        folder = self.receiver.folder
        damaged: FileDamaged | None = None
        found, _ = folder.between(before, folder.last)
        for one in folder.files.values():
            try:
                header = WalFileReader(folder.location, str(one), folder.id).header()
            except FileDamaged as error:
                damaged = damaged or (error if one in found else None)
                continue
            self.nodes.servers.remember([str(header["server"]), *map(str, header.get("backups", ()))])
            if one in found:
                node_id = self.receiver.uncommitted[one.branch] = str(header["node"])
                self.nodes.add(node_id, str(header["server"]))
        self._settle_all()  # its error is a better one, if the messages of a damaged file are still at a node
        if damaged is not None:
            raise damaged
        self._settled = True

    def _settle_all(self) -> None:
        """Ends every branch that has a file. Raises NodeTimeout.

        A scale-down may move a branch from its node to one that was asked before: all nodes are asked twice. A branch
        that no node has then was committed: the answer was lost, or an operator did it.
        """
        deadline = time.monotonic() + self.options.login.node_timeout_s
        receiver = self.receiver
        while True:
            asked: set[str] = set()
            for node in TWICE * list(self.nodes.present().values()):
                try:
                    receiver.settle(node)
                    asked.add(node.node_id)
                except NodeUnavailable as error:
                    log.warning("node %s: %s", node.node_id, error)
                    self.nodes.drop(node)
            away = set(receiver.uncommitted.values()) - self.options.removed_nodes - asked
            if self.nodes.complete and not away:
                receiver.uncommitted.clear()
                return
            if time.monotonic() >= deadline:
                raise NodeTimeout(
                    f"node {', '.join(sorted(away))} is away for {self.options.login.node_timeout_s:g} s "
                    "(nodeTimeout), and a branch with received messages is to be committed there. If it is "
                    "gone for good, name its id in removedNodes"
                )
            time.sleep(RETRY_S)

    def _waiting(self) -> tuple[dict[str, WalNode], Backlog]:
        """Returns the nodes by id, and the number of messages in each of their queues."""
        while True:
            nodes = self.nodes.present()
            found: Backlog = {}
            for node_id, node in nodes.items():
                try:
                    for queue in self.names.at(node):
                        try:
                            found[node_id, queue] = node.waiting(queue)
                        except QueueMissing:
                            continue
                except NodeUnavailable as error:
                    log.warning("node %s: %s", node_id, error)
                    self.nodes.drop(node)
            if self.nodes.complete:
                return nodes, found
            time.sleep(RETRY_S)

    def _round(self, limits: BatchLimits) -> bool:
        """Receives a file from each queue with messages. Returns False if a node failed and nothing was received."""
        receiver = self.receiver
        nodes, waiting = self._waiting()
        if self._bounded and self._target is None:
            self._target = dict(waiting)
        if self._target is not None:
            waiting = {
                place: min(self._target.get(place, 0), count) for place, count in waiting.items()
            }
        elif self._delay.holds(sum(waiting.values())):
            return True
        shares = self._shares(waiting, limits)
        if not shares:
            return True
        before = receiver.folder.last
        room = BatchRoom(limits.bytes)
        first = {place: given for place, given in shares.items() if self._turns.waits(place)}
        failed = self._receive_all(nodes, first, room)
        failed |= self._receive_all(nodes, {place: shares[place] for place in shares.keys() - first.keys()}, room)
        if failed or receiver.uncommitted:
            self._settle_all()
        if receiver.folder.last == before and not failed and self._target is None:
            time.sleep(NOTHING_S)
        return not failed or receiver.folder.last > before

    def _receive_all(
        self, nodes: Mapping[str, WalNode], shares: Mapping[Place, FileLimits], room: BatchRoom
    ) -> bool:
        """Receives a file from each of these queues, with a thread for each node. Returns whether a node failed."""
        by_node: dict[str, dict[str, FileLimits]] = {}
        for (node, queue), given in sorted(shares.items()):
            by_node.setdefault(node, {})[queue] = given
        if not by_node:
            return False
        with ThreadPoolExecutor(len(by_node)) as pool:
            outcomes = {
                node: pool.submit(self._receive, nodes[node], given, room) for node, given in by_node.items()
            }
        failed = False
        for node, outcome in outcomes.items():
            error = outcome.exception()
            if isinstance(error, NodeUnavailable):
                failed = True
                log.warning("node %s: %s", node, error)
                self.nodes.drop(nodes[node])
            else:
                outcome.result()
        return failed

    def _receive(self, node: WalNode, shares: Mapping[str, FileLimits], room: BatchRoom) -> None:
        """Receives a file from each of these queues of a node, one after the other. Called in a thread of the node."""
        for queue, given in shares.items():
            place = (node.node_id, queue)
            try:
                count = None if room.full else self.receiver.receive(node, queue, given, room)
            except QueueMissing:  # deleted meanwhile, by itself or by an operator
                count = 0
            if count is None:
                self._turns.wait(place)
                continue
            self._turns.serve(place)
            if self._target is not None:
                self._target[place] = self._target[place] - count if count else 0

    @staticmethod
    def _shares(waiting: Backlog, limits: BatchLimits) -> dict[Place, FileLimits]:
        """Distributes the limits by the backlogs."""
        given = share(limits.messages or sum(waiting.values()), waiting)
        used = {place: count for place, count in given.items() if count > 0}
        size = FILE_BYTES if limits.bytes is None else max(1, limits.bytes // max(1, len(used)))
        return {
            place: FileLimits(min(count, FILE_MESSAGES), min(size, FILE_BYTES)) for place, count in used.items()
        }

    def _lost(self, why: str) -> None:
        lose(self.options.fail_on_data_loss, why)
