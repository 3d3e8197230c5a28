"""The sink: the tasks of a batch prepare their rows, and the driver commits the batch as one unit.

See batch_commit.py. A batch job has no id that survives it: a job that is run again sends again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from atalanta.spark.environment.compatibility import DataSourceStreamArrowWriter
from atalanta.spark.errors import DuplicateRow, SparkSourceError
from atalanta.spark.gateway.gateway import Connector, Gateway
from atalanta.spark.options import WriteOptions
from atalanta.spark.write.abandoned_branches import AbandonedBranches
from atalanta.spark.write.batch_commit import BatchCommit, Prepared
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.node_calls import NodeCalls
from atalanta.spark.write.rows import RowReader

log = logging.getLogger("atalanta.spark")

Messages = Sequence[WriterCommitMessage | None]


@dataclass
class Written(WriterCommitMessage):
    """The result of one task; `prepared` is None if it had no rows. `query` is in it since Spark's commit has none."""

    query: str
    messages: int
    prepared: Prepared | None


class PartitionWriter:
    """The writer of one task's rows. The rows stay in memory until the node has prepared them."""

    def __init__(self, options: WriteOptions, schema: StructType, connect: Connector) -> None:
        self.options = options
        self.connect = connect
        self.rows = RowReader(options, schema)

    def write(
        self, batches: Iterator[pa.RecordBatch], query: str, batch: int, partition: int
    ) -> Written:
        """Prepares the rows. Raises NodeTimeout if the node does not return. An empty partition sends nothing."""
        messages = [message for one in batches for message in self.rows.messages(one)]
        if not messages:
            return Written(query, 0, None)
        with NodeCalls(self.options.login, self.connect) as nodes:
            # All values of a key belong into the queue of one node: another cut would leave old ones elsewhere.
            by_key = bool(self.options.key_columns)
            server = self.options.login.servers[0] if by_key else nodes.server_of(query, partition)

            def prepare(node: Gateway) -> BranchName:
                # Each try has a branch of its own: an earlier one may be prepared although its answer was lost.
                branch = BranchName.new(query, batch, partition, self.options.login.servers)
                node.prepare(messages, str(branch))
                return branch

            try:
                branch = nodes.call(server, prepare)
            except DuplicateRow as error:
                if not is_decided(BatchCommit(self.options.login, nodes), query, batch, error):
                    raise
                log.warning("batch %s of query %s is decided: its rows are there already", batch, query)
                return Written(query, 0, None)
            return Written(query, len(messages), Prepared(server, branch, tuple(nodes.servers.others(server))))

    def commit(self, query: str, batch: int, messages: Messages) -> None:
        """Commits the branches of a streaming batch."""
        with NodeCalls(self.options.login, self.connect) as nodes:
            prepared = prepared_of(messages)
            others = BatchCommit(self.options.login, nodes).decide_and_finish(query, batch, prepared)
            AbandonedBranches(self.options.login.servers, nodes).end(others)

    def commit_job(self, messages: Messages) -> None:
        """Commits the branches of a batch job."""
        with NodeCalls(self.options.login, self.connect) as nodes:
            BatchCommit(self.options.login, nodes).finish(prepared_of(messages), True)

    def abort(self, messages: Messages) -> None:
        """Rolls back the branches of a batch or job that Spark has given up."""
        with NodeCalls(self.options.login, self.connect) as nodes:
            BatchCommit(self.options.login, nodes).roll_back(prepared_of(messages))


def is_decided(commit: BatchCommit, query: str, batch: int, refused: DuplicateRow) -> bool:
    """Returns True if a run of the batch was decided before. An error on the way is a note on the first one."""
    try:
        return commit.is_decided(query, batch)
    except SparkSourceError as error:
        refused.add_note(f"whether the batch is decided is unknown: {error}")
        return False


def prepared_of(messages: Messages) -> list[Prepared]:
    """Returns the branches that the tasks have prepared."""
    written = [one.prepared for one in messages if isinstance(one, Written)]
    return [one for one in written if one is not None]


def with_pairs(options: WriteOptions, connect: Connector) -> WriteOptions:
    """Returns the options with the pairs that a topology shows now, for the tasks: after a failover none may show them.
    """
    with NodeCalls(options.login, connect) as nodes:
        return replace(options, login=replace(options.login, groups=nodes.pairs()))


class AtalantaStreamWriter(DataSourceStreamArrowWriter):
    """The writer of streaming queries: a batch arrives once, however often and in whatever partitions it is written."""

    def __init__(self, options: WriteOptions, schema: StructType, connect: Connector) -> None:
        self.writer = PartitionWriter(with_pairs(options, connect), schema, connect)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = task_context()
        query = context.getLocalProperty("sql.streaming.queryId")
        batch = context.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise SparkSourceError(
                "Spark names neither query nor batch: is this a streaming write?"
            )
        return self.writer.write(iterator, query, int(batch), context.partitionId())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commits the batch, also one without rows: an earlier run of it may have rows, decided or not."""
        written = next((one for one in messages if isinstance(one, Written)), None)
        if written is not None:
            self.writer.commit(written.query, batchId, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Rolls the batch back after a task failed. Spark calls this after a failed commit, too.

        Then the decision may be durable, so its branches stay for the repeat of the batch.
        """
        if None in messages:
            self.writer.abort(messages)


class AtalantaBatchWriter(DataSourceArrowWriter):
    """The writer of batch jobs: a repeated task is not sent again, a repeated job is."""

    def __init__(self, options: WriteOptions, schema: StructType, connect: Connector) -> None:
        self.writer = PartitionWriter(with_pairs(options, connect), schema, connect)
        # Created once in the driver and pickled to the tasks.
        self.run = f"batch-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.writer.write(iterator, self.run, 0, task_context().partitionId())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.commit_job(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.writer.abort(messages)


def task_context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise SparkSourceError("the sink writes in Spark tasks only")
    return context
