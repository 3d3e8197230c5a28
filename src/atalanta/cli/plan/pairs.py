"""The pairs with a shared store among the files of `atalanta plan` and `atalanta rehearse`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.reachability import WILDCARD_HOSTS, is_loopback
from atalanta.config.checks.shared_store import Pair, pairs_of
from atalanta.config.configuration import Configuration


@dataclass
class Loss:
    """The loss of `what`, a host or a folder: the nodes that end with it, and what becomes of their messages."""

    what: str
    nodes: list[str]
    then: str


class FilePairs:
    """The nodes of the files by their labels, and the pairs that some of them form."""

    def __init__(self, nodes: dict[str, Configuration]) -> None:
        self.nodes = nodes
        label_of = {id(configuration): label for label, configuration in nodes.items()}
        self.pairs = [pair for pair in pairs_of(list(nodes.values())) if len(pair.nodes) > 1]
        # Labels of each pair, by its folder. The first node is active when all are started.
        self.members = {pair.folder: [label_of[id(each)] for each in pair.nodes] for pair in self.pairs}

    def passive(self) -> dict[str, str]:
        """Returns the nodes that wait, each with the active one of its pair. No two nodes run on one folder."""
        return {label: members[0] for members in self.members.values() for label in members[1:]}

    def substitutes(self, label: str) -> list[str]:
        """Returns the node that serves when the node `label` is away: its first backup, or none."""
        return [each for members in self.members.values() if members[0] == label for each in members[1:2]]

    def sentences(self) -> list[str]:
        """Returns a line for each pair, which is not simulated as one."""
        return [
            f"{', '.join(members[1:])} waits for {members[0]} with the shared store {folder}; the simulator has no"
            f" pairs, and runs {members[0]} alone"
            for folder, members in self.members.items()
        ]

    def losses(self) -> list[Loss]:
        """Returns what is lost with each host, and with each shared folder. Empty without a pair."""
        if not self.pairs:
            return []
        hosts: dict[str, list[str]] = {}
        for label, configuration in self.nodes.items():
            hosts.setdefault(_host(label, configuration), []).append(label)
        found = []
        for host, there in hosts.items():
            # A pair that is on one host has one sentence.
            after = list(dict.fromkeys(self._after(label, there) for label in there))
            found.append(Loss(f"host {host}", there, "; ".join(after)))
        for pair in self.pairs:
            members = self.members[pair.folder]
            then = f"{members[0]} stops, and no other can take over; messages wait there, and are lost with its disk"
            found.append(Loss(f"folder {pair.folder}", members, then))
        return found

    def _after(self, label: str, gone: list[str]) -> str:
        """Returns what becomes of the messages of `label` when the nodes `gone` end together."""
        configuration = self.nodes[label]
        for pair in self.pairs:
            members = self.members[pair.folder]
            if label in members:
                return _after_member(pair, members, label, gone)
        if not configuration.broker.persistence_enabled:
            return f"{label}: its messages are lost"
        return f"{label}: its messages wait for its return, and are lost with its disk"


def pairs_of_files(path_of: dict[str, Path]) -> FilePairs:
    """Reads the files, which are given by label. ConfigError if one cannot be read."""
    return FilePairs({label: read_broker_xml(path, dict(os.environ)) for label, path in path_of.items()})


def _after_member(pair: Pair, members: list[str], label: str, gone: list[str]) -> str:
    left = [each for each in members if each not in gone]
    if not left:
        return f"{', '.join(members)}: the whole pair is gone, and the messages wait in {pair.folder}"
    if label != members[0]:
        return f"{label}: {left[0]} serves, with a backup less"
    after_s = max(each.ha.lease_ms for each in pair.nodes) / 1000
    return (
        f"{label}: {left[0]} takes over after about {after_s:g} s; durable messages are there, others are lost"
    )


def _host(label: str, configuration: Configuration) -> str:
    """Returns the host that the node announces; with an address of every machine its label tells hosts apart."""
    connections = configuration.cluster_connections
    connector = configuration.connectors.get(connections[0].connector) if connections else None
    hosts = [] if connector is None else [connector.host]
    hosts += [acceptor.host for acceptor in configuration.acceptors]
    for host in hosts:
        if host not in WILDCARD_HOSTS:
            return "localhost" if is_loopback(host) else host
    return f"of {label}"
