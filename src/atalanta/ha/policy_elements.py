"""The elements of `<ha-policy>`, one for each form and role, with the names and defaults of Artemis 2.44.

Where Artemis' code and its schema have different defaults, the default is the one of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option

_UNREAD: Final = "not read by Artemis 2.44 either"
_LATER: Final = "replication is not supported yet"
_NO_VOTES: Final = "members of the cluster do not vote here: a manager decides who is active"
_NO_COLOCATION: Final = "a backup is a process of its own"


@dataclass(eq=False, repr=False)
class SharedStorePrimary(OptionGroup):
    """The element `<shared-store><primary>`."""

    failover_on_shutdown: bool = option(
        False, "failover-on-shutdown", "a graceful stop lets a backup take over; false: backups stay passive"
    )
    wait_for_activation: bool = ignored(
        True, "wait-for-activation", "the process waits for its turn, and opens no acceptor before"
    )
    failback_delay_ms: int = ignored(5000, "failback-delay", _UNREAD, unit="ms", minimum=0)


@dataclass(eq=False, repr=False)
class SharedStoreBackup(OptionGroup):
    """The element `<shared-store><backup>`."""

    allow_failback: bool = option(
        True, "allow-failback", "an active backup gives the store back to a primary that was started again"
    )
    failover_on_shutdown: bool = option(
        False, "failover-on-shutdown", "the same as for a primary, while this node is the active one"
    )
    restart_backup: bool = option(
        True, "restart-backup", "a backup that gave the store back waits again; false: its process ends"
    )
    failback_delay_ms: int = ignored(5000, "failback-delay", _UNREAD, unit="ms", minimum=0)


@dataclass(eq=False, repr=False)
class Replication(OptionGroup):
    """The options that `<replication><primary>` and `<replication><backup>` have in common."""

    group_name: str | None = ignored(None, "group-name", _LATER)
    cluster_name: str | None = ignored(None, "cluster-name", _LATER)
    initial_sync_timeout_ms: int = ignored(
        30_000, "initial-replication-sync-timeout", _LATER, unit="ms", minimum=1
    )
    saved_replicas_max: int = ignored(
        2, "max-saved-replicated-journals-size", _LATER, unit="count", minimum=-1
    )
    retry_replication_wait_ms: int = ignored(
        2000, "retry-replication-wait", _LATER, unit="ms", minimum=1
    )
    vote_on_failure: bool = ignored(False, "vote-on-replication-failure", _NO_VOTES)
    quorum_size: int = ignored(-1, "quorum-size", _NO_VOTES, unit="count", minimum=-1)
    vote_retries: int = ignored(12, "vote-retries", _NO_VOTES, unit="count", minimum=-1)
    vote_retry_wait_ms: int = ignored(5000, "vote-retry-wait", _NO_VOTES, unit="ms", minimum=1)
    quorum_vote_wait_s: int = ignored(30, "quorum-vote-wait", _NO_VOTES, unit="s", minimum=1)


@dataclass(eq=False, repr=False)
class ReplicationPrimary(Replication):
    """The element `<replication><primary>`."""

    check_for_active: bool = ignored(
        False,
        "check-for-active-server",
        "a manager knows whether another node is active; without replication the data folder's lock does",
        also=("check-for-live-server",),
    )
    coordination_id: str | None = ignored(None, "coordination-id", _LATER)


@dataclass(eq=False, repr=False)
class ReplicationBackup(Replication):
    """The element `<replication><backup>`."""

    # Artemis' schema and manual say true; its code, and so a broker without the element, does not give back.
    allow_failback: bool = ignored(False, "allow-failback", _LATER)
    restart_backup: bool = ignored(True, "restart-backup", _LATER)
    failback_delay_ms: int = ignored(5000, "failback-delay", _UNREAD, unit="ms", minimum=0)


@dataclass(eq=False, repr=False)
class Colocation(OptionGroup):
    """The element `<colocated>` of both forms, without its primary and backup."""

    request_backup: bool = ignored(False, "request-backup", _NO_COLOCATION)
    request_retries: int = ignored(
        -1, "backup-request-retries", _NO_COLOCATION, unit="count", minimum=-1
    )
    request_retry_interval_ms: int = ignored(
        5000, "backup-request-retry-interval", _NO_COLOCATION, unit="ms", minimum=1
    )
    backups_max: int = ignored(1, "max-backups", _NO_COLOCATION, unit="count", minimum=0)
    port_offset: int = ignored(
        100, "backup-port-offset", _NO_COLOCATION, unit="port", minimum=1, maximum=65535
    )
