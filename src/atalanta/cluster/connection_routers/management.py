"""Management of connection routers: resource `connectionrouter.NAME` (ConnectionRouterControl)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from atalanta.cluster.connection_routers.router import GOES, STAYS, Router
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.controls.control import Control
from atalanta.management.request.call import Call, Parameters, optional_text, text_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.cluster.connection_routers.routers import Routers


class ConnectionRouterControl(Control):
    """The control of the connection routers, found by name since a reload may replace them."""

    def __init__(self, routers: Routers) -> None:
        self.routers = routers
        super().__init__(
            {
                "LocalTargetFilter": lambda call: pattern_of(self.router(call).stays),
                "TargetKeyFilter": lambda call: pattern_of(self.router(call).keys.filter),
            },
            {
                "getTarget": [("s", self.target_as_json)],
                "getTargetAsJSON": [("s", self.target_as_json)],
                "setLocalTargetFilter": [("S", self.set_local_target_filter)],
                "setTargetKeyFilter": [("S", self.set_key_filter)],
            },
        )

    def select(self, call: Call) -> bool:
        return call.name in self.routers.routers

    def router(self, call: Call) -> Router:
        """Returns the router of the call."""
        return self.routers.routers[call.name]

    def target_as_json(self, call: Call, given: Parameters) -> object:
        """Returns nodeID, local, and connector (null for this node). Null: none is ready, or the key is refused.

        Follows ConnectionRouterControl.getTargetAsJSON. `getTarget`, whose type only JMX has, answers the same.
        """
        decision = self.router(call).decide_key(call.now, text_of(given, 0))
        if decision.kind == STAYS:
            own = self.routers.broker.node_id
            return encode_json({"nodeID": own, "local": True, "connector": None})
        target = decision.target
        if decision.kind != GOES or target is None or target.connector is None:
            return None
        connector: dict[str, object] = {
            "name": target.connector.name,
            "factoryClassName": target.connector.factory,
            "params": dict(target.connector.parameters),
            "extraProps": {},
        }
        return encode_json({"nodeID": target.node_id, "local": False, "connector": connector})

    def set_local_target_filter(self, call: Call, given: Parameters) -> object:
        stays = compiled(optional_text(given, 0))
        call.command.begin_change()
        self.router(call).stays = stays
        return None

    def set_key_filter(self, call: Call, given: Parameters) -> object:
        pattern = compiled(optional_text(given, 0))
        call.command.begin_change()
        self.router(call).keys.filter = pattern
        return None


def pattern_of(known: re.Pattern[str] | None) -> str | None:
    return None if known is None else known.pattern


def compiled(text: str | None) -> re.Pattern[str] | None:
    """Compiles the filter; None for an empty one (ConnectionRouter.setLocalTargetFilter). Raises BrokerError."""
    if text is None or not text.strip():
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise BrokerError(
            ILLEGAL_STATE, f"'{text}' is not a regular expression: {error}"
        ) from error
