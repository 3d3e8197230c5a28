"""Acceptors: resource `acceptor.NAME` (AcceptorControl). Acceptors open and close with the node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.management.controls.control import Control
from atalanta.management.request.json_text import encode_json
from atalanta.management.resources.acceptor import FACTORY

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.management.request.call import Call
    from atalanta.management.resources.acceptor import ListedAcceptor


class AcceptorControl(Control):
    """The control of the acceptors."""

    def __init__(
        self, acceptors: dict[str, ListedAcceptor], started: Callable[[], bool]
    ) -> None:
        self.acceptors = acceptors
        super().__init__(
            {
                "Name": lambda call: self.acceptor(call).name,
                "FactoryClassName": lambda call: FACTORY,
                "Parameters": lambda call: self.acceptor(call).parameters,
                "ParametersAsJSON": lambda call: encode_json(self.acceptor(call).parameters),
                "Started": lambda call: started(),
            },
            {},
        )

    def select(self, call: Call) -> bool:
        return call.name in self.acceptors

    def acceptor(self, call: Call) -> ListedAcceptor:
        """Returns the acceptor of the call."""
        return self.acceptors[call.name]
