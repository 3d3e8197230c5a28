"""Pairs and replicated groups: an active node, and the passive members that would serve for it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ReplicaView:
    """A follower in a replicated group, as its active node sees it. `behind` counts the records that it lacks.

    `behind_ms`: for how long it has lacked some, or is away. `at` is the host:port that it announces.
    """

    member: str
    in_sync: bool
    asynchronous: bool = False
    behind: int = 0
    behind_ms: int = 0
    connected: bool | None = None
    at: str | None = None


@dataclass
class ReplicationView:
    """A replicated group, as its active node sees it. `register_problem`: why the manager does not answer, or ""."""

    epoch: int = 0
    min_in_sync: int = 1
    register_problem: str = ""
    only_voter: bool = False
    silent_voters: dict[str, str] = field(default_factory=dict)
    """Why a voter of its register does not answer, by host:port."""
    replicas: list[ReplicaView] = field(default_factory=list)


@dataclass
class PassiveView:
    """A passive member of a pair or group: it gives no sessions, so this is what the active node says of it."""

    name: str
    at: str | None = None
    in_sync: bool | None = None
    asynchronous: bool = False
    connected: bool | None = None
    behind: int | None = None


@dataclass
class PairView:
    """A pair or replicated group. `active` is the node id; `kind` is `shared store`, `replication` or "" (Artemis)."""

    active: str
    kind: str
    epoch: int | None = None
    passive: list[PassiveView] = field(default_factory=list)
