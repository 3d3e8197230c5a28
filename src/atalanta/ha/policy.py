"""The high-availability policy of a node, and the elements of `<ha-policy>` that say it.

Where Artemis' code and its schema have different defaults, the default is the one of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.kernel.option import OptionGroup, ignored, option

NONE: Final = "none"
SHARED_STORE: Final = "shared-store"
REPLICATION: Final = "replication"

PRIMARY: Final = "primary"
BACKUP: Final = "backup"
COLOCATED: Final = "colocated"

_UNREAD: Final = "not read by Artemis 2.44 either"


@dataclass(eq=False, repr=False)
class HaPolicy(OptionGroup):
    """The policy of one node: its form and role, and the values that the element of its role has.

    Fields with a description are keys of the table `[ha]` of atalanta.toml.
    """

    form: str = NONE  # NONE, SHARED_STORE or REPLICATION
    role: str = PRIMARY  # PRIMARY, BACKUP or COLOCATED
    failover_on_shutdown: bool = False
    allow_failback: bool = True
    restart_backup: bool = True
    lease_ms: int = option(
        2000,
        "lease_ms",
        "silence of the active node's renewals after which another node may take over, if the end of its process"
        " cannot be seen; the active node renews four times as often",
        unit="ms",
        minimum=200,
        maximum=60_000,
    )


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
