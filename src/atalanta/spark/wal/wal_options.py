"""The checks of options that a node without the log view cannot follow."""

from __future__ import annotations

from atalanta.spark.errors import OptionError
from atalanta.spark.options import DEAD_LETTER, EARLIEST, LATEST, ReadOptions, Start


def check_stream(options: ReadOptions) -> None:
    """Raises OptionError if a stream in mode wal cannot follow the options."""
    if options.wal_location is None:
        raise OptionError(
            "option walLocation is missing: sourceMode=wal (nodes without the log view, such as a real "
            "Artemis) needs a folder for received messages, beside the checkpoint: a path that the driver and "
            "all workers share, or a URI (webhdfs://, hdfs://, s3://, gs://, abfss://)"
        )
    if options.undecodable == DEAD_LETTER:
        raise OptionError(
            "undecodable=dead-letter needs the log view, which a real Artemis does not have: use undecodable=error, "
            "and write the rows with an error to an address"
        )
    if options.retention is not None:
        raise OptionError("option retention needs the log view, which a real Artemis does not have")
    check_batch(options)


def check_batch(options: ReadOptions) -> None:
    """Raises OptionError if a read from nodes without the log view cannot follow the options."""
    if options.starting != Start(EARLIEST) or options.ending != Start(LATEST):
        raise OptionError(
            "startingOffsets and endingOffsets need the log view: nodes without it (a real Artemis) are read "
            "from the first message to the last. Leave the options away; to skip messages use a selector, which "
            "leaves them in the queue"
        )
    if options.max_partition_messages is not None:
        raise OptionError(
            "option maxRecordsPerPartition needs the log view, which a real Artemis does not have: there a task reads "
            "a file of a stream (maxOffsetsPerTrigger limits the batch), or a queue of one node"
        )
    if options.starting_times or options.ending_times:
        raise OptionError(
            "options startingTimestamp and endingTimestamp need the log view, which a real Artemis does not have: use "
            "a selector (AMQTimestamp >= …), which leaves the other messages in the queue"
        )
