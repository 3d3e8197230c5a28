"""Changing calls of management: the newest calls that need the permission `edit`. Only in Atalanta.

An entry has what the node knows of the caller. The operator's address is what the caller says (a console, of the
browser before it): text for people, on which nothing depends.
"""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.management.request.call import Call, Operations, Parameters, number_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace

CALLS_MAX: Final = 1_000
TEXT_MAX: Final = 200
ADDRESS_MAX: Final = 64
REPEAT_NS: Final = 60_000_000_000  # equal calls within it are one entry with their number
OPERATOR_ADDRESS: Final = "_ATALANTA_OPERATOR_ADDRESS"  # the property of a request
# Operations of the broker whose first parameter names what is changed. No other parameter is kept: there are passwords
# and messages among them.
NAMED: Final = frozenset([
    "addAddressSettings", "addSecuritySettings", "addUser", "closeConnectionWithID", "closeConsumerWithID",
    "closeConnectionsForAddress", "closeConnectionsForUser", "closeConsumerConnectionsForAddress", "closeSessionWithID",
    "commitPreparedTransaction", "createAddress", "createQueue", "deleteAddress", "destroyBridge", "destroyDivert",
    "destroyQueue", "removeAddressSettings", "removeSecuritySettings", "removeUser", "resetUser",
    "rollbackPreparedTransaction", "updateAddress", "updateQueue",
])  # fmt: skip


class ChangingCall:
    """A call, or several alike. `why` is the reason of a refusal, "" for what was done or begun. Times are in ns."""

    def __init__(
        self, number: int, at: int, user: str, remote: str, operator: str, resource: str, operation: str, name: str,
        why: str,
    ) -> None:
        self.number = number
        self.first_at = at
        self.last_at = at
        self.count = 1
        self.user = user
        self.remote = remote
        self.operator = operator
        self.resource = resource
        self.operation = operation
        self.name = name
        self.why = why

    def is_like(self, other: ChangingCall) -> bool:
        """Returns whether both are the same thing, done again within a short time."""
        return (
            (self.user, self.remote, self.operator, self.resource, self.operation, self.name, self.why)
            == (other.user, other.remote, other.operator, other.resource, other.operation, other.name, other.why)
            and other.first_at - self.last_at < REPEAT_NS
        )

    def repeat(self, at: int) -> None:
        """Counts a call like it."""
        self.last_at = at
        self.count += 1


class ChangingCalls:
    """The newest calls of users; those of the node itself and of other members are not among them."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.kept: deque[ChangingCall] = deque(maxlen=CALLS_MAX)
        self.noted = 0
        self.operations: Operations = {"listChangingCalls": [("i", self.list_calls)]}

    def note(self, call: Call, given: Parameters, why: str) -> None:
        """Records a call by its session. `why` is the reason of a refusal."""
        session = call.session
        if session is None or session.identity.cluster:
            return
        operator = call.request.properties.get(OPERATOR_ADDRESS)
        made = ChangingCall(
            self.noted + 1,
            call.now,
            bounded(session.identity.user),
            bounded(session.client.remote),
            bounded(operator, ADDRESS_MAX) if isinstance(operator, str) else "",
            bounded(call.resource),
            bounded(call.operation),
            bounded(name_of(call.operation, given)),
            bounded(why),
        )
        newest = self.kept[-1] if self.kept else None
        if newest is not None and newest.is_like(made):
            newest.repeat(call.now)
            return
        self.noted += 1
        self.kept.append(made)
        self.trace.event("management_called", {
            "user": made.user,
            "remote": made.remote,
            "operator": made.operator,
            "resource": made.resource,
            "operation": made.operation,
            "name": made.name,
            "why": made.why,
        })  # fmt: skip

    def list_calls(self, call: Call, given: Parameters) -> object:
        """(count): returns the newest calls as JSON, the newest first."""
        count = min(max(0, number_of(given, 0)), CALLS_MAX)
        newest = list(self.kept)[len(self.kept) - min(count, len(self.kept)) :]
        return encode_json([
            {
                "number": each.number,
                "time": each.first_at // 1_000_000,
                "lastTime": each.last_at // 1_000_000,
                "count": each.count,
                "user": each.user,
                "remoteAddress": each.remote,
                "operatorAddress": each.operator,
                "resource": each.resource,
                "operation": each.operation,
                "name": each.name,
                "refusal": each.why,
            }
            for each in reversed(newest)
        ])  # fmt: skip


def name_of(operation: str, given: Parameters) -> str:
    """Returns what an operation of the broker is about: a name among its parameters; "" where there is none."""
    if operation not in NAMED or not given:
        return ""
    if operation in ("createQueue", "updateQueue"):
        return queue_name(given)
    return given[0] if isinstance(given[0], str) else ""


def queue_name(given: Parameters) -> str:
    """Returns the name of a queue that is created or changed: in JSON, or a parameter."""
    first = given[0] if isinstance(given[0], str) else ""
    if first.lstrip().startswith("{"):
        try:
            name = json.loads(first).get("name")
        except (ValueError, RecursionError):
            name = None
        return name if isinstance(name, str) else ""
    second = given[1] if len(given) > 1 and isinstance(given[1], str) else ""
    return f"{first} {second}".strip()


def bounded(text: str, length: int = TEXT_MAX) -> str:
    """Returns the beginning of a text, characters that are no print written out."""
    cut = text[: length + 1]
    shown = "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in cut
    )
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"
