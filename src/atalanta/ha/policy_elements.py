"""The elements of `<ha-policy>`, one for each form and role, with the names and defaults of Artemis 2.44.

Where Artemis' code and its schema have different defaults, the default is the one of the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option, unbuilt
from atalanta.kernel.unseen_options import IN_PROCESS, STORE_LAYOUT, UNREAD

_NO_LAST_STEP: Final = (
    "no first copy is given up for its time: a follower catches up while the active node serves, and clients never wait"
)
_RETRIES: Final = "a passive node tries the others of its group again at its own pace, with short pauses"
_NO_VOTES: Final = "members of the cluster do not vote here: a manager decides who is active"


@dataclass(eq=False, repr=False)
class SharedStorePrimary(OptionGroup):
    """The element `<shared-store><primary>`."""

    failover_on_shutdown: bool = option(
        False, "failover-on-shutdown", "a graceful stop lets a backup take over; false: backups stay passive"
    )
    wait_for_activation: bool = ignored(True, "wait-for-activation", IN_PROCESS)
    failback_delay_ms: int = ignored(5000, "failback-delay", UNREAD, unit="ms", minimum=0)


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
    failback_delay_ms: int = ignored(5000, "failback-delay", UNREAD, unit="ms", minimum=0)


@dataclass(eq=False, repr=False)
class Replication(OptionGroup):
    """The options that `<replication><primary>` and `<replication><backup>` have in common."""

    group_name: str | None = option(None, "group-name", "pairs only with nodes of the same group")
    cluster_name: str | None = option(
        None,
        "cluster-name",
        "the cluster connection whose static connectors name the other members; without it the first one",
    )
    initial_sync_timeout_ms: int = unbuilt(
        30_000, "initial-replication-sync-timeout", _NO_LAST_STEP, unit="ms", minimum=1
    )
    saved_replicas_max: int = ignored(
        2, "max-saved-replicated-journals-size", STORE_LAYOUT, unit="count", minimum=-1
    )
    retry_replication_wait_ms: int = unbuilt(
        2000, "retry-replication-wait", _RETRIES, unit="ms", minimum=1
    )
    vote_on_failure: bool = unbuilt(False, "vote-on-replication-failure", _NO_VOTES)
    quorum_size: int = unbuilt(-1, "quorum-size", _NO_VOTES, unit="count", minimum=-1)
    vote_retries: int = unbuilt(12, "vote-retries", _NO_VOTES, unit="count", minimum=-1)
    vote_retry_wait_ms: int = unbuilt(5000, "vote-retry-wait", _NO_VOTES, unit="ms", minimum=1)
    quorum_vote_wait_s: int = unbuilt(30, "quorum-vote-wait", _NO_VOTES, unit="s", minimum=1)


@dataclass(eq=False, repr=False)
class ReplicationPrimary(Replication):
    """The element `<replication><primary>`."""

    # False in Artemis. The default here is what happens: the manager knows whether another node is active.
    check_for_active: bool = unbuilt(
        True,
        "check-for-active-server",
        "this node follows another one that is active with its node id, whatever the file says",
        also=("check-for-live-server",),
    )
    coordination_id: str | None = option(
        None,
        "coordination-id",
        "the node id that members share: a UUID, or any text, from which one is made; without it the first primary"
        " draws it, and the others learn it",
    )


@dataclass(eq=False, repr=False)
class ReplicationBackup(Replication):
    """The element `<replication><backup>`."""

    # Artemis' schema and manual say true; its code, and so a broker without the element, does not give back.
    allow_failback: bool = option(
        False, "allow-failback", "an active backup hands over to the primary when that is back and in sync"
    )
    restart_backup: bool = unbuilt(
        True, "restart-backup", "a backup that handed over follows again, and its process does not end"
    )
    failback_delay_ms: int = ignored(5000, "failback-delay", UNREAD, unit="ms", minimum=0)


@dataclass(eq=False, repr=False)
class ColocationConfig(OptionGroup):
    """The element `<colocated>` of both forms, without its primary."""

    request_backup: bool = option(
        False, "request-backup", "this node asks the members of its cluster to host a backup of it"
    )
    request_retries: int = ignored(-1, "backup-request-retries", UNREAD, unit="count", minimum=-1)
    request_retry_interval_ms: int = option(
        5000, "backup-request-retry-interval", "how often a node without a backup asks", unit="ms", minimum=1
    )
    backups_max: int = option(
        1, "max-backups", "the backups that this node hosts at most, for other members", unit="count", minimum=0
    )
    port_offset: int = option(
        100,
        "backup-port-offset",
        "the ports of the n-th hosted backup are those of this node and n times as much more",
        unit="port",
        minimum=1,
        maximum=65535,
    )
    excluded: list[str] = field(default_factory=list)  # connectors whose ports a hosted backup keeps
    backup: SharedStoreBackup | ReplicationBackup | None = None  # the policy of a hosted backup


@dataclass(frozen=True)
class HostedBackup:
    """The record of a hosted backup: the primary's node id and address, and the number of the backup at its host.

    The folders are those of the primary, for a shared store; "" with replication.
    """

    node_id: str
    number: int
    host: str
    port: int
    journal: str = ""
    paging: str = ""
    large_messages: str = ""

    @property
    def name(self) -> str:
        """Returns its name as a broker, as in Artemis."""
        return f"colocated_backup_{self.number}"
