"""The streaming source: planning, leases and acknowledgements, in the driver of the query.

Spark passes as `start` of `latestOffset` only offsets whose batch is in its commit log (or the initial one), while
`commit` is never called for the last batch. Therefore every message up to `start` is acknowledged in `latestOffset`. If
there is more to read, the nodes acknowledge while Spark writes its plan. The batch waits for them, since a fenced query
must not begin another batch. With asynchronous progress tracking the commit log is behind; then `commit` of `start`
does not come before `partitions`, and the query is refused (see progress.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from atalanta.client import Position
from atalanta.spark.environment.compatibility import (
    ReadLimit,
    SupportsTriggerAvailableNow,
)
from atalanta.spark.errors import WITHOUT_THEM, LeaseTaken, SparkSourceError, lose
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.options import ReadOptions
from atalanta.spark.read.batch_delay import BatchDelay
from atalanta.spark.read.batch_plan import (
    BatchLimits,
    Stretch,
    backlog_of,
    ends,
    limits_of,
    refuse_single_batch,
)
from atalanta.spark.read.batch_room import BatchRoom, PlaceOrder
from atalanta.spark.read.leases import Leases
from atalanta.spark.read.members import Located, PolledMembers
from atalanta.spark.read.offsets import NodeOffset, Offset, now_ms, ranges, spans, split_all
from atalanta.spark.read.partition_reader import RangePartition, RangeReader
from atalanta.spark.read.progress import Progress, ProgressOrder
from atalanta.spark.read.shared_lease import SharedLease
from atalanta.spark.read.starting_offsets import check_names, check_skipped, initial_sequence
from atalanta.spark.read.termination import ignore_termination, unwind_at_termination


class AtalantaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader. Tasks receive a pickled copy without connections and leases, which only the driver has."""

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        connect: Connector,
        load: str = "",
        shared: SharedLease | None = None,
    ) -> None:
        self.options = options
        self.schema = schema
        self.connect = connect
        self._shared = shared or SharedLease(load)
        self._order = ProgressOrder()
        self._planned: Offset | None = None  # the end of the last batch
        self._members: PolledMembers | None = None
        self._leases: Leases | None = None
        # Node -> (incarnation, last sequence), the limit of Trigger.AvailableNow. Empty until the leases are taken:
        # a first lease makes messages visible.
        self._target: dict[str, tuple[str, int]] | None = None
        self._initial: Offset | None = None
        self._acked: dict[str, tuple[str, int]] = {}
        self._background: Background | None = None
        self._progress = Progress(options)
        self._delay = BatchDelay(options)
        self._turns = PlaceOrder()
        self._room: BatchRoom | None = None  # of a batch of several queues

    # -- calls of Spark in the driver ---------------------------------------------------------------
    def initialOffset(self) -> dict[str, Any]:
        """Returns the initial offset. Every server of the options must answer: later its rows would be too late.

        Spark calls this twice and compares nothing, so the first answer is kept.
        """
        return self.record_start(self.choose_start())

    def choose_start(self) -> Offset:
        """Returns the initial offset and takes the leases. Nothing is recorded: a start that fails leaves no trace."""
        if self._initial is not None:
            return self._initial
        self._begin()
        found = self.members.wait_for({}, True, self.options.position_cache_s)
        if not found:
            raise self.members.no_queue()
        check_names(self.options, self.members)
        found = self._leased(found)
        entries = {}
        for node, located in found.items():
            incarnation = located.position.incarnation
            new = not self.leases.had_begun(node, incarnation)
            choose = partial(initial_sequence, self.options, located, new)
            sequence = self.members.call(node, choose)
            self.members.call(node, partial(check_skipped, self.options, located, sequence))
            entries[node] = NodeOffset(incarnation, sequence, located.server, backups=located.backups)
        return Offset(self.options.queue, entries)

    def record_start(self, start: Offset) -> dict[str, Any]:
        """Records the initial offset at the nodes, durably: a query without its checkpoint begins here again."""
        if self._initial is None:
            required = {node: entry.server for node, entry in start.entries.items()}
            found = self.members.wait_for(required, False, self.options.position_cache_s)
            for node, entry in start.entries.items():
                if entry.sequence < found[node].position.acked_through:
                    self.leases.replay(node, entry.incarnation, entry.sequence)
            self.members.poll(0.0)  # after a replay a position is another
            self._initial = start
            self._order.begin(start.to_json())
            self._acknowledge(start)
        return self._initial.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        self._shared.join()  # Spark asks every source of a query before it asks one for an offset
        return limits_of(self.options).read_limit()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit, certain: bool = True) -> dict[str, Any]:
        """Returns the end of the next batch. OptionError with Trigger.Once.

        `certain`: Spark never repeats the batch before, so it may be acknowledged (see older_stream_reader.py).
        """
        refuse_single_batch(limit)
        self._begin()
        self._shared.step()
        return self.next_offset(start, limit, certain, False)

    def next_offset(
        self, start: dict[str, Any], limit: ReadLimit, certain: bool, held: bool
    ) -> dict[str, Any]:
        """Returns the end of this queue's next batch, as one of several in a plan; its start if the batch is `held`."""
        self._begin()
        before = Offset.from_json(start, self.options.queue)
        self.leases.check()
        self._acknowledging.settle()
        found = self._present(before)
        starts = {node: entry.sequence for node, entry in before.entries.items()}
        self._check_copy(starts, before, found)
        found = self._leased(found)
        if self._target is not None and not self._target:
            self._target = {
                node: (located.position.incarnation, located.position.last) for node, located in found.items()
            }
        stretches = self._stretches(before, found)
        if self._target is None and self._delay.holds(backlog_of(stretches)):
            held = True
        self._planned = before if held else self._end(before, found, stretches, limit)
        self._progress.plan(self._planned)
        end = self._planned.to_json()
        if end == start:
            if certain:
                self._acknowledge(before)  # a run that ends has acknowledged every batch
        elif certain and self._order.plan(start):
            self._acknowledging.start(partial(self._acknowledge, before))
        return end

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Returns the latest offset of the nodes that answer now and figures for the progress (progress.py)."""
        found = self.members.poll(max(1.0, self.options.position_cache_s))
        if not found:
            return None
        return self._progress.report(found, self._leases)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plans the tasks. After a restart Spark begins here with the unfinished batch, so leases are taken first."""
        self._begin()
        self._order.check()
        self._acknowledging.settle()
        queue = self.options.queue
        self._planned = Offset.from_json(end, queue)
        self._progress.plan(self._planned)
        wholes = ranges(Offset.from_json(start, queue), self._planned)
        self.leases.check()
        unleased = {
            part.node_id: part.server
            for part in wholes
            if (part.node_id, part.incarnation) not in self.leases.epochs
        }
        if unleased:
            self._remember(self._planned)
            found = self.members.wait_for(unleased, False, self.options.position_cache_s)
            self._check_copy({part.node_id: part.start for part in wholes}, self._planned, found)
            self.leases.take({node: found[node] for node in unleased})
        return [
            RangePartition(part, self.leases.hold(part.node_id, part.incarnation))
            for part in split_all(wholes, self.options.min_partitions, self.options.max_partition_messages)
        ]

    def commit(self, end: dict[str, Any]) -> None:
        """Stops a query that lost its lease. Acknowledges only the first batch of this process (see above)."""
        if self._leases is not None:
            self.leases.check()
        if self._order.commit(end):
            before = Offset.from_json(end, self.options.queue)
            self._acknowledging.start(partial(self._acknowledge, before))

    def acknowledge(self, end: dict[str, Any]) -> None:
        """Acknowledges every batch up to `end`, which Spark never repeats (see older_stream_reader.py)."""
        self._acknowledging.settle()
        self._acknowledge(Offset.from_json(end, self.options.queue))

    def stop(self) -> None:
        """Closes the reader: after an error, at the end of the query (termination.py) and of Spark."""
        self.end_leases()
        self.close()

    # -- calls of Spark in a task -------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, RangePartition):
            raise TypeError(f"{partition!r} is not a partition of this source")
        return RangeReader(self.options, self.schema, self.connect, partition).batches()

    # -- calls of the reader of several queues --------------------------------------------------------
    def end_leases(self) -> None:
        """Releases the leases that no unfinished batch needs."""
        ignore_termination()
        if self._leases is not None:
            self._leases.stop(self._unfinished())

    def close(self) -> None:
        """Closes the connections."""
        if self._members is not None:
            self._members.close()

    def set_limits(self, limits: BatchLimits, room: BatchRoom) -> None:
        """Sets the limits of this queue's part of the next batch, in the place of the options', and its room."""
        self.options = replace(self.options, max_messages=limits.messages, max_bytes=limits.bytes)
        self._room = room

    def set_min_partitions(self, count: int) -> None:
        """Sets the number of tasks of the next batch, in the place of the option's."""
        self.options = replace(self.options, min_partitions=count)

    # -- members and leases -----------------------------------------------------------------------
    def _begin(self) -> None:
        unwind_at_termination()
        self._shared.begin()

    def _unfinished(self) -> set[str]:
        """Returns the nodes with messages of a batch that is planned and not acknowledged."""
        if self._planned is None:  # Spark may have a batch to repeat, of a group that had begun
            begun = {node for node, incarnation in self.leases.epochs if self.leases.had_begun(node, incarnation)}
            return {node for node in begun if not self._is_empty(node)}
        return {
            node
            for node, entry in self._planned.entries.items()
            if self._acked.get(node) != (entry.incarnation, entry.sequence) and not self._reached(node, entry)
        }

    def _position(self, node: str) -> Position | None:
        """Returns the queue's position at the node now; None if it is away: then its lease stays."""
        gateway = self.members.gateway(node)
        try:
            return None if gateway is None else gateway.position(self.options.queue)
        except SparkSourceError:
            return None

    def _is_empty(self, node: str) -> bool:
        """Returns whether the node's queue has nothing that a batch could still need."""
        position = self._position(node)
        return position is not None and position.messages == 0 and position.acked_through >= position.last

    def _reached(self, node: str, entry: NodeOffset) -> bool:
        """Returns whether the node has acknowledged all of the entry: SIGTERM may have come before its answer."""
        position = self._position(node)
        return (
            position is not None
            and position.incarnation == entry.incarnation
            and position.acked_through >= entry.sequence
        )

    @property
    def members(self) -> PolledMembers:
        if self._members is None:
            self._members = PolledMembers(self.options, self.connect)
        return self._members

    @property
    def leases(self) -> Leases:
        if self._leases is None:
            self._leases = Leases(self.options, self.members, self._shared)
        return self._leases

    @property
    def _acknowledging(self) -> Background:
        if self._background is None:
            self._background = Background()
        return self._background

    def _leased(self, found: dict[str, Located]) -> dict[str, Located]:
        """Returns the positions with the leases taken: a first lease makes messages visible."""
        if not self.leases.take(found):
            return found
        again = self.members.wait_for({node: each.server for node, each in found.items()}, False, 0.0)
        return {node: again[node] for node in found}

    def _remember(self, offset: Offset) -> None:
        """Adds the servers that an offset names: its node may have gone over to a backup since."""
        for entry in offset.entries.values():
            self.members.servers.remember((entry.server, *entry.backups))

    def _present(self, before: Offset) -> dict[str, Located]:
        """Returns positions, once every node of the offsets answers."""
        self._remember(before)
        removed = self.options.removed_nodes
        required = {
            node: entry.server for node, entry in before.entries.items() if node not in removed
        }
        found = self.members.wait_for(required, False, self.options.position_cache_s)
        if not found:
            # Every node of the offsets was removed: at least one other must exist.
            found = self.members.wait_for({}, True, 0.0)
        return {node: located for node, located in found.items() if node not in removed}

    def _acknowledge(self, before: Offset) -> None:
        """Acknowledges every message up to `before`: the queues may delete them."""
        for node, entry in before.entries.items():
            reached = (entry.incarnation, entry.sequence)
            key = (node, entry.incarnation)
            if self._acked.get(node) == reached or key not in self.leases.epochs:
                continue
            epoch = self.leases.epoch(node, entry.incarnation)
            end = self._shared.acknowledge(node, reached)
            try:
                if end is not None:
                    self.members.call(node, partial(acknowledge, self.options, entry, epoch, end))
            except LeaseTaken as error:
                raise self.leases.fenced(error) from error
            self._acked[node] = reached

    # -- planning ---------------------------------------------------------------------------------
    def _end(
        self, before: Offset, found: Mapping[str, Located], stretches: Mapping[str, Stretch], limit: ReadLimit
    ) -> Offset:
        limits = limits_of(self.options).within(limit)
        room = self._room or BatchRoom(limits.bytes)
        planned = ends(self.members, self.options.queue, stretches, limits, room, self._turns)
        planned_at_ms = now_ms()
        entries = dict(before.entries)
        for node, stretch in stretches.items():
            end = planned[node]
            known = before.entries.get(node)
            fresh = known is None or known.incarnation != stretch.incarnation
            if end > stretch.start:
                self._check_lost(node, stretch, end)
            elif not fresh:
                continue
            at = found[node]
            time_ms = planned_at_ms if end > stretch.start else None
            entries[node] = NodeOffset(stretch.incarnation, end, at.server, stretch.start, time_ms, at.backups)
        return Offset(self.options.queue, entries)

    def _stretches(self, before: Offset, found: Mapping[str, Located]) -> dict[str, Stretch]:
        """Returns the readable range of each node, without any limit."""
        result = {}
        for node, located in found.items():
            position = located.position
            entry = before.entries.get(node)
            if entry is None:
                start = max(position.first - 1, position.acked_through)
            elif entry.incarnation == position.incarnation:
                start = max(entry.sequence, position.acked_through)
            else:
                self._lost(node, position.incarnation, "the queue was deleted and created again")
                start = max(position.first - 1, position.acked_through)
            last = position.last
            if self._target is not None:
                if node not in self._target:
                    if entry is None:
                        continue  # added after the trigger: the next run reads it
                    # The node was away at the start of the run: its current position is the target.
                    self._target[node] = (position.incarnation, last)
                incarnation, target = self._target[node]
                last = min(last, target) if incarnation == position.incarnation else last
            result[node] = Stretch(position.incarnation, start, last, mean_bytes(located))
        return result

    def _check_lost(self, node: str, stretch: Stretch, end: int) -> None:
        lost = self.members.call(
            node,
            lambda gateway: gateway.lost_ranges(
                self.options.queue, stretch.incarnation, stretch.start, end
            ),
        )
        if lost:
            self._lost(node, stretch.incarnation, f"messages left the queue unread: {spans(lost)}")

    def _check_copy(
        self, starts: Mapping[str, int], offset: Offset, found: Mapping[str, Located]
    ) -> None:
        """Raises DataLost for a checkpoint that is older than the queues, before its query takes the leases over."""
        for node, start in starts.items():
            position = found[node].position if node in found else None
            if position is None or offset.entries[node].incarnation != position.incarnation:
                continue
            if start < position.acked_through:
                self._lost(
                    node,
                    position.incarnation,
                    f"everything up to {position.acked_through} was acknowledged, but this checkpoint is at {start}: "
                    "it is a copy or a backup, and the group has gone on",
                    "Start the query of the newest checkpoint, or use another group and queue",
                )

    def _lost(self, node: str, incarnation: str, why: str, remedy: str = WITHOUT_THEM) -> None:
        """Raises LeaseTaken if another query has taken over, else DataLost unless the query may lose messages."""
        self.leases.verify(node, incarnation)
        lose(self.options.fail_on_data_loss, f"queue {self.options.queue} at node {node}: {why}", remedy)


def acknowledge(
    options: ReadOptions, entry: NodeOffset, epoch: int, end: int, gateway: Gateway
) -> int:
    return gateway.ack_through(options.queue, entry.incarnation, options.group, epoch, end)


def mean_bytes(located: Located) -> int:
    position = located.position
    return max(1, position.bytes // max(1, position.messages))


class Background:
    """A thread for one action at a time."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self, action: Callable[[], None]) -> None:
        """Starts an action and returns. The previous one must have been settled."""
        thread = threading.Thread(target=self._run, args=(action,), daemon=True)
        thread.name = "atalanta-acknowledging"
        self._thread = thread
        thread.start()

    def settle(self) -> None:
        """Waits for the end of the action and raises its error, from then on at each call."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # raised by settle
            self._error = error
