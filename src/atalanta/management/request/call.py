"""One management request under way, and the tables of what can be asked.

A table maps a name to functions with the types of their parameters; nothing is looked up by name in objects. The
choice among overloads follows ManagementServiceImpl.invokeOperation: by name, number and convertible types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.divert import Divert
    from atalanta.kernel.sessions.session import Session
    from atalanta.management.management import Management
    from atalanta.message.message import Message

# Parameter types, one letter each: s String, i int, l long, d double, b boolean, S I L B the same or null,
# a an array, m an object. A String may always be null in Java: `s` here must be given, `S` need not.
INTEGERS: Final = "ilIL"
INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MIN: Final = -(1 << 63)
LONG_MAX: Final = (1 << 63) - 1


class Later:
    """What an operation returns when its reply follows (see management/request/jobs.py)."""


LATER: Final = Later()


class Call:
    """`queue` or `address` is set for such a resource; `session` is who asks, None inside the node."""

    def __init__(
        self, management: Management, now: int, request: Message, session: Session | None
    ) -> None:
        self.management: Management = management
        self.broker: Broker = management.broker
        self.now: int = now
        self.request = request
        self.session = session
        self.resource: str = ""
        self.given_queue: Queue | None = None
        self.given_address: Address | None = None
        self.given_divert: Divert | None = None

    @property
    def queue(self) -> Queue:
        queue = self.given_queue
        if queue is None:
            raise BrokerError(ILLEGAL_STATE, f"{self.resource} is no queue")
        return queue

    @property
    def address(self) -> Address:
        address = self.given_address
        if address is None:
            raise BrokerError(ILLEGAL_STATE, f"{self.resource} is no address")
        return address

    @property
    def divert(self) -> Divert:
        divert = self.given_divert
        if divert is None:
            raise BrokerError(ILLEGAL_STATE, f"{self.resource} is no divert")
        return divert


Parameters = list[object]
Attribute = Callable[[Call], object]
Operation = Callable[[Call, Parameters], object]
Operations = dict[str, list[tuple[str, Operation]]]


def find_operation(table: Operations, name: str, given: Parameters) -> Operation | None:
    """The first overload that takes these parameters; numbers are converted in place."""
    for types, operation in table.get(name, []):
        if len(types) != len(given):
            continue
        converted = [convert(kind, value) for kind, value in zip(types, given, strict=True)]
        if not any(value is MISMATCH for value in converted):
            given[:] = converted
            return operation
    return None


def merged(*tables: Operations) -> Operations:
    """One table of several; overloads of the same name are joined."""
    found: Operations = {}
    for table in tables:
        for name, overloads in table.items():
            found.setdefault(name, []).extend(overloads)
    return found


class Mismatch:
    """A parameter that does not fit."""


MISMATCH: Final = Mismatch()


def convert(kind: str, value: object) -> object:
    """As JsonUtil.convertJsonValue: numbers become the number wanted, nothing else changes its type."""
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
    """MISMATCH for what the wanted type cannot hold: JSON knows no limits, and Python's reads NaN and Infinity."""
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
    """The cause (AMQ229068: no getter method) stays in Artemis' log; this is what the client sees."""
    return BrokerError(ILLEGAL_STATE, f"Problem while retrieving attribute {name}")


def text_of(given: Parameters, index: int) -> str:
    """A parameter of type `s`, which the table has checked."""
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
