"""Nodes of the simulator from broker.xml files, for `atalanta plan` and `atalanta rehearse`."""

from __future__ import annotations

import os
import uuid
from dataclasses import replace
from pathlib import Path

from atalanta.app import announced_connectors, candidates, node_config_of, transport
from atalanta.cli.plan.pairs import FilePairs
from atalanta.config import Configuration, read_broker_xml
from atalanta.config.checks import WILDCARD_HOSTS
from atalanta.kernel import Security
from atalanta.node import Node, Ports
from atalanta.sim.files.group import FileGroup, FileSeat
from atalanta.sim.files.world import FileNode

SEGMENT_BYTES = 256 * 1024  # journal files exist only in memory here


def broker_file(path: Path) -> Path:
    """Returns the broker.xml of an instance folder, or the file itself."""
    return path / "etc" / "broker.xml" if path.is_dir() else path


def labels_of(paths: list[Path]) -> list[str]:
    """Returns unique short names: the stem of the file, the folder of a broker.xml or an activemq.xml, or the whole
    path if needed."""
    short = []
    for path in paths:
        folder = Path(os.path.realpath(path)).parent
        instance = folder.parent if folder.name in ("etc", "conf") else folder
        short.append(instance.name if path.stem in ("broker", "activemq") else path.stem)
    return [name if short.count(name) == 1 else str(path) for name, path in zip(short, paths, strict=True)]


def file_node(path: Path, label: str, seat: FileSeat | None = None) -> FileNode:
    """Returns a node of the simulator that reads `path` at each of its starts. ConfigError if it cannot be read.

    Users have no role: every client may do everything. Nodes check each other's cluster-user and
    cluster-password.
    """
    configuration = read_broker_xml(path, dict(os.environ))

    def make(ports: Ports) -> Node:
        again = read_broker_xml(path, dict(os.environ))
        broker = again.broker
        security = Security(False, broker.cluster_user, again.accepted_cluster_password, broker.wildcard)
        config = node_config_of(again, security, node_id_of(label if seat is None else seat.group.labels[0]))
        config.journal = replace(config.journal, segment_size_bytes=SEGMENT_BYTES)
        return Node(config, ports)

    return FileNode(label, make, endpoints(configuration), seat)


def node_id_of(label: str) -> uuid.UUID:
    """Returns the node id that the node has in the simulator, and the other members of its group."""
    return uuid.uuid5(uuid.NAMESPACE_URL, label)


def seats_of(pairs: FilePairs) -> dict[str, FileSeat]:
    """Returns the places of the members of replicated groups with several members, by label."""
    found: dict[str, FileSeat] = {}
    for group in pairs.groups:
        if len(group.required) < 2:
            continue
        labels = [pairs.label(each) for each in group.required]
        node_id = node_id_of(labels[0]).bytes
        journal = replace(group.members[0].journal.journal_config(node_id), segment_size_bytes=SEGMENT_BYTES)
        policy = group.members[0].ha
        name = policy.group_name or labels[0]
        made = FileGroup(labels, name, node_id, journal, policy.lease_ms, policy.min_in_sync)
        for label, member in zip(labels, group.required, strict=True):
            connectors = announced_connectors(member)
            announced = {each: transport(each, values) for each, values in connectors.items()}
            found[label] = FileSeat(made, candidates(member), announced)
    return found


def endpoints(configuration: Configuration) -> list[tuple[str, int, str]]:
    """Returns (host, port, acceptor) of all acceptors; a wildcard host stands for the announced host."""
    found: list[tuple[str, int, str]] = []
    for acceptor in configuration.acceptors:
        if acceptor.host not in WILDCARD_HOSTS:
            found.append((acceptor.host, acceptor.port, acceptor.name))
            continue
        for connector in configuration.connectors.values():
            endpoint = (connector.host, acceptor.port, acceptor.name)
            announced = any(
                connection.connector == connector.name
                for connection in configuration.cluster_connections
            ) or any(connector.name in group.connectors for group in configuration.broadcast_groups)
            if announced and connector.port == acceptor.port and endpoint not in found:
                found.append(endpoint)
    return found
