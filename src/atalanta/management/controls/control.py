"""The base of all controls: one kind of resource, with its tables of attributes and operations."""

from __future__ import annotations

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Attributes, Call, Operation, Operations, Parameters


class Control:
    """The attributes and operations of one kind of resource, such as `queue.NAME`."""

    def __init__(self, attributes: Attributes, operations: Operations) -> None:
        self.attributes = attributes
        self.operations = operations

    def select(self, call: Call) -> bool:
        """Selects the resource `call.name` for the call. Returns False if it does not exist."""
        raise NotImplementedError


def no_work(call: Call, given: Parameters) -> object:
    """Returns without work: the broker has done already what Artemis does on request."""
    return None


def refuse(why: str) -> Operation:
    """Returns a known operation that this broker cannot do."""

    def refused(call: Call, given: Parameters) -> object:
        raise BrokerError(ILLEGAL_STATE, why)

    return refused
