"""What a passive member of a group is made from, and what it ends with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from atalanta.ha.last_instant import NO_INSTANT, LastInstant
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.replication.follower import Follower

if TYPE_CHECKING:
    from atalanta.cluster.replication.passive.active_search import Candidate
    from atalanta.ha.guard_port import GuardPort
    from atalanta.ha.register_port import RegisterPort
    from atalanta.ha.replication.copy_replay import CopyReplay
    from atalanta.kernel.ports import Disk, Ids, LargeFiles, Links, Timers, Trace, Wire
    from atalanta.store.config import JournalConfig
    from atalanta.store.ports import GrowingReplay
    from atalanta.wire.core.transport import TransportConfiguration

# How long an active node may take to read its journal before it can be followed.
PATIENCE_NS: Final = 60_000_000_000


@dataclass(eq=False, repr=False)
class BackupConfig:
    """The configuration of a passive member. `node_id` and `journal` are None in a folder without a node id.

    `key` is that of the handshake, `connectors` are told to the active node (member_handshake.Hello), `folder` is named
    in errors. `patience_ns`: an active node that has not served yet may read its journal for so long. `repair`: a
    damaged journal is cut behind its whole front, because the member has a new name. `learned`: the node id is that of
    an active node, which has told it; such a member never founds the group. An `asynchronous` member serves only at an
    operator's order. `granted_ns` is the length that `BackupPorts.keep_lease` has stored, 0 if it has none.
    """

    member: str
    node_id: bytes | None
    group: str
    candidates: list[Candidate]
    terms: LeaseTerms
    primary: bool
    journal: JournalConfig | None
    key: bytes
    connectors: dict[str, TransportConfiguration] = field(default_factory=dict)
    folder: str = "the data folder"
    patience_ns: int = PATIENCE_NS
    repair: bool = False
    learned: bool = False
    asynchronous: bool = False
    granted_ns: int = 0


def nothing() -> None:
    """Stands for a port that is not needed."""


def kept_nowhere(length_ns: int) -> None:
    """Stands for `BackupPorts.keep_lease` where all members have leases of one length."""


@dataclass(eq=False, repr=False)
class BackupPorts:
    """The ports of a passive member. `settings` stores the management settings of the active node, and returns whether
    they have changed; OSError. `prepare` makes the node that would take over, with these settings, and returns its
    replay; None if the node will read its journal.

    `keep_lease` stores the length of the lease that this member grants, durably, for its later lives; OSError.

    Without `guard` the end of the active process is known by its lease only. `listen` lets clients connect and wait
    at the ports of this member, which may soon serve.
    """

    wire: Wire
    disk: Disk
    large: LargeFiles
    timers: Timers
    links: Links
    ids: Ids
    trace: Trace
    register: RegisterPort
    settings: Callable[[bytes], bool]
    guard: GuardPort | None = None
    listen: Callable[[], None] = nothing
    prepare: Callable[[], GrowingReplay | None] = nothing
    keep_lease: Callable[[int], None] = kept_nowhere


@dataclass(frozen=True)
class MemberIdentity:
    """The outcome of a member without a node id: the shell stores it and begins again. `founded`: it is a new one."""

    node_id: bytes
    founded: bool = False


@dataclass(frozen=True)
class Damaged:
    """The outcome of a member whose journal is damaged, when an active node is there that has everything.

    The shell gives the member a new name, because the register may say of the old one that it has everything, and
    begins again with `repair`.
    """

    why: str


@dataclass(frozen=True)
class NotTakenOver:
    """The outcome of a member at whose ports clients wait, though it does not take over.

    The shell binds them anew, which ends the connections, and begins again.
    """


@dataclass(eq=False)
class TakenOver:
    """The outcome of a member that has become active: nothing waits for the disk. `replay` is that of the node that was
    prepared last, None if it must read its journal.

    `last` is the last instant of the former node's clock that this process has heard of, by the clock of its shell;
    NO_INSTANT if it has heard no active node. The new node's clock begins there if that is ahead.
    """

    follower: Follower
    last: LastInstant = NO_INSTANT
    replay: CopyReplay | None = None
    why: str = ""


@dataclass(frozen=True)
class BackupStatus:
    """The state of a passive member. `active` is "" and `epoch` 0 while it follows nobody.

    `durable` is its last lsn on disk, `behind` the number of records that it lacks as far as it knows.
    """

    epoch: int
    active: str
    durable: int
    behind: int
    in_sync: tuple[str, ...]
    waits: str = ""  # for what, without an active node
