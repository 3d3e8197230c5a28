"""The state of the node that its shell tells management."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

COLOCATED_POLICY: Final = "Colocated"


@dataclass(frozen=True)
class ReplicaStatus:
    """A follower as its active node sees it. `behind` counts the records that it has not confirmed, and since
    `behind_s` it lacks any, or is away. `place` is the host:port that it announces, "" for none."""

    member: str
    in_sync: bool
    asynchronous: bool
    behind: int
    behind_s: float
    place: str = ""


@dataclass(frozen=True)
class HaStatus:
    """The high availability of a node that serves. `policy` is a text of Artemis (HAPolicyConfiguration.TYPE)."""

    policy: str = "Primary Only"
    shared_store: bool = False
    failover_on_shutdown: bool = False
    epoch: int = 0
    """The number of takeovers of a shared store or a replicated group; Artemis' ActivationSequence."""
    replicas: tuple[ReplicaStatus, ...] = ()
    """The followers of an active node."""
    min_in_sync: int = 1
    register_problem: str = ""
    """Why the manager of the group does not answer."""
    connected: Collection[str] = ()
    """The names of the followers that are connected, as they are when it is read."""
    only_voter: bool = False
    """The only voter of the group's register is in the guard of one of its members."""
    silent_voters: Mapping[str, str] = field(default_factory=dict)
    """Why a voter of the group's register does not answer, by its host:port."""
    waiting: tuple[str, ...] | None = None
    """host:port of the processes that wait for the shared store; None before they were looked for."""

    @property
    def replica_sync(self) -> bool:
        """Returns whether a follower that is connected has everything that was confirmed."""
        return any(each.in_sync and each.member in self.connected for each in self.replicas)


@dataclass(frozen=True)
class PassiveStatus:
    """The high availability of a process that waits or follows. It gives no sessions, so its HTTP server tells what the
    resource `broker` of the active node tells. `policy` as in HaStatus; `replica_sync`: it has all that was confirmed;
    `behind`: records that it lacks; `waits`: why it follows nobody, "" if it does."""

    policy: str
    shared_store: bool
    replica_sync: bool = False
    epoch: int = 0
    behind: int = 0
    waits: str = ""

    def attributes(self) -> dict[str, object]:
        """Returns the attributes of the resource `broker` by name (ActiveMQServerControl)."""
        return {
            "Active": False,
            "Backup": True,
            "HAPolicy": self.policy,
            "SharedStore": self.shared_store,
            "ReplicaSync": self.replica_sync,
            "ActivationSequence": self.epoch,
        }


class NodeStatus:
    """The version, the start and the surroundings of a node. A `disk_used` below 0 means unknown."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.started_at: int = 0  # from when on the node serves clients (ns)
        self.disk_used: float = -1.0
        self.web_started: bool = False
        self.ha = HaStatus()

    def uptime_ms(self, now: int) -> int:
        """Returns the milliseconds since the start."""
        return max(0, now - self.started_at) // 1_000_000
