"""The pairs with a shared store, and the replicated groups, among the files of `atalanta plan`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from atalanta.config import Configuration, read_broker_xml
from atalanta.config.checks import GroupManager, groups_of, hosts_of, pairs_of

SHARED = "shared store"


@dataclass(frozen=True)
class Backing:
    """Nodes of which one serves, and the others wait. `decided_by` says what lets one of them serve.

    Those that are `asynchronous` serve at an operator's order only.
    """

    serves: str
    waiting: list[str]
    form: str
    decided_by: str
    asynchronous: tuple[str, ...] = ()


class FilePairs:
    """The nodes of the files by their labels, and the pairs and groups that some of them form."""

    def __init__(self, nodes: dict[str, Configuration]) -> None:
        self.nodes = nodes
        self._labels = {id(configuration): label for label, configuration in nodes.items()}
        configurations = list(nodes.values())
        self.pairs = [pair for pair in pairs_of(configurations) if len(pair.nodes) > 1]
        self.groups = groups_of(configurations)
        # Labels of each pair, by its folder. The first node is active when all are started.
        self.members = {pair.folder: [self.label(each) for each in pair.nodes] for pair in self.pairs}

    def label(self, configuration: Configuration) -> str:
        """Returns the label of a node."""
        return self._labels[id(configuration)]

    def backings(self) -> list[Backing]:
        """Returns who backs up whom."""
        found = [
            Backing(members[0], members[1:], SHARED, f"the folder {folder}")
            for folder, members in self.members.items()
        ]
        for group in self.groups:
            labels = [self.label(each) for each in group.members]
            far = tuple(self.label(each) for each in group.members if each.ha.asynchronous)
            found.append(Backing(labels[0], labels[1:], "replication", str(group.manager), far))
        return found

    def hosted(self) -> list[Backing]:
        """Returns the backups of colocated nodes, each with the nodes that could host it."""
        nodes = list(self.nodes.values())
        return [
            Backing(
                self.label(each), [f"beside {self.label(host)}" for host in hosts_of(each, nodes)],
                f"colocated, {each.ha.form}",
                f"the folder {each.journal_folder}" if each.ha.manager is None else str(
                    GroupManager.of(each, each.ha.manager)
                ),
            )
            for each in nodes
            if each.ha.colocation is not None and each.ha.colocation.request_backup
        ]  # fmt: skip

    def passive(self) -> dict[str, str]:
        """Returns the nodes that wait, each with the active one of its pair or group."""
        return {label: each.serves for each in self.backings() for label in each.waiting}

    def not_rehearsed(self) -> dict[str, str]:
        """Returns the nodes that wait and take no part in a rehearsal, each with a line that says so."""
        found = {}
        for each in self.backings():
            out = [label for label in each.waiting if each.form == SHARED or label in each.asynchronous]
            waits = f"{', '.join(out)} {'waits' if len(out) == 1 else 'wait'} for {each.serves} ({each.form})"
            why = f"the simulator runs {each.serves} alone, without takeovers"
            if each.form != SHARED:
                why = "asynchronous members have no part in a rehearsal"
            found.update(dict.fromkeys(out, f"{waits}; {why}"))
        return found

    def substitutes(self, label: str) -> list[str]:
        """Returns the node that serves when the node `label` is away: its first backup, or none."""
        return [
            waits
            for each in self.backings()
            if each.serves == label
            for waits in each.waiting[:1]
            if waits not in each.asynchronous
        ]


def pairs_of_files(path_of: dict[str, Path]) -> FilePairs:
    """Reads the files, which are given by label. ConfigError if one cannot be read."""
    return FilePairs({label: read_broker_xml(path, dict(os.environ)) for label, path in path_of.items()})
