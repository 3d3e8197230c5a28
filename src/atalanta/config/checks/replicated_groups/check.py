"""The checks of replicated groups: who backs up whom, members that do not fit, and single points."""

from __future__ import annotations

import os
from typing import Final

from atalanta.config.checks.findings import ERROR, INFORMATION, WARNING, CheckedNode, Findings
from atalanta.config.checks.reachability import host_of, same_host
from atalanta.config.checks.replicated_groups.group import (
    ReplicatedGroup,
    dialled,
    groups_of,
    is_member,
)
from atalanta.config.checks.replicated_groups.losses import (
    folder_loss,
    hosts_of,
    loss_of,
    members_on,
)
from atalanta.config.checks.replicated_groups.manager import (
    FILE,
    QUORUM,
    GroupManager,
    host_part,
)
from atalanta.config.configuration import Configuration
from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)
from atalanta.wire.loopback import is_loopback

KIND: Final = "ha-policy"
STATIC: Final = (
    "<static-connectors> of the group's cluster-connection, in each member those of all others; or a discovery-group "
    "that hears the broadcast-group of every member"
)
THREE: Final = "three voters on three hosts survive the loss of one (atalanta ha witness)"
SAME_MANAGER: Final = "the same [ha.manager] in the atalanta.toml of all: with two managers two nodes could both serve"


def check_replicated_groups(nodes: list[CheckedNode], findings: Findings) -> None:
    """Adds findings about all groups of the files."""
    checked = {id(node.configuration): node for node in nodes}
    configurations = [node.configuration for node in nodes]
    groups = groups_of(configurations)
    for group in groups:
        members = [checked[id(each)] for each in group.members]
        _check_members(group, members, len(nodes), findings)
        _check_names(group, members, configurations, findings)
        for node in members[1:]:
            _compare(members[0], node, findings)
        for at, node in enumerate(members):
            for other in members[:at]:
                _check_folders(node, other, findings)
        _check_manager(group, members, findings)
        if len(members) > 1:
            _check_single_points(group, members, findings)


def _check_members(
    group: ReplicatedGroup, members: list[CheckedNode], given: int, findings: Findings
) -> None:
    """Says who backs up whom, and what is wrong with the roles."""
    first = members[0]
    for node in members[1:]:
        if node.configuration in group.primaries:
            continue
        if node.configuration.ha.asynchronous:
            text = f"it is an asynchronous copy of {first.configuration.path}: nobody waits for it, and it serves only"
            findings.add(INFORMATION, node, KIND, "", f"{text} when `atalanta ha promote` orders it")
            continue
        text = f"it is a backup of {first.configuration.path} by replication; the manager is {group.manager}"
        findings.add(INFORMATION, node, KIND, "", text if group.primaries else "it is a backup by replication")
    if len(group.primaries) > 1:
        _check_primaries(group, members, findings)
    if given < 2:
        return  # the files of the others were not given
    if not group.primaries:
        findings.add(
            WARNING, first, KIND, "",
            "a backup of nobody: no given primary with its group-name names it, or is named by it",
            f"the same group-name, and {STATIC}",
        )  # fmt: skip
    elif len(members) == 1:
        findings.add(INFORMATION, first, KIND, "", "no given backup finds it, or is found by it")


def _check_primaries(group: ReplicatedGroup, members: list[CheckedNode], findings: Findings) -> None:
    first = members[0].configuration
    for node in members[1 : len(group.primaries)]:
        fixed = node.configuration.ha.coordination_id, first.ha.coordination_id
        if None not in fixed and fixed[0] == fixed[1]:
            text = f"it is a backup of {first.path} by replication, as long as that one serves: both are primaries"
            findings.add(INFORMATION, node, KIND, "", text)
            continue
        findings.add(
            WARNING, node, KIND, "",
            f"it and the primary {first.path} find each other and have the same group-name: the one that starts later "
            "follows the other one, as its backup, and two that start at the same time form two groups",
            "a group-name for each pair, if each primary shall have messages of its own; the same coordination-id in "
            "both, if they are one group",
        )  # fmt: skip


