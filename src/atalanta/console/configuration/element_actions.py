"""The actions that an operator may take with an element at each node, and why not the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from atalanta.console.configuration.artemis_reach import REACH
from atalanta.console.configuration.comparison import ElementRow, NodeConfigurations
from atalanta.console.configuration.element_kinds import (
    ADD,
    CHANGE,
    REMOVE,
    START,
    STOP,
    PageKind,
)
from atalanta.console.configuration.node_configuration import NodeConfiguration
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.permissions import UserPermissions

LABELS: Final = {ADD: "Add", CHANGE: "Change", REMOVE: "Remove", START: "Start", STOP: "Stop"}
NO_PARAMETERS: Final = "This node does not change them while it runs."
ABSENT: Final = "absent"  # in the file, and not running: it counts after a restart
SWITCHES: Final = (START, STOP)


@dataclass
class ElementAction:
    """An action with the nodes at which it is possible, and the reason at each of the others.

    `unpermitted` are nodes whose user may not: there is no button, and who asks all the same is refused by the node,
    which names the permission.
    """

    name: str
    nodes: list[ClusterNode] = field(default_factory=list)
    unpermitted: list[ClusterNode] = field(default_factory=list)
    refusals: list[tuple[ClusterNode, str]] = field(default_factory=list)

    @property
    def label(self) -> str:
        return LABELS[self.name]


def refusal_of(node: ClusterNode, configuration: NodeConfiguration, kind: PageKind, action: str) -> str:
    """Returns why a node does not add, change or remove elements of a kind; "" if it does."""
    if configuration.kept:
        if not configuration.changeable:
            return configuration.why
        return "" if configuration.parameters.get(kind.name) else NO_PARAMETERS
    if node.ours:
        return configuration.why
    reach = REACH[kind.name]
    return "" if action in reach.actions else reach.untold or reach.reason


def action_of(
    action: str, kind: PageKind, nodes: Sequence[tuple[ClusterNode, NodeConfiguration]]
) -> ElementAction:
    """Returns an action that changes the configuration, at these nodes."""
    found = ElementAction(action)
    for node, configuration in nodes:
        why = refusal_of(node, configuration, kind, action)
        if why:
            found.refusals.append((node, why))
        elif configuration.kept and not configuration.permitted:
            found.unpermitted.append(node)
        else:
            found.nodes.append(node)
    return found


async def actions_of(
    row: ElementRow, kind: PageKind, configurations: NodeConfigurations, permissions: UserPermissions
) -> list[ElementAction]:
    """Returns the actions of an element that some of its nodes has, or whose reason is worth a line."""
    having = {node.place.at for node, _ in row.parts}
    missing = {node.place.at for node in row.missing}
    present = [(node, each) for node, each in configurations if node.place.at in having]
    absent = [(node, each) for node, each in configurations if node.place.at in missing]
    found = [action_of(CHANGE, kind, present), action_of(REMOVE, kind, present)]
    if absent:
        found.insert(0, action_of(ADD, kind, absent))
    if kind.resource:
        found += [await _switch(action, row, kind, permissions) for action in SWITCHES]
    return [action for action in found if action.nodes or action.unpermitted or action.refusals]


async def _switch(
    action: str, row: ElementRow, kind: PageKind, permissions: UserPermissions
) -> ElementAction:
    """Returns start or stop at the nodes where it would do something."""
    found = ElementAction(action)
    over = "started" if action == START else "stopped"
    for node, part in row.parts:
        if part.state in (over, ABSENT):
            continue
        if not node.ours and action not in REACH[kind.name].actions:
            found.refusals.append((node, REACH[kind.name].reason))
        elif action in await permissions.allowed(node, kind.resource_of(row.name), SWITCHES):
            found.nodes.append(node)
        else:
            found.unpermitted.append(node)
    return found
