"""Elements of all nodes side by side: the same, different, or missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from atalanta.console.configuration.element_kinds import PageKind
from atalanta.console.configuration.node_configuration import (
    FILE,
    IN_EFFECT,
    RUNTIME,
    ElementParameter,
    NodeConfiguration,
    NodeElement,
)
from atalanta.console.nodes.node import ClusterNode

NodeConfigurations = Sequence[tuple[ClusterNode, NodeConfiguration]]


@dataclass
class ElementRow:
    """An element by its name. `untold` are the nodes that tell nothing of its kind."""

    name: str
    parts: list[tuple[ClusterNode, NodeElement]] = field(default_factory=list)
    missing: list[ClusterNode] = field(default_factory=list)
    untold: list[ClusterNode] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)  # parameters

    @property
    def is_same(self) -> bool:
        """Returns whether every node that tells of its kind has it with the same values."""
        return not self.differing and not self.missing

    @property
    def used_by(self) -> list[str]:
        """Returns who uses it at any node."""
        return list(dict.fromkeys(user for _, part in self.parts for user in part.used_by))

    def value(self, parameter: str) -> str | None:
        """Returns the value of a parameter, "" where it is not set; None if the nodes differ in it."""
        values = [part.values[parameter] for _, part in self.parts if parameter in part.values]
        return None if parameter in self.differing else values[0] if values else ""

    def states(self) -> list[tuple[str, list[str]]]:
        """Returns the states with the labels of the nodes that have each; no labels where all have the same."""
        found: dict[str, list[str]] = {}
        for node, part in self.parts:
            if part.state:
                found.setdefault(part.state, []).append(node.label)
        return [(state, nodes if len(found) > 1 else []) for state, nodes in found.items()]


def compared(kind: PageKind, configurations: NodeConfigurations) -> list[ElementRow]:
    """Returns the elements of a kind over all nodes, by name."""
    rows: dict[str, ElementRow] = {}
    telling = [(node, each) for node, each in configurations if kind.name not in each.untold]
    untold = [node for node, each in configurations if kind.name in each.untold]
    for node, configuration in telling:
        for name, element in configuration.of_kind(kind.name).items():
            rows.setdefault(name, ElementRow(name, untold=untold)).parts.append((node, element))
    defaults = {each.name: each.default for each in parameters_of(kind, configurations)}
    for row in rows.values():
        having = {node.place.at for node, _ in row.parts}
        row.missing = [node for node, _ in telling if node.place.at not in having]
        row.differing = differences([part for _, part in row.parts], defaults)
    return [rows[name] for name in sorted(rows, key=lambda name: (name.casefold(), name))]


def differences(parts: Sequence[NodeElement], defaults: Mapping[str, str]) -> list[str]:
    """Returns the parameters that have not the same value everywhere. What is not set has its default; what the
    controls of a broker do not show is left out, and so are values in effect: they need not be set there."""
    parts = [part for part in parts if part.origin != IN_EFFECT]
    found = []
    for name in dict.fromkeys(name for part in parts for name in part.values):
        values = {
            part.values.get(name, defaults.get(name, ""))
            for part in parts
            if name in part.values or part.origin in (FILE, RUNTIME)
        }
        if len(values) > 1:
            found.append(name)
    return found


def parameters_of(kind: PageKind, configurations: NodeConfigurations) -> list[ElementParameter]:
    """Returns the parameters of a kind that any node describes, those of the node with most first."""
    found: dict[str, ElementParameter] = {}
    described = [each.parameters.get(kind.name, []) for _, each in configurations if each.kept]
    described += [each.parameters.get(kind.name, []) for _, each in configurations if not each.kept]
    for parameters in described:
        for parameter in parameters:
            found.setdefault(parameter.name, parameter)
    return list(found.values())


def shown_columns(kind: PageKind, rows: Sequence[ElementRow]) -> list[str]:
    """Returns the kind's columns in which some element has a value."""
    known = {name for row in rows for _, part in row.parts for name in part.values}
    return [name for name in kind.columns if name in known]