def _check_names(
    group: ReplicatedGroup, members: list[CheckedNode], configurations: list[Configuration], findings: Findings
) -> None:
    """Finds members that do not dial all others: while one of these is active, they cannot follow it."""
    for node in members:
        found = dialled(node.configuration, configurations)
        for other in group.members:
            if other is not node.configuration and other not in found:
                text = f"it neither names nor hears {other.path} of its group: while that one is active"
                findings.add(WARNING, node, KIND, "", f"{text}, it cannot follow it", STATIC)
        if len(members) == 1:
            for other in found:
                if is_member(other) and other.ha.group_name != node.configuration.ha.group_name:
                    findings.add(
                        WARNING, node, KIND, "",
                        f"it names {other.path}, but its group-name is {_named(node.configuration)}, and that one's is "
                        f"{_named(other)}: they refuse each other",
                        "the same group-name in all members of a group",
                    )  # fmt: skip


def _named(configuration: Configuration) -> str:
    name = configuration.ha.group_name
    return "not set" if name is None else f"'{name}'"


def _compare(first: CheckedNode, node: CheckedNode, findings: Findings) -> None:
    """Compares what the members of a group must have in common."""
    mine, theirs = node.configuration, first.configuration
    if mine.ha.lease_ms != theirs.ha.lease_ms:
        _add(
            WARNING, node, "lease_ms",
            f"lease_ms is {mine.ha.lease_ms}, that of {theirs.path} is {theirs.ha.lease_ms}: a member that takes over "
            "waits for the longer one",
            "the same [ha] lease_ms in the atalanta.toml of all members", findings,
        )  # fmt: skip
    if mine.ha.min_in_sync != theirs.ha.min_in_sync:
        _add(
            WARNING, node, "min_in_sync",
            f"min_in_sync is {mine.ha.min_in_sync}, that of {theirs.path} is {theirs.ha.min_in_sync}: after a takeover "
            "another number of disks has what is confirmed",
            "the same [ha] min_in_sync in the atalanta.toml of all members", findings,
        )  # fmt: skip
    if node.node_id is not None and first.node_id is not None and node.node_id != first.node_id:
        findings.add(
            ERROR, node, KIND, "",
            f"its data folder is that of node {node.node_id}, {theirs.path} has node {first.node_id}: they refuse each "
            "other",
            "move the data folders of the one whose messages are not needed away: it gets those of the other one",
        )  # fmt: skip


def _check_folders(node: CheckedNode, other: CheckedNode, findings: Findings) -> None:
    """Finds members with one folder. That of the journal is an error of any two nodes (endpoints.py)."""
    mine, theirs = node.configuration, other.configuration
    for what, here, there in (
        ("paging-directory", mine.paging_folder, theirs.paging_folder),
        ("large-messages-directory", mine.large_messages_folder, theirs.large_messages_folder),
    ):
        if os.path.realpath(here) == os.path.realpath(there):
            findings.add(
                ERROR, node, KIND, "",
                f"its {what} {here} is that of {theirs.path}, too: members of a replicated group have folders of their"
                " own",
                "another folder, or <shared-store> if both shall have the same files",
            )  # fmt: skip


