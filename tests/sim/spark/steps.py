"""The sink's blocking code in the simulation: it runs again from its beginning for each answer of a node.

The answers so far are remembered. The first call without an answer ends the run with Waiting, and is made in the
simulation. So the code of atalanta.spark.write takes exactly its own steps, without a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from atalanta.spark.errors import NodeUnavailable
from atalanta.spark.gateway.gateway import Credentials, Gateway
from atalanta.spark.gateway.node_servers import NodeServers
from atalanta.spark.options import LoginOptions
from atalanta.spark.write.node_calls import NodeCalls

Result = TypeVar("Result")


class Call:
    """A call of a Gateway's method."""

    def __init__(self, server: str, method: str, arguments: tuple[object, ...]) -> None:
        self.server = server
        self.method = method
        self.arguments = arguments


class Waiting(BaseException):
    """The end of a run, at a call whose answer has not arrived."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


class Steps(NodeCalls):
    """The calls of one run and of those before it. `answers` are results, or errors to raise."""

    def __init__(self, login: LoginOptions) -> None:
        super().__init__(login, self.open)
        self.answers: list[object] = []
        self.next = 0

    def run(self, code: Callable[[Steps], None]) -> Call | None:
        """Runs the code. Returns the call that it waits for, or None at its end. Raises its error."""
        self.next = 0
        self.gateways = {}
        self.servers = NodeServers(self.login.groups)
        try:
            code(self)
        except Waiting as waiting:
            return waiting.call
        return None

    def answer(self, call: Call) -> object:
        if self.next == len(self.answers):
            raise Waiting(call)
        found = self.answers[self.next]
        self.next += 1
        if isinstance(found, Exception):
            raise found
        return found

    def open(self, server: str, credentials: Credentials | None = None) -> Gateway:
        return cast(Gateway, RecordedGateway(self, server))

    def call(self, server: str, function: Callable[[Gateway], Result]) -> Result:
        """Calls `function` again while the node is away. An answer NodeTimeout ends that."""
        while True:
            try:
                return function(self.open(server))
            except NodeUnavailable:
                pass


class RecordedGateway:
    """The methods of Gateway that the sink's driver calls."""

    def __init__(self, steps: Steps, server: str) -> None:
        self.steps = steps
        self.server = server

    def __getattr__(self, method: str) -> Callable[..., object]:
        return lambda *arguments: self.steps.answer(Call(self.server, method, arguments))

    def close(self) -> None:
        return None
