"""A hosted backup: the backup of another member of the cluster, which a colocated primary runs beside itself.

Source: ColocatedHAManager of Artemis, which starts a second server in its process. Here it is a process of its own,
whose configuration is the file of its host with other ports, folders and policy.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from atalanta.config.configuration import Configuration
from atalanta.config.sections.ha.default_manager import voter_of
from atalanta.ha.manager_config import GuardVoter, QuorumManagerConfig
from atalanta.ha.policy import BACKUP, REPLICATION, SHARED_STORE, HaPolicy
from atalanta.ha.policy_elements import ColocationConfig, HostedBackup
from atalanta.store.config import JournalOptions

# The connector of the host itself, which its own static connectors do not name.
HOST_CONNECTOR: Final = "colocated_host"


def hosted_configuration(configuration: Configuration, hosted: HostedBackup) -> Configuration:
    """Returns the configuration of the backup, made from that of its host. ValueError if that hosts none."""
    colocation = configuration.ha.colocation
    if colocation is None or colocation.backup is None:
        raise ValueError("ha-policy has no <colocated> any more: this node hosts no backup")
    shift = hosted.number * colocation.port_offset
    own = {each.connector for each in configuration.cluster_connections}
    own.update(name for group in configuration.broadcast_groups for name in group.connectors)
    connectors = {
        name: replace(each, port=each.port + shift) if name in own and name not in colocation.excluded else each
        for name, each in configuration.connectors.items()
    }
    first = configuration.cluster_connections[0].connector
    connectors[HOST_CONNECTOR] = replace(configuration.connectors[first], name=HOST_CONNECTOR)
    return replace(
        configuration,
        broker=replace(configuration.broker, name=hosted.name),
        acceptors=[
            replace(each, port=each.port + shift) if each.port else each for each in configuration.acceptors
        ],
        connectors=connectors,
        cluster_connections=[
            each
            if each.discovery_group is not None
            else replace(each, static_connectors=[*each.static_connectors, HOST_CONNECTOR])
            for each in configuration.cluster_connections
        ],
        ha=_policy(configuration.ha, colocation, hosted, shift),
        journal=_journal(configuration, hosted),
    )


def _policy(policy: HaPolicy, colocation: ColocationConfig, hosted: HostedBackup, shift: int) -> HaPolicy:
    manager = policy.manager
    if isinstance(manager, GuardVoter):
        manager = replace(manager, voter=None, voters=voter_of(hosted.host, hosted.port))
    elif isinstance(manager, QuorumManagerConfig):
        manager = replace(manager, voter=None)  # the guard of the host runs it
    made = replace(
        policy,
        role=BACKUP,
        colocation=None,
        hosted=hosted,
        manager=manager,
        coordination_id=hosted.node_id if policy.form == REPLICATION else None,
        guard_port=policy.guard_port + shift if policy.guard_port else 0,
    )
    made.take(colocation.backup)
    return made


def _journal(configuration: Configuration, hosted: HostedBackup) -> JournalOptions:
    """Returns the folders of the primary for a shared store, else folders of its own."""
    journal = configuration.journal
    if configuration.ha.form == SHARED_STORE:
        folders = [hosted.journal, hosted.paging, hosted.large_messages]
    else:
        own = (journal.directory, journal.paging_directory, journal.large_messages_directory)
        folders = [_beside(each, hosted) for each in own]
    directory, paging, large = folders
    return replace(
        journal, directory=directory, paging_directory=paging, large_messages_directory=large
    )


def _beside(folder: str, hosted: HostedBackup) -> str:
    """Returns the folder of the backup: beside that of its host, by node id. The number may become another one's."""
    path = Path(folder)
    return str(path.with_name(f"{path.name}-of-{hosted.node_id}"))