# -- the manager ----------------------------------------------------------------------------------
def _check_manager(group: ReplicatedGroup, members: list[CheckedNode], findings: Findings) -> None:
    first = members[0].configuration
    away = any(not is_loopback(host_of(each.configuration, "")) for each in members)
    for node in members:
        config = node.configuration.ha.manager
        assert config is not None
        own = GroupManager.of(node.configuration, config)
        if not group.manager.is_that_of(own):
            hint = SAME_MANAGER if own.kind != FILE else f"an absolute path that all members reach; {SAME_MANAGER}"
            text = f"its manager is {own}, that of {first.path} is {group.manager}"
            _add(ERROR, node, "manager", text, hint, findings)
        elif _other_password(node.configuration, first):
            text = f"the password-file of its manager has another password than that of {first.path}"
            _add(ERROR, node, "manager", text, "the same password for all members and voters", findings)
        if len(members) > 1 and away and own.kind != FILE and any(is_loopback(host) for host in own.hosts()):
            _add(
                ERROR, node, "manager",
                f"its manager, {own}, is at a loopback address: each host has another one there, and two nodes could "
                "both serve",
                "addresses that mean the same on all hosts", findings,
            )  # fmt: skip
        if isinstance(config, QuorumManagerConfig) and config.voter is not None:
            port = config.voter.rpartition(":")[2]
            if not any(each.rpartition(":")[2] == port for each in own.servers):
                text = f"the voter of its guard, {config.voter}, is not among the voters {', '.join(own.servers)}"
                _add(ERROR, node, "manager", text, "name it in voters of all members", findings)


def _other_password(mine: Configuration, theirs: Configuration) -> bool:
    here, there = _password(mine), _password(theirs)
    return None not in (here, there) and here != there


def _password(configuration: Configuration) -> str | None:
    """Returns the first line of the password-file, "" without one; None if it cannot be read here."""
    manager = configuration.ha.manager
    if not isinstance(manager, QuorumManagerConfig | EtcdManagerConfig | ZooKeeperManagerConfig):
        return ""
    name = manager.password_file
    if name is None:
        return ""
    try:
        return ((configuration.instance / name).read_text(encoding="utf-8").splitlines() or [""])[0]
    except (OSError, UnicodeDecodeError):
        return None


def _check_single_points(
    group: ReplicatedGroup, members: list[CheckedNode], findings: Findings
) -> None:
    """Names what stops the group, and what leaves it without a manager."""
    first, manager = members[0], group.manager

    def label(configuration: Configuration) -> str:
        return configuration.broker.name

    told: list[str] = []
    for host in hosts_of(group):
        loss = loss_of(group, host, label)
        if loss.stops:
            everyone = all(each in members_on(group, host) for each in group.required)
            hint = "members on several hosts" if everyone else _remedy(group, host)
            told.append(host)
            findings.add(
                WARNING, first, KIND, "", f"the host {host} is a single point: without it {loss.then}", hint
            )  # fmt: skip
    folder = folder_loss(group, label)
    if folder is not None:
        text = f"the manager's folder {manager.place} is a single point: without it {folder.then}"
        _add(INFORMATION, first, "manager", text, "", findings)
    if manager.kind != QUORUM:
        return
    count = len(manager.servers)
    if count == 1 and not any(same_host(host, each) for host in manager.hosts() for each in told):
        text = f"{manager} is a single point: without it no member can take over, and none can be removed"
        _add(WARNING, first, "manager", text, THREE, findings)
    if count % 2 == 0:
        text = f"{count} voters survive the loss of no more of them than {count - 1} would"
        _add(WARNING, first, "manager", text, f"an odd number: {THREE}", findings)
    for host in manager.hosts():
        there = len(manager.servers_on(host))
        if count > 1 and there > count - manager.needed and not any(same_host(host, each) for each in told):
            text = f"the host {host} has {there} of {count} voters: without it the manager has no majority"
            _add(WARNING, first, "manager", text, THREE, findings)


def _remedy(group: ReplicatedGroup, host: str) -> str:
    least = max(each.ha.min_in_sync for each in group.members)
    if least >= len(group.required):
        return f"more members than min_in_sync = {least}"
    if group.manager.kind == FILE:
        return "a folder that does not lie on a member's disk"
    if any(same_host(host_part(each), host) for each in group.manager.servers):
        return THREE if group.manager.kind == QUORUM else f"the {group.manager.word}s on hosts of their own"
    return ""


def _add(level: str, node: CheckedNode, key: str, text: str, hint: str, findings: Findings) -> None:
    """Adds a finding at the key of [ha] in atalanta.toml, or at the policy if it is not there."""
    known = ("[ha]", key) in node.configuration.positions
    findings.add(level, node, "[ha]" if known else KIND, key if known else "", text, hint)
