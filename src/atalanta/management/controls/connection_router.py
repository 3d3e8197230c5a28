"""Connection routers: resource `connectionrouter.NAME` (ConnectionRouterControl)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.request.call import Call, Parameters, optional_text, text_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.management.resources.connection_router import ListedRouter


class ConnectionRouterControl(Control):
    """The control of the connection routers."""

    def __init__(self, routers: dict[str, ListedRouter]) -> None:
        self.routers = routers
        super().__init__(
            {
                "LocalTargetFilter": lambda call: self.routers[call.name].local_target_filter(),
                "TargetKeyFilter": lambda call: self.routers[call.name].key_filter(),
            },
            {
                "getTarget": [("s", self.target_as_json)],
                "getTargetAsJSON": [("s", self.target_as_json)],
                "setLocalTargetFilter": [("S", self.set_local_target_filter)],
                "setTargetKeyFilter": [("S", self.set_key_filter)],
            },
        )

    def select(self, call: Call) -> bool:
        return call.name in self.routers

    def target_as_json(self, call: Call, given: Parameters) -> object:
        """Returns ConnectionRouterControl.getTargetAsJSON. `getTarget`, whose type only JMX has, answers the same."""
        found = self.routers[call.name].target(call.now, text_of(given, 0))
        return None if found is None else encode_json(found)

    def set_local_target_filter(self, call: Call, given: Parameters) -> object:
        try:
            self.routers[call.name].set_local_target_filter(optional_text(given, 0))
        except ValueError as error:
            raise BrokerError(ILLEGAL_STATE, str(error)) from error
        return None

    def set_key_filter(self, call: Call, given: Parameters) -> object:
        try:
            self.routers[call.name].set_key_filter(optional_text(given, 0))
        except ValueError as error:
            raise BrokerError(ILLEGAL_STATE, str(error)) from error
        return None
