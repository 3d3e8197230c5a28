"""The messages between the members of a group, and the actions that their rules ask of a shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from atalanta.ha.register import CompareAndSet, Read, Register
from atalanta.ha.replication.epoch_table import EpochTable

# --- messages between members ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Offer:
    """Begins a stream: the epoch table of the active node's journal, its last lsn, and the commit point.

    `lease_ns` is the length of the lease that the active node counts. A follower keeps it before it answers a
    heartbeat.
    """

    epoch: int
    table: EpochTable
    last: int
    commit: int
    forced_epoch: int
    lease_ns: int


@dataclass(frozen=True)
class Block:
    """One block of the journal, records `first` to `last`; the shell sends the bytes with it."""

    epoch: int
    first: int
    last: int
    commit: int


@dataclass(frozen=True)
class Heartbeat:
    """The request for a lease, sent at `sent_ns` of the active node's steady clock.

    `clock_ns` is the node's clock then, in nanoseconds since 1970. The shell adds it, as in `HandOver` and `Ended`.
    """

    epoch: int
    sent_ns: int
    commit: int
    clock_ns: int = 0


@dataclass(frozen=True)
class HandOver:
    """The active node has stopped for good at `lsn`, every required member has that, and this is the register."""

    epoch: int
    lsn: int
    version: int
    register: Register
    clock_ns: int = 0


@dataclass(frozen=True)
class Ended:
    """The active process of `epoch` serves no more. It says so itself, or a guard that has seen its end."""

    epoch: int
    clock_ns: int = 0


@dataclass(frozen=True)
class Answer:
    """A follower's state: last stored lsn, durable lsn; `sent_ns` of the answered heartbeat, or -1."""

    epoch: int
    last: int
    durable: int
    sent_ns: int


@dataclass(frozen=True)
class Refusal:
    """The follower does not follow this stream; `epoch` is the highest one that it knows."""

    epoch: int


Message: TypeAlias = Offer | Block | Heartbeat | HandOver | Ended | Answer | Refusal


# --- actions for the shell --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Send:
    """Sends a message to a member."""

    member: str
    message: Message


@dataclass(frozen=True)
class Store:
    """Appends the received records to the journal and syncs them; `Follower.on_durable` follows."""

    first: int
    last: int


@dataclass(frozen=True)
class Cut:
    """Cuts the journal behind `lsn`, before the next action. The bytes are kept aside and reported.

    `confirmed`: some of them may have been confirmed, because an operator promoted a member that lacked them.
    """

    lsn: int
    confirmed: bool


@dataclass(frozen=True)
class Confirm:
    """Answers everything that waits for an lsn up to this one."""

    lsn: int


@dataclass(frozen=True)
class Activate:
    """Makes an `Active` of this follower: it has begun `epoch`."""

    epoch: int


@dataclass(frozen=True)
class Stop:
    """Ends all service at once: no confirmation, no delivery, no bridge."""

    why: str


Action: TypeAlias = Send | Store | Cut | Confirm | Activate | Stop | Read | CompareAndSet
