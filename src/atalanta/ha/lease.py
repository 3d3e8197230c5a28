"""The lease: which node may serve until which instant, and when another one may take over.

Every instant is of the own monotonic clock, in nanoseconds; clocks are never compared. Two assumptions are made:
each clock runs at a rate of 1 ± drift, and it does not stand still. A process that is paused keeps both. A virtual
machine that is paused may break the second one, so confirmations never depend on a lease: for a replicated group
they need the answers of the in-sync members (replication.py), for a shared folder a look for the next epoch
(folder_lease.py).

- The holder counts from the instant BEFORE it sent the request that was granted.
- The granter counts from the instant of receipt, and waits longer by the ratio of the fastest to the slowest clock.

So no bound on the delay of messages is needed. Deliveries check the lease at once before each batch. A batch whose
check was in time may leave late, if the process was paused in between: those messages are delivered again by the
successor, and their acknowledgements are refused.
"""

from __future__ import annotations

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
        self.drift_ppm = drift_ppm
        # Rounded up: length · (1 + drift) / (1 - drift).
        self.wait_ns: int = -(-length_ns * (MILLION + drift_ppm) // (MILLION - drift_ppm))

    def wait_for(self, length_ns: int) -> int:
        """Returns the time for which a granter waits whose holder counts `length_ns`, but not less than the own one."""
        return self.wait_ns if length_ns <= self.length_ns else LeaseTerms(length_ns, self.drift_ppm).wait_ns


class ActiveLease:
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
        """Returns whether none of `members` takes over at `now`. Without members nobody can, and no lease is needed."""
        for member in members:
            sent = self.sent_ns.get(member, -1)
            if sent < 0 or now >= sent + self.terms.length_ns:
                return False
        return True


class Promise:
    """A member's promise not to take over. A process that has just started keeps the one that an earlier life gave.

    It lasts for the longer one of two leases: the holder counts its own, and may be configured with another one.
    """

    def __init__(self, terms: LeaseTerms, now: int, granted_ns: int = 0) -> None:
        """`granted_ns` is the length of the lease that an earlier life has granted, 0 if it has granted none."""
        self.terms = terms
        self.wait_ns: int = terms.wait_for(granted_ns)
        self.until_ns: int = now + self.wait_ns

    def grant(self, length_ns: int) -> None:
        """Records the length of the holder's lease, before its first heartbeat is answered."""
        self.wait_ns = self.terms.wait_for(length_ns)

    def renew(self, now: int) -> None:
        """Extends the promise on receipt of a heartbeat, before it is answered."""
        self.until_ns = max(self.until_ns, now + self.wait_ns)

    def release(self) -> None:
        """Ends the promise: the node that had it has said, or proven, that it serves no more."""
        self.until_ns = 0

    def is_over(self, now: int) -> bool:
        """Returns whether the member may take over at `now`."""
        return now >= self.until_ns
