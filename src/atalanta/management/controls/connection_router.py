"""Connection routers: resource `connectionrouter.NAME` (ConnectionRouterControl).

The kernel does not depend on routers: their owner provides a ListedRouter by name.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.management.request.call import Attribute, Call, Operations, Parameters, text_of
from atalanta.management.request.json_text import encode_json

PREFIX: Final = "connectionrouter."


@mypyc_attr(allow_interpreted_subclasses=True)
class ListedRouter:
    """The interface of one router for management. A filter is a regular expression or None."""

    def target(self, now: int, key: str) -> dict[str, object] | None:
        """Returns nodeID, local, and connector (None for this node). None: none is ready, or the key is refused."""
        raise NotImplementedError

    def local_target_filter(self) -> str | None:
        raise NotImplementedError

    def key_filter(self) -> str | None:
        raise NotImplementedError

    def set_local_target_filter(self, text: str | None) -> None:
        """Sets the filter. Raises ValueError for an invalid regular expression."""
        raise NotImplementedError

    def set_key_filter(self, text: str | None) -> None:
        """Sets the filter. Raises ValueError for an invalid regular expression."""
        raise NotImplementedError


def router_of(call: Call) -> ListedRouter:
    return call.management.routers[call.resource[len(PREFIX) :]]


def target_as_json(call: Call, given: Parameters) -> object:
    """Returns ConnectionRouterControl.getTargetAsJSON. `getTarget`, whose type only JMX has, answers the same."""
    found = router_of(call).target(call.now, text_of(given, 0))
    return None if found is None else encode_json(found)


def set_local_target_filter(call: Call, given: Parameters) -> object:
    try:
        router_of(call).set_local_target_filter(_filter(given))
    except ValueError as error:
        raise BrokerError(ILLEGAL_STATE, str(error)) from error
    return None


def set_key_filter(call: Call, given: Parameters) -> object:
    try:
        router_of(call).set_key_filter(_filter(given))
    except ValueError as error:
        raise BrokerError(ILLEGAL_STATE, str(error)) from error
    return None


def _filter(given: Parameters) -> str | None:
    return None if given[0] is None else text_of(given, 0)


def _local_target_filter(call: Call) -> object:
    return router_of(call).local_target_filter()


def _key_filter(call: Call) -> object:
    return router_of(call).key_filter()


ROUTER_ATTRIBUTES: Final[dict[str, Attribute]] = {
    "LocalTargetFilter": _local_target_filter,
    "TargetKeyFilter": _key_filter,
}
ROUTER_OPERATIONS: Final[Operations] = {
    "getTarget": [("s", target_as_json)],
    "getTargetAsJSON": [("s", target_as_json)],
    "setLocalTargetFilter": [("S", set_local_target_filter)],
    "setTargetKeyFilter": [("S", set_key_filter)],
}
