"""Management of a connection router."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from atalanta.cluster.connection_routers.router import GOES, STAYS
from atalanta.management.resources.connection_router import ListedRouter

if TYPE_CHECKING:
    from atalanta.cluster.connection_routers.routers import Routers


class Listed(ListedRouter):
    """A router for management, found by name since a reload may have replaced it."""

    def __init__(self, routers: Routers, name: str) -> None:
        self.routers = routers
        self.name = name

    def target(self, now: int, key: str) -> dict[str, object] | None:
        decision = self.routers.routers[self.name].decide_key(now, key)
        if decision.kind == STAYS:
            return {"nodeID": self.routers.broker.node_id, "local": True, "connector": None}
        target = decision.target
        if decision.kind != GOES or target is None or target.connector is None:
            return None
        connector: dict[str, object] = {
            "name": target.connector.name,
            "factoryClassName": target.connector.factory,
            "params": dict(target.connector.parameters),
            "extraProps": {},
        }
        return {"nodeID": target.node_id, "local": False, "connector": connector}

    def local_target_filter(self) -> str | None:
        stays = self.routers.routers[self.name].stays
        return None if stays is None else stays.pattern

    def key_filter(self) -> str | None:
        known = self.routers.routers[self.name].keys.filter
        return None if known is None else known.pattern

    def set_local_target_filter(self, text: str | None) -> None:
        self.routers.routers[self.name].stays = compiled(text)

    def set_key_filter(self, text: str | None) -> None:
        self.routers.routers[self.name].keys.filter = compiled(text)


def compiled(text: str | None) -> re.Pattern[str] | None:
    """Compiles the filter; None for an empty one, as in ConnectionRouter.setLocalTargetFilter. Raises ValueError."""
    if text is None or not text.strip():
        return None
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"'{text}' is not a regular expression: {error}") from error
