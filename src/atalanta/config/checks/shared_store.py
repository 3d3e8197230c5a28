"""Pairs of nodes with a shared store, found by their data folders, and the checks of them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from atalanta.config.checks.findings import ERROR, INFORMATION, WARNING, CheckedNode, Findings
from atalanta.config.checks.replicated_groups.group import groups_of
from atalanta.config.configuration import Configuration
from atalanta.ha.policy import BACKUP, SHARED_STORE

KIND = "ha-policy"
NAME = ""


@dataclass
class SharedStorePair:
    """The nodes that have one journal folder: usually a primary and a backup. One of them is active at a time."""

    folder: str
    primaries: list[Configuration] = field(default_factory=list)
    backups: list[Configuration] = field(default_factory=list)

    @property
    def nodes(self) -> list[Configuration]:
        """The nodes, the one that is active first before the others."""
        return [*self.primaries, *self.backups]


def pairs_of(configurations: list[Configuration]) -> list[SharedStorePair]:
    """Returns the pairs, in the order of their first node; a node whose partner is not given is one too."""
    pairs: dict[str, SharedStorePair] = {}
    for each in configurations:
        if each.ha.form == SHARED_STORE and each.ha.colocation is None:
            folder = os.path.realpath(each.journal_folder)
            pair = pairs.setdefault(folder, SharedStorePair(folder))
            (pair.backups if each.ha.role == BACKUP else pair.primaries).append(each)
    return list(pairs.values())


def share_a_store(one: Configuration, two: Configuration) -> bool:
    """Returns whether both nodes are of the same pair."""
    return any(len(pair.nodes) > 1 for pair in pairs_of([one, two]))


def without_passive(nodes: list[CheckedNode]) -> list[CheckedNode]:
    """Returns the nodes that serve when all are started: one of each pair, and of each replicated group."""
    configurations = [node.configuration for node in nodes]
    passive = [each for pair in pairs_of(configurations) for each in pair.nodes[1:]]
    passive += [each for group in groups_of(configurations) for each in group.members[1:]]
    return [node for node in nodes if not any(node.configuration is each for each in passive)]


def check_shared_store(nodes: list[CheckedNode], findings: Findings) -> None:
    """Adds a finding for each backup, for each pair that cannot work, and for what a pair does not survive."""
    checked = {id(node.configuration): node for node in nodes}
    for pair in pairs_of([node.configuration for node in nodes]):
        members = [checked[id(each)] for each in pair.nodes]
        _check_partners(pair, members, len(nodes), findings)
        for node in members[1:]:
            _compare(members[0], node, findings)
        if len(members) > 1:
            _check_hosts(pair, members, findings)


def _check_partners(
    pair: SharedStorePair, members: list[CheckedNode], given: int, findings: Findings
) -> None:
    first = members[0].configuration
    equal = all(each.ha.equals for each in pair.primaries)
    count = len(pair.primaries)
    for node in members[1:count]:
        if equal:
            with_first = "one pair" if count == 2 else f"one store of {count} brokers"
            findings.add(
                INFORMATION, node, KIND, NAME,
                f"it is {with_first} with {first.path}: they have the journal folder {pair.folder}; one serves,"
                f" whichever is first, and the other{'' if count == 2 else 's'} wait{'s' if count == 2 else ''}",
            )  # fmt: skip
            continue
        findings.add(
            ERROR, node, KIND, NAME,
            f"two primaries have the journal folder {pair.folder}: this one and {first.path}",
            "make one of them a <backup>: only a backup gives the store back, and waits for the other",
        )  # fmt: skip
    if pair.primaries:
        for node in members[len(pair.primaries) :]:
            text = f"it is a backup of {first.path}: both have the journal folder {pair.folder}"
            findings.add(INFORMATION, node, KIND, NAME, text)
    if given < 2:
        return  # the partner's file was not given
    if not pair.primaries:
        findings.add(
            WARNING, members[0], KIND, NAME,
            f"a backup of nobody: no given primary has its journal folder {pair.folder}",
            "the journal-directory of primary and backup is the same folder",
        )  # fmt: skip
    elif not pair.backups and len(members) == 1 and not first.classic:
        text = f"no given backup has its journal folder {pair.folder}"
        findings.add(INFORMATION, members[0], KIND, NAME, text)


def _compare(first: CheckedNode, node: CheckedNode, findings: Findings) -> None:
    """Compares what the nodes of a pair must have in common."""
    mine, theirs = node.configuration, first.configuration
    for what, here, there in (
        ("paging-directory", mine.paging_folder, theirs.paging_folder),
        ("large-messages-directory", mine.large_messages_folder, theirs.large_messages_folder),
    ):
        if os.path.realpath(here) != os.path.realpath(there):
            findings.add(
                ERROR, node, KIND, NAME,
                f"its {what} is {here}, that of {theirs.path} is {there}: after a failover messages would be missing",
                "nodes with one journal have one folder each of pages and large messages, too",
            )  # fmt: skip
    if mine.ha.lease_ms != theirs.ha.lease_ms:
        findings.add(
            WARNING, node, KIND, NAME,
            f"lease_ms is {mine.ha.lease_ms}, that of {theirs.path} is {theirs.ha.lease_ms}: a node that takes over"
            " waits for the longer of the two",
            "the same [ha] lease_ms in the atalanta.toml of both",
        )  # fmt: skip
    if (mine.cluster_connections == []) != (theirs.cluster_connections == []):
        findings.add(
            WARNING, node, KIND, NAME,
            f"only one of this node and {theirs.path} has a cluster-connection: the two do not serve alike",
        )  # fmt: skip


def _check_hosts(pair: SharedStorePair, members: list[CheckedNode], findings: Findings) -> None:
    """Names what stops the whole pair: one host, and the file system of the folder."""
    first = members[0]
    announced = [node.announced.host for node in members if node.announced is not None]
    if len(announced) == len(members) and len(set(announced)) == 1:
        findings.add(
            WARNING, first, KIND, NAME,
            f"all nodes with the journal folder {pair.folder} announce the host {announced[0]}: they end with it",
        )  # fmt: skip
    findings.add(
        INFORMATION, first, KIND, NAME,
        f"{pair.folder} is a single point: its nodes cannot serve without it, and its loss is that of the messages",
    )  # fmt: skip
