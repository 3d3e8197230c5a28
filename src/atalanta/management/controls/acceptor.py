"""Acceptors: resource `acceptor.NAME` (AcceptorControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.management.controls.control import Control
from atalanta.management.request.json_text import encode_json
from atalanta.management.resources.acceptor import FACTORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.management.request.call import Call, Parameters
    from atalanta.management.resources.acceptor import ListedAcceptor
    from atalanta.management.resources.registry import ResourceRegistry


class AcceptorControl(Control):
    """The control of the acceptors."""

    def __init__(self, resources: ResourceRegistry, serving: Callable[[], bool]) -> None:
        self.resources = resources
        self.acceptors = resources.acceptors
        super().__init__(
            {
                "Name": lambda call: self.acceptor(call).name,
                "FactoryClassName": lambda call: FACTORY,
                "Parameters": lambda call: self.acceptor(call).parameters,
                "ParametersAsJSON": lambda call: encode_json(self.acceptor(call).parameters),
                "Started": lambda call: self.acceptor(call).started and serving(),
            },
            {"start": [("", self.start)], "stop": [("", self.stop)]},
        )

    def select(self, call: Call) -> bool:
        return call.name in self.acceptors

    def start(self, call: Call, given: Parameters) -> object:
        """Opens the acceptor, also one with autoStart=false."""
        call.command.begin_change()
        self.resources.switch.start(call.name)
        return None

    def stop(self, call: Call, given: Parameters) -> object:
        """Closes the acceptor and its connections, until it is started or the node starts again."""
        call.command.begin_change()
        self.resources.switch.stop(call.name)
        return None

    def acceptor(self, call: Call) -> ListedAcceptor:
        """Returns the acceptor of the call."""
        return self.acceptors[call.name]
