"""Errors of the Spark source and sink."""

from __future__ import annotations

import logging
from collections.abc import Iterable

log = logging.getLogger("atalanta.spark")


class SparkSourceError(Exception):
    """The base class. The error stops the query; its text is for the user."""


class OptionError(SparkSourceError):
    """An unknown or missing option, or an invalid value."""


class GatewayError(SparkSourceError):
    """A request refused by a node; `code` is that of the CORE exception (0 if there is none)."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class NodeUnavailable(GatewayError):
    """A node that does not answer now. A retry may succeed."""


class LoginRefused(GatewayError):
    """A refused user, password or permission. A retry is useless."""


class QueueMissing(GatewayError):
    """A queue that the node does not have."""


class DuplicateRow(GatewayError):
    """A row whose `duplicate_id` the address has seen before, or that another row of its branch has."""


class LeaseTaken(GatewayError):
    """A lease that another query of this group holds now."""


class LeaseEnded(LeaseTaken):
    """A lease that a user has ended by management."""


def no_queue(servers: Iterable[str], queue: str, near: Iterable[str] = ()) -> SparkSourceError:
    """Returns the error for a queue that is at none of the nodes; `near`: the names most like it."""
    hint = " or ".join(dict.fromkeys(near))
    asked = f": did you mean {hint}?" if hint else ""
    return SparkSourceError(f"no node of {', '.join(servers)} has a queue {queue}{asked}")


class QueueRecreated(GatewayError):
    """A queue that was deleted and created again."""


class RangeIncomplete(GatewayError):
    """A range of which a part left the queue."""


class LogViewMissing(GatewayError):
    """A node without the log view (a real Artemis)."""


class DataLost(SparkSourceError):
    """Lost messages of a planned range while `failOnDataLoss` is true."""


WITHOUT_THEM = "Set failOnDataLoss=false to continue without them"


def lose(fail: bool, text: str, remedy: str = WITHOUT_THEM) -> None:
    """Raises DataLost if the query shall `fail` (failOnDataLoss), else logs a warning."""
    if fail:
        raise DataLost(f"{text}. {remedy}")
    log.warning("%s; going on (failOnDataLoss=false)", text)


class BatchDecided(SparkSourceError):
    """A batch that is older than the last one that this query has written."""


class BranchLost(SparkSourceError):
    """A prepared branch of a decided batch that its node does not have."""


class Undecodable(SparkSourceError):
    """A message that cannot be a row: its body is too large or damaged, or cannot be converted."""


def body_too_large(message: int, queue: str, node_id: str, why: str) -> Undecodable:
    """Returns the error for a body above maxBodyBytes: a row without it would be acknowledged like the others."""
    return Undecodable(
        f"message {message} of queue {queue} at node {node_id}: {why} (maxBodyBytes). Raise maxBodyBytes, or set "
        "undecodable=error to get a row without the body: a stream then removes the message like the others"
    )


class NodeTimeout(SparkSourceError):
    """A node that was away for longer than `nodeTimeout`."""


class DriverGone(SparkSourceError):
    """The end of the process that this one works for: no process waits for an answer."""
