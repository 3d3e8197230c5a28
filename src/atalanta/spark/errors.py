"""What a node, or the way to it, may answer to the Spark source and sink."""

from __future__ import annotations


class SparkSourceError(Exception):
    """Stops the query; its text is for the user."""


class OptionError(SparkSourceError):
    """An option that is unknown, missing or has a value that does not fit."""


class GatewayError(SparkSourceError):
    """A request a node refused; `code` is that of the CORE exception (0 if there is none)."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class NodeUnavailable(GatewayError):
    """The node does not answer (for now): worth another try."""


class LoginRefused(GatewayError):
    """User, password or permission: not worth another try."""


class QueueMissing(GatewayError):
    """The node has no such queue."""


class Fenced(GatewayError):
    """Another query holds the lease of this group."""


class IncarnationChanged(GatewayError):
    """The queue was deleted and made anew since."""


class RangeLost(GatewayError):
    """Part of the range left the queue."""


class LogViewUnsupported(GatewayError):
    """The node does not speak the log view (a real Artemis)."""


class DataLost(SparkSourceError):
    """Messages of a planned range are gone and `failOnDataLoss` is true."""


class NodeTimeout(SparkSourceError):
    """A node stayed away for longer than `nodeTimeout`."""


class DriverGone(SparkSourceError):
    """The process this one works for has ended: nobody waits for an answer."""
