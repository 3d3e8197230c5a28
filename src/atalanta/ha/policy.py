"""The high-availability policy of a node."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from atalanta.kernel.option import OptionGroup, option

if TYPE_CHECKING:
    from atalanta.ha.manager_config import ManagerConfig
    from atalanta.ha.policy_elements import ColocationConfig, HostedBackup

NONE: Final = "none"
SHARED_STORE: Final = "shared-store"
REPLICATION: Final = "replication"

PRIMARY: Final = "primary"
BACKUP: Final = "backup"
COLOCATED: Final = "colocated"


@dataclass(eq=False, repr=False)
class HaPolicy(OptionGroup):
    """The policy of one node: its form and role, and the values that the element of its role has.

    Fields with a description are keys of the table `[ha]` of atalanta.toml.
    """

    form: str = NONE  # NONE, SHARED_STORE or REPLICATION
    role: str = PRIMARY  # PRIMARY or BACKUP
    failover_on_shutdown: bool = False
    allow_failback: bool = True
    restart_backup: bool = True
    group_name: str | None = None  # replication: pairs only with nodes of the same group
    cluster_name: str | None = None  # replication: the cluster connection that finds the others
    manager: ManagerConfig | None = None  # replication; None: a primary that serves alone
    lease_ms: int = option(
        2000,
        "lease_ms",
        "silence of the active node's renewals after which another node may take over, if the end of its process"
        " cannot be seen; the active node renews four times as often",
        unit="ms",
        minimum=200,
        maximum=60_000,
    )
    min_in_sync: int = option(
        1,
        "min_in_sync",
        "replication: with fewer members in sync, the active node among them, nothing is confirmed",
        unit="count",
        minimum=1,
        maximum=16,
    )
    failback_after_s: int = option(
        30,
        "failback_after_s",
        "replication: how long a primary is in sync before an active backup with allow-failback hands over to it",
        unit="s",
        minimum=0,
    )
    disk_timeout_ms: int = option(
        5000,
        "disk_timeout_ms",
        "replication: an active node whose disk has not answered for so long ends, and a member in sync serves;"
        " 0: it waits for its disk",
        unit="ms",
        minimum=0,
    )
    asynchronous: bool = option(
        False,
        "asynchronous",
        "replication, a backup: nobody waits for this member, and it serves only when `atalanta ha promote` orders it;"
        " for a copy in another data centre",
    )
    guard_port: int = option(
        0,
        "guard_port",
        "replication: the port where the guard of this node listens for the other members; 0 takes a free one",
        unit="port",
        minimum=0,
        maximum=65_535,
    )
    coordination_id: str | None = None  # replication: the node id of the group
    colocation: ColocationConfig | None = None  # of a primary that may host backups of others in processes of its own
    hosted: HostedBackup | None = None  # of a backup that such a primary hosts

    @property
    def equals(self) -> bool:
        """Returns whether nodes with this policy are equals: any may begin, nobody gives back, and each waits for the
        others. They are primaries whose stop lets another one serve."""
        equal = self.role == PRIMARY and self.failover_on_shutdown and self.colocation is None
        return self.form == SHARED_STORE and equal

    def take(self, values: Any) -> None:
        """Takes over the values of the element of a role."""
        for entry in fields(values):
            if hasattr(self, entry.name):
                value = getattr(values, entry.name)
                setattr(self, entry.name, None if value == "" else value)
