"""Replicated groups, found as their members find each other: by connectors or discovery, and group-name and
coordination-id."""

from __future__ import annotations

from dataclasses import dataclass

from atalanta.config.checks.reachability import WILDCARD_HOSTS, hears, reaches, same_host
from atalanta.config.checks.replicated_groups.manager import GroupManager
from atalanta.config.configuration import Configuration
from atalanta.ha.policy import PRIMARY, REPLICATION
from atalanta.wire.endpoint import ConnectorConfig


@dataclass
class ReplicatedGroup:
    """The members: primaries, backups, asynchronous ones. The first one is active when all are started.

    `manager` is that of the first.
    """

    members: list[Configuration]
    manager: GroupManager

    @property
    def primaries(self) -> list[Configuration]:
        """The members that may found the group."""
        return [each for each in self.members if each.ha.role == PRIMARY]

    @property
    def required(self) -> list[Configuration]:
        """The members that take over by themselves, and for which the active one waits."""
        return [each for each in self.members if not each.ha.asynchronous]

    @property
    def lease_s(self) -> float:
        """The time after which a silent member is given up, the longest of all members."""
        return max(each.ha.lease_ms for each in self.members) / 1000


def groups_of(configurations: list[Configuration]) -> list[ReplicatedGroup]:
    """Returns the groups, in the order of their first node; a member whose others are not given is one, too."""
    members = [each for each in configurations if is_member(each)]
    parts: list[list[Configuration]] = []
    for each in members:
        near = [part for part in parts if any(_meet(each, other, members) for other in part)]
        joined = [other for part in near for other in part]
        parts = [part for part in parts if part not in near] + [[*joined, each]]
    found = []
    for part in parts:
        ordered = sorted(part, key=lambda each: (each.ha.role != PRIMARY, each.ha.asynchronous, members.index(each)))
        manager = ordered[0].ha.manager
        assert manager is not None
        found.append(ReplicatedGroup(ordered, GroupManager.of(ordered[0], manager)))
    return found


def is_member(configuration: Configuration) -> bool:
    """Returns whether the node is a member of a group. Without a manager it serves alone; a colocated one has a backup
    without a file."""
    policy = configuration.ha
    return policy.form == REPLICATION and policy.colocation is None and policy.manager is not None


def dialled(member: Configuration, others: list[Configuration]) -> list[Configuration]:
    """Returns those of `others` to which the static connectors of the group's cluster connection lead, or that its
    discovery group hears.

    A connector that is no node's own address may lead to any acceptor with its port that listens everywhere.
    """
    connection = member.group_connection()
    found: list[Configuration] = []
    if connection is not None and connection.discovery_group is not None:
        heard = member.discovery_groups[connection.discovery_group]
        return [each for each in others if each is not member and hears(heard, each)]
    for name in [] if connection is None else connection.static_connectors:
        connector = member.connectors.get(name)
        if connector is None or connection is None or name == connection.connector:
            continue
        exact = [each for each in others if _is_at(connector, each)]
        for each in exact or [each for each in others if _may_reach(connector, each)]:
            if each is not member and each not in found:
                found.append(each)
    return found


def announced(member: Configuration) -> ConnectorConfig | None:
    """Returns the connector under which the others know the member."""
    connection = member.group_connection()
    return None if connection is None else member.connectors.get(connection.connector)


def _meet(one: Configuration, two: Configuration, members: list[Configuration]) -> bool:
    """Returns whether one of the two dials the other one and is not refused because of its group."""
    mine, theirs = one.ha, two.ha
    fixed = mine.coordination_id, theirs.coordination_id
    if mine.group_name != theirs.group_name or (None not in fixed and fixed[0] != fixed[1]):
        return False
    return two in dialled(one, members) or one in dialled(two, members)


def _is_at(connector: ConnectorConfig, node: Configuration) -> bool:
    own = announced(node)
    if own is not None and own.port == connector.port and same_host(own.host, connector.host):
        return True
    return any(
        acceptor.host not in WILDCARD_HOSTS and reaches(connector, acceptor) for acceptor in node.acceptors
    )


def _may_reach(connector: ConnectorConfig, node: Configuration) -> bool:
    return any(reaches(connector, acceptor) for acceptor in node.acceptors)
