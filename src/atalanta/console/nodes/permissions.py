"""Which operations a node would allow a user: for buttons that are not drawn. The node decides again at each call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from atalanta.client import ManagementFailed
from atalanta.client.management import BROKER
from atalanta.console.nodes.node import ClusterNode

VALID_S: Final = 10.0
ENTRIES_MAX: Final = 2_000


class UserPermissions:
    """The answers of the nodes to one user, for a few seconds."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, tuple[str, ...]], tuple[float, frozenset[str]]] = {}

    async def allowed(self, node: ClusterNode, resource: str, operations: Sequence[str]) -> frozenset[str]:
        """Returns those of the operations that the user may call.

        All of them where the node cannot tell: an Artemis node, or one that does not let the user ask.
        """
        key = (node.place.at, resource, tuple(operations))
        now_s = time.monotonic()
        known = self._known.get(key)
        if known is not None and now_s - known[0] < VALID_S:
            return known[1]
        try:
            answer = await node.call(BROKER, "listPermittedOperations", resource, list(operations))
        except ManagementFailed:
            answer = list(operations)
        found = frozenset(map(str, answer)) if isinstance(answer, list) else frozenset(operations)
        if len(self._known) >= ENTRIES_MAX:
            self._known.clear()
        self._known[key] = (now_s, found)
        return found

    def forget(self) -> None:
        """Forgets all answers."""
        self._known.clear()
