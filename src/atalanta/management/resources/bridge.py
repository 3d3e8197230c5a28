"""The core bridges as management sees them; the cluster provides subclasses."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

NO_BRIDGES: Final = "this node has no bridges"


@mypyc_attr(allow_interpreted_subclasses=True)
class ListedBridge:
    """The interface of one bridge for management."""

    def shown(self) -> dict[str, object]:
        """Returns the attributes under the names of BridgeControl's getters, without get and is."""
        raise NotImplementedError

    def start(self, now: int) -> None:
        raise NotImplementedError

    def stop(self, now: int) -> None:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class BridgeRegistry:
    """The bridges of the node; this base class has none."""

    def names(self) -> list[str]:
        return []

    def find(self, name: str) -> ListedBridge | None:
        return None

    def create(self, now: int, definition: dict[str, object]) -> None:
        """Creates a bridge from the JSON form of BridgeConfiguration. Raises BrokerError with the reason."""
        raise BrokerError(ILLEGAL_STATE, NO_BRIDGES)

    def destroy(self, now: int, name: str) -> None:
        raise BrokerError(ILLEGAL_STATE, f"there is no bridge {name}")
