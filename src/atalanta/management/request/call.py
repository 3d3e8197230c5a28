"""A management request in progress, and the tables of attributes and operations.

A table maps a name to methods of a control (management/controls) with the types of their parameters; objects are
never searched by name. An overload is chosen like in ManagementServiceImpl.invokeOperation: by name, number of
parameters and convertible types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.message import Message

# Parameter types, one letter each: s String, i int, l long, d double, b boolean, S I L B the same or null,
# a an array, m an object. A String may always be null in Java: `s` here must be given, `S` need not.
INTEGERS: Final = "ilIL"
INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1


class Later:
    """The result of an operation whose reply follows later (see management/request/jobs.py)."""


LATER: Final = Later()


class Call:
    """A request. `session` is the caller's, None inside the node. `resource` is the whole name of the resource.

    `name` is the resource's name without its kind, `operation` what is asked of it. The control of a queue, address or
    divert sets the object. An operation calls `command.begin_change` when it has checked everything.
    """

    def __init__(
        self, now: int, request: Message, session: Session | None, command: CurrentCommand
    ) -> None:
        self.command = command
        self.now: int = now
        self.request = request
        self.session = session
        self.resource: str = ""
        self.name: str = ""
        self.operation: str = ""
        self.given_queue: Queue | None = None
        self.given_address: Address | None = None
        self.given_divert: Divert | None = None

    @property
    def queue(self) -> Queue:
        queue = self.given_queue
        if queue is None:
            raise BrokerError(ILLEGAL_STATE, f"{self.resource} is not a queue")
        return queue

    @property
    def address(self) -> Address:
        address = self.given_address
        if address is None:
            raise BrokerError(ILLEGAL_STATE, f"{self.resource} is not an address")
        return address

    @property
    def divert(self) -> Divert:
        divert = self.given_divert
        if divert is None:
            raise BrokerError(ILLEGAL_STATE, f"{self.resource} is not a divert")
        return divert

    @property
    def connection(self) -> int:
        """Returns the connection of the caller, -1 inside the node."""
        return -1 if self.session is None else self.session.client.connection


Parameters = list[object]
Attribute = Callable[[Call], object]
Attributes = dict[str, Attribute]
Operation = Callable[[Call, Parameters], object]
Operations = dict[str, list[tuple[str, Operation]]]


def find_operation(table: Operations, name: str, given: Parameters) -> Operation | None:
    """Returns the first overload that accepts these parameters. Numbers are converted in place."""
    for types, operation in table.get(name, []):
        if len(types) != len(given):
            continue
        converted = [convert(kind, value) for kind, value in zip(types, given, strict=True)]
        if not any(value is MISMATCH for value in converted):
            given[:] = converted
            return operation
    return None


def merged(*tables: Operations) -> Operations:
    """Merges several tables into one; overloads of the same name are joined."""
    found: Operations = {}
    for table in tables:
        for name, overloads in table.items():
            found.setdefault(name, []).extend(overloads)
    return found


class Mismatch:
    """The type of MISMATCH, a parameter that cannot be converted."""


MISMATCH: Final = Mismatch()


def convert(kind: str, value: object) -> object:
    """Converts a parameter like JsonUtil.convertJsonValue: only numbers change their type."""
    if value is None:
        return None if kind in "SILBam" else MISMATCH
    if isinstance(value, bool):
        return value if kind in "bB" else MISMATCH
    if isinstance(value, int | float):
        return _converted_number(kind, value)
    if isinstance(value, str):
        return value if kind in "sS" else MISMATCH
    if isinstance(value, list):
        return value if kind == "a" else MISMATCH
    return value if kind == "m" else MISMATCH


def _converted_number(kind: str, value: int | float) -> object:
    """Converts a number. Returns MISMATCH if it is out of range: JSON has no limits, Python reads NaN and Infinity."""
    if kind not in INTEGERS and kind != "d":
        return MISMATCH
    try:
        if kind == "d":
            return float(value)
        number = int(value)
    except (OverflowError, ValueError):
        return MISMATCH
    if kind in "iI":
        return number if INT_MIN <= number <= INT_MAX else MISMATCH
    return number if LONG_MIN <= number <= LONG_MAX else MISMATCH


def no_operation(name: str, given: Parameters) -> BrokerError:
    return BrokerError(ILLEGAL_STATE, f"AMQ229069: no operation {name}/{len(given)}")


def no_resource(name: str) -> BrokerError:
    return BrokerError(ILLEGAL_STATE, f"AMQ229067: Cannot find resource with name {name}")


def no_attribute(name: str) -> BrokerError:
    """Returns the client's error. Artemis logs the cause (AMQ229068: no getter method) and does not send it."""
    return BrokerError(ILLEGAL_STATE, f"Problem while retrieving attribute {name}")


def text_of(given: Parameters, index: int) -> str:
    """Returns a parameter of type `s`, which the table has checked."""
    value = given[index]
    assert isinstance(value, str)
    return value


def optional_text(given: Parameters, index: int) -> str | None:
    value = given[index]
    assert value is None or isinstance(value, str)
    return value


def number_of(given: Parameters, index: int) -> int:
    value = given[index]
    assert isinstance(value, int)
    return value


def flag_of(given: Parameters, index: int) -> bool:
    return given[index] is True
