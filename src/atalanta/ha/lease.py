"""The lease: which node may serve until which instant, and when another one may take over.

Every instant is of the own monotonic clock, in nanoseconds; clocks are never compared. Two assumptions are made:
each clock runs at a rate of 1 ± drift, and it does not stand still. A process that is paused keeps both. A virtual
machine that is paused may break the second one, so confirmations never depend on a lease: for a replicated group
they need the answers of the in-sync members (replication.py), for a shared folder `FolderHolder.may_confirm`.

- The holder counts from the instant BEFORE it sent the request that was granted.
- The granter counts from the instant of receipt, and waits longer by the ratio of the fastest to the slowest clock.

So no bound on the delay of messages is needed. Deliveries check the lease at once before each batch. A batch whose
check was in time may leave late, if the process was paused in between: those messages are delivered again by the
successor, and their acknowledgements are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# 0.1 %: crystals differ by 100, time synchronisation slews by up to 500 parts per million.
DRIFT_PPM: Final = 1000
MILLION: Final = 1_000_000


class LeaseTerms:
    """The length of a lease for its holder, and the longer time for which its granter waits."""

    def __init__(self, length_ns: int, drift_ppm: int = DRIFT_PPM) -> None:
        if not 0 <= drift_ppm < MILLION:
            raise ValueError(f"a drift of {drift_ppm} parts per million: 0 to {MILLION - 1} are possible")
        self.length_ns = length_ns
        # Rounded up: length · (1 + drift) / (1 - drift).
        self.wait_ns: int = -(-length_ns * (MILLION + drift_ppm) // (MILLION - drift_ppm))


# --- replicated group ---------------------------------------------------------------------------------


class Lease:
    """The active node's lease: every member that could take over must have answered a recent heartbeat."""

    def __init__(self, terms: LeaseTerms) -> None:
        self.terms = terms
        # By member: when the newest heartbeat that it has answered was sent.
        self.sent_ns: dict[str, int] = {}

    def on_answer(self, member: str, sent_ns: int) -> None:
        """Records that `member` has answered the heartbeat that was sent at `sent_ns`."""
        if sent_ns > self.sent_ns.get(member, -1):
            self.sent_ns[member] = sent_ns

    def holds(self, now: int, members: list[str]) -> bool:
        """Tells whether none of `members` takes over at `now`. Without members nobody can, and no lease is needed."""
        for member in members:
            sent = self.sent_ns.get(member, -1)
            if sent < 0 or now >= sent + self.terms.length_ns:
                return False
        return True


class Promise:
    """A member's promise not to take over. A process that has just started keeps the one that an earlier life gave."""

    def __init__(self, terms: LeaseTerms, now: int) -> None:
        self.terms = terms
        self.until_ns: int = now + terms.wait_ns

    def renew(self, now: int) -> None:
        """Extends the promise on receipt of a heartbeat, before it is answered."""
        self.until_ns = max(self.until_ns, now + self.terms.wait_ns)

    def release(self) -> None:
        """Ends the promise: the node that had it has said, or proven, that it serves no more."""
        self.until_ns = 0

    def is_over(self, now: int) -> bool:
        """Tells whether the member may take over at `now`."""
        return now >= self.until_ns


# --- shared folder ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FolderRecord:
    """The content of the lease file: the epoch, its holder, and the count of renewals.

    `holder` is different for each process. The file is replaced (write, sync, rename) under a lock that ends with the
    process, and only if it is as it was read.
    """

    epoch: int
    holder: str
    renewals: int


class FolderHolder:
    """The holder of the lease file for one epoch. `lost` is final: the process stops serving and starts again.

    Confirmations need no clock: the journal is written and synced first, then the lease file is read. Another node
    writes the lease file first, then reads the journal. So one of the two sees the other.
    """

    def __init__(self, terms: LeaseTerms, taken: FolderRecord, sent_ns: int) -> None:
        """`taken`: what was written to take the lease; `sent_ns`: the instant before that."""
        self.terms = terms
        self.record = taken
        self.until_ns: int = sent_ns + terms.length_ns
        self.lost: bool = False

    def renewed(self) -> FolderRecord:
        """Returns the record to write instead of `record`. Read the clock before, for `on_renewed`."""
        return FolderRecord(self.record.epoch, self.record.holder, self.record.renewals + 1)

    def on_renewed(self, written: FolderRecord, sent_ns: int) -> None:
        """Records that `written` replaced the lease file. A write whose outcome is unknown renews nothing.

        Neither does one that an earlier write of unknown outcome had anticipated: candidates saw no change.
        """
        if not self.lost and written.renewals > self.record.renewals:
            self.record = written
            self.until_ns = max(self.until_ns, sent_ns + self.terms.length_ns)

    def on_read(self, record: FolderRecord) -> None:
        """Records what the lease file has: its renewals after a write of unknown outcome, or another holder."""
        if record.epoch != self.record.epoch or record.holder != self.record.holder:
            self.lost = True
        else:
            self.record = record

    def may_deliver(self, now: int) -> bool:
        """Tells whether a batch of deliveries may leave at `now`."""
        return not self.lost and now < self.until_ns

    def may_confirm(self, record: FolderRecord) -> bool:
        """Tells whether what was synced before `record` was read may be confirmed."""
        self.on_read(record)
        return not self.lost


class FolderCandidate:
    """The waiting node's view of the lease file: it may take the lease when nothing was renewed for long enough."""

    def __init__(self, terms: LeaseTerms, holder: str) -> None:
        self.terms = terms
        self.holder = holder
        self.seen: FolderRecord | None = None
        self.since_ns: int = 0

    def on_read(self, now: int, record: FolderRecord) -> None:
        """Records what the lease file has; `now` is the instant after it was read."""
        if record != self.seen:
            self.seen = record
            self.since_ns = now

    def may_take(self, now: int) -> bool:
        """Tells whether the lease of the holder has ended at `now`."""
        return self.seen is not None and now >= self.since_ns + self.terms.wait_ns

    def taken(self) -> FolderRecord:
        """Returns the record to write, if the file still has `seen`. Each epoch works in a directory of its own."""
        seen = self.seen
        if seen is None:
            raise AssertionError("the lease file was not read")
        return FolderRecord(seen.epoch + 1, self.holder, 0)
