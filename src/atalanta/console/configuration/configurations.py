"""The configurations of all nodes of a session: asked for by pages, and kept for some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from atalanta.client import ManagementFailed
from atalanta.client.management import BROKER
from atalanta.console.configuration.artemis_configuration import artemis_configuration
from atalanta.console.configuration.element_kinds import KINDS
from atalanta.console.configuration.node_configuration import NodeConfiguration, read_configuration
from atalanta.console.nodes.cluster import FAILURES, NodeAnswers, NodeProblem, SessionCluster
from atalanta.console.nodes.failures import error_text, missing_permission
from atalanta.console.nodes.node import ClusterNode

VALID_MIN_S: Final = 4.0
VALID_MAX_S: Final = 60.0
SHARE: Final = 100  # so long a copy is valid, as a multiple of the time that it took
TOLD: Final = ("",)  # the key of what a node tells itself, beside the kinds that its controls show
ALL_KINDS: Final = tuple(kind.name for kind in KINDS)
OLDER: Final = "This release of Atalanta does not tell its configuration: what its other management shows is here."


class KeptConfiguration:
    """A copy of a node's configuration, or of some kinds of it. Times are in seconds, monotonic."""

    def __init__(self, configuration: NodeConfiguration, at_s: float, cost_s: float) -> None:
        self.configuration = configuration
        self.at_s = at_s
        self.valid_s = min(VALID_MAX_S, max(VALID_MIN_S, SHARE * cost_s))


class SessionConfigurations:
    """The configurations of one session's nodes."""

    def __init__(self, cluster: SessionCluster) -> None:
        self._cluster = cluster
        self._kept: dict[tuple[str, tuple[str, ...]], KeptConfiguration] = {}

    async def all(self, kinds: Sequence[str] = ALL_KINDS, fresh: bool = False) -> NodeAnswers[NodeConfiguration]:
        """Returns the configurations of all nodes with these kinds at least. `fresh`: asked now.

        A real Artemis is asked after the others, for the names that they have.
        """
        answers: NodeAnswers[NodeConfiguration] = NodeAnswers()
        nodes = await self._cluster.nodes()
        results: dict[str, NodeConfiguration | BaseException | None] = {}
        told = await asyncio.gather(*(self._told(node, fresh) for node in nodes), return_exceptions=True)
        results.update({node.place.at: result for node, result in zip(nodes, told, strict=True)})
        names: dict[str, set[str]] = {kind: set() for kind in kinds}
        for result in results.values():
            if isinstance(result, NodeConfiguration):
                for kind in kinds:
                    names[kind].update(result.of_kind(kind))
        silent = [node for node in nodes if results[node.place.at] is None]
        shown = await asyncio.gather(
            *(self._shown(node, kinds, names, fresh) for node in silent), return_exceptions=True
        )
        results.update({node.place.at: result for node, result in zip(silent, shown, strict=True)})
        for node in nodes:
            result = results[node.place.at]
            if isinstance(result, NodeConfiguration):
                answers.found.append((node, result))
            elif isinstance(result, FAILURES):
                answers.problems.append(NodeProblem(node.label, error_text(result), result))
            elif result is not None:
                raise result
        return answers

    def forget(self) -> None:
        """Forgets all copies: something was changed."""
        self._kept.clear()

    async def _told(self, node: ClusterNode, fresh: bool) -> NodeConfiguration | None:
        """Returns what a node tells of itself; None for one that has no such operation."""
        kept = self._current(node, TOLD, fresh)
        if kept is not None:
            return kept
        await node.connection()  # who it is
        if not node.ours:
            return None
        began_s = time.monotonic()
        try:
            answer = await node.call(BROKER, "listConfiguration")
        except ManagementFailed as error:
            if missing_permission(error) is not None:
                raise
            return None
        return self._keep(node, TOLD, read_configuration(answer), began_s)

    async def _shown(
        self, node: ClusterNode, kinds: Sequence[str], names: dict[str, set[str]], fresh: bool
    ) -> NodeConfiguration:
        """Returns what the controls of a node show of these kinds."""
        kept = self._current(node, tuple(kinds), fresh)
        if kept is not None:
            return kept
        began_s = time.monotonic()
        found = await artemis_configuration(node, kinds, names)
        if node.ours:
            found.form, found.why, found.permitted = "Atalanta", OLDER, False
        return self._keep(node, tuple(kinds), found, began_s)

    def _current(self, node: ClusterNode, kinds: tuple[str, ...], fresh: bool) -> NodeConfiguration | None:
        kept = self._kept.get((node.place.at, kinds))
        if kept is None or fresh or time.monotonic() - kept.at_s > kept.valid_s:
            return None
        return kept.configuration

    def _keep(
        self, node: ClusterNode, kinds: tuple[str, ...], found: NodeConfiguration, began_s: float
    ) -> NodeConfiguration:
        now_s = time.monotonic()
        self._kept[(node.place.at, kinds)] = KeptConfiguration(found, now_s, now_s - began_s)
        return found
