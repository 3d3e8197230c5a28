"""The lease of a shared folder: an epoch is a directory, its holder renews a record in it, and a candidate takes the
next one.

`mkdir` of the next number is the compare-and-set: it succeeds once. Directories of epochs are never removed, so that
no number is used twice. The rules need two orders of steps, and clocks only for deliveries:

- Confirm: the holder writes and syncs its journal, then looks for the next epoch. The taker makes the next epoch,
  then reads the journal. So one of the two sees the other, whatever pauses.
- Deliver: the holder writes its record, then looks for the next epoch. Only if there is none does the lease count,
  from the instant BEFORE the write. The taker makes the next epoch, then reads the record again. If the holder has
  renewed meanwhile, the taker waits until that lease must be over. An epoch becomes complete only after that wait:
  so a later taker needs to know nothing about the epochs before the newest complete one.

- Alone: a holder that finds no file of another process need not write. Its lease counts from the instant before it
  looked for one. A candidate writes its file, again and again, and counts silence from its first write without a gap
  since: the holder has found no file only before that. It renews by writing as soon as it has found one.

Every instant is of the own monotonic clock, in nanoseconds (see lease.py for the arithmetic).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from atalanta.ha.last_instant import NO_INSTANT, LastInstant
from atalanta.ha.lease import LeaseTerms

ACTIVE: Final = "active"
RELEASED: Final = "released"  # the holder has ended and gives the folder to whoever comes first
STOPPED: Final = "stopped"  # the holder has ended, and no backup shall take its place


@dataclass(frozen=True)
class FolderRecord:
    """The record of an epoch's holder. Each attempt to renew it has another count, so that a late write is a change.

    `length_ns` is the holder's lease, `clock_ns` the node's clock in nanoseconds since 1970 at the renewal, which is
    that of the former holder until the node begins. `boot` is the boot id of the holder's machine, "" if unknown.
    `patience_ns`: a holder that reads a large journal cannot renew meanwhile, and sends nothing; nobody shall take the
    next epoch for so long, unless its process has ended.
    """

    epoch: int
    holder: str
    renewals: int
    state: str = ACTIVE
    length_ns: int = 0
    clock_ns: int = 0
    boot: str = ""
    patience_ns: int = 0

    @property
    def has_served(self) -> bool:
        """Returns whether output may have left: the holder has asked for patience until then."""
        return self.patience_ns == 0


class EpochUnmarked(Exception):
    """An epoch that was served has lost the mark of its completeness; `epoch` is its number."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"epoch {epoch} was served, and is not marked as complete")
        self.epoch = epoch


@dataclass(frozen=True)
class EpochView:
    """The newest epoch as a candidate has read it; `epoch` 0: there is none yet.

    `record` is None if there is none, or if it cannot be read. `content` is what was read, to notice each change.
    `holder_gone` tells that the holder's process has surely ended.
    """

    epoch: int
    complete: bool = False
    record: FolderRecord | None = None
    content: bytes = b""
    holder_gone: bool = False

    @property
    def state(self) -> str:
        """Returns the state of the epoch: "active", "released", "stopped"; "none" without any epoch."""
        if self.epoch == 0:
            return "none"
        return ACTIVE if self.record is None else self.record.state

    @property
    def released(self) -> bool:
        """Returns whether the holder has given the folder to whoever comes first."""
        return self.state == RELEASED

    def has_ended(self, boot: str) -> bool:
        """Returns whether nobody writes to the files any more, or sends anything, as a machine with that boot id knows.

        The holder has ended in good order, or was a process of that machine that has ended. (A lock that is free after
        it was locked is not enough: a network file system may have taken it from a holder that it does not reach.)
        Epoch 0 has ended: whoever makes the first epoch has locked the folder before.
        """
        here = self.record is not None and self.record.boot == boot != ""
        return self.state != ACTIVE or (here and self.holder_gone)


class FolderHolder:
    """The holder of one epoch. `lost` is final: the process ends its node."""

    def __init__(self, terms: LeaseTerms, epoch: int, holder: str, boot: str = "", patience_ns: int = 0) -> None:
        """`patience_ns`: what the records say until `serves` is called."""
        self.terms = terms
        self.patience_ns = patience_ns
        self.record = FolderRecord(epoch, holder, 0, ACTIVE, terms.length_ns, 0, boot)
        # The lease begins with the first renewal.
        self.until_ns: int = 0
        self.lost: bool = False

    def next_record(self, clock_ns: int, state: str = ACTIVE) -> FolderRecord:
        """Returns the record to write. Read the monotonic clock before, for `on_renewed`."""
        last = self.record
        self.record = FolderRecord(
            last.epoch, last.holder, last.renewals + 1, state, last.length_ns, clock_ns, last.boot, self.patience_ns,
        )  # fmt: skip
        return self.record

    @property
    def starts(self) -> bool:
        """Returns whether the holder has not begun to serve, and asks for patience."""
        return self.patience_ns > 0

    def serves(self) -> None:
        """Records that the holder has begun to serve: from now on it renews in time."""
        self.patience_ns = 0

    def on_renewed(self, sent_ns: int, next_exists: bool) -> None:
        """Records that the write of a record has succeeded, and what a look for the next epoch has found AFTER it.

        Or that a look, which began at `sent_ns`, has found no file of another process.
        """
        self.on_look(next_exists)
        if not self.lost:
            self.until_ns = max(self.until_ns, sent_ns + self.terms.length_ns)

    def must_write(self) -> bool:
        """Returns whether the written record is not true any more: it still asks for patience."""
        return self.record.renewals == 0 or self.record.patience_ns != self.patience_ns

    def on_look(self, next_exists: bool) -> None:
        """Records whether the next epoch exists."""
        if next_exists:
            self.lost = True
            self.until_ns = 0

    def may_deliver(self, now: int) -> bool:
        """Returns whether output may leave at `now`."""
        return now < self.until_ns

    def may_confirm(self, next_exists: bool) -> bool:
        """Returns whether what was synced before the look for the next epoch may be confirmed."""
        self.on_look(next_exists)
        return not self.lost


class FolderCandidate:
    """The waiting node's view of the folder: when it may make the next epoch, and when it may serve it."""

    def __init__(self, terms: LeaseTerms) -> None:
        self.terms = terms
        self.seen: EpochView | None = None
        self.since_ns: int = 0

    def on_look(self, now: int, view: EpochView) -> None:
        """Records what was read; `now` is the instant after that."""
        seen = self.seen
        if seen is None or seen.epoch != view.epoch or seen.content != view.content:
            self.since_ns = now
        self.seen = view

    def on_announced(self, since_ns: int) -> None:
        """Records since when this process tells of itself without a gap: silence counts from there.

        A holder that knows of no other process renews its lease by looks alone (see above).
        """
        self.since_ns = max(self.since_ns, since_ns)

    def may_take(self, now: int, primary: bool) -> str:
        """Returns why the next epoch may be made at `now`, "" if it may not."""
        view = self.seen
        if view is None:
            return ""
        if view.epoch == 0:
            return "no node has served this folder yet" if primary else ""
        if view.state == RELEASED:
            return "the holder has released the folder"
        if view.state == STOPPED:
            return "the holder was stopped" if primary else ""
        if view.holder_gone:
            return "the holder's process has ended"
        if now >= self.since_ns + self.silence_ns(view):
            return f"no renewal for {(now - self.since_ns) / 1e9:.1f} s"
        return ""

    def silence_ns(self, view: EpochView) -> int:
        """Returns how long the holder may be silent before the next epoch may be made."""
        patience_ns = 0 if view.record is None else view.record.patience_ns
        return max(patience_ns, self._wait_ns(view))

    def wait_ns(self, made_ns: int, again: EpochView) -> int:
        """Returns how long after `made_ns` the taker must wait before it serves: until all earlier leases are over.

        `made_ns` is an instant after the new epoch was made, `again` the epoch before it, read after that.
        """
        if again.epoch == 0:
            return 0
        if not again.complete:
            # Its holder may have taken it while the lease of the epoch before was not over yet.
            return self._wait_ns(again)
        if again.state != ACTIVE or again.holder_gone:
            return 0
        seen = self.seen
        if seen is not None and seen.epoch == again.epoch and seen.content == again.content:
            return max(0, self.since_ns + self._wait_ns(again) - made_ns)
        return self._wait_ns(again)  # renewed just before the new epoch was made

    def last_instant(self, read_ns: int, record: FolderRecord | None) -> LastInstant:
        """Returns the last instant of a holder's clock, from its record as it was read at `read_ns`.

        If that is the record that was seen before, its clock has run on since then.
        """
        if record is None:
            return NO_INSTANT
        seen = self.seen
        same = seen is not None and seen.record == record
        return LastInstant(record.clock_ns, self.since_ns if same else read_ns)

    def inherited_instant(
        self, read_ns: int, since: int, before: int, look: Callable[[int], FolderRecord | None]
    ) -> LastInstant:
        """Returns the last instant of the clock of the newest epoch from `since` on, before `before`, that has one.

        `look` returns the record of one epoch. The takers of those behind `since` have not served, and wrote on what
        they knew of it.
        """
        for number in range(before - 1, max(0, since - 1), -1):
            record = look(number)
            if record is not None and record.clock_ns:
                return self.last_instant(read_ns, record)
        return NO_INSTANT

    def _wait_ns(self, view: EpochView) -> int:
        """Returns the longer one of the own waiting time and that for the holder's lease."""
        record = view.record
        if record is None or record.length_ns <= self.terms.length_ns:
            return self.terms.wait_ns
        return LeaseTerms(record.length_ns).wait_ns


class Announcement:
    """The own file among the members: since when it has been written again and again, without a gap.

    A holder may remove a file that has not changed for much longer than `gap_ns`, by any clock. `since_ns` is -1 if
    nothing was written yet.
    """

    def __init__(self, gap_ns: int) -> None:
        self.gap_ns = gap_ns
        self.since_ns: int = -1
        self.written_ns: int = -1

    def on_written(self, before_ns: int, after_ns: int) -> None:
        """Records that the file was written between two instants."""
        if self.written_ns < 0 or before_ns > self.written_ns + self.gap_ns:
            self.since_ns = after_ns
        self.written_ns = before_ns

    def end(self) -> None:
        """Records that the file is gone."""
        self.since_ns = self.written_ns = -1


def inherited_epoch(below: int, look: Callable[[int], EpochView]) -> int:
    """Returns the newest complete epoch below that number; 0 if none is.

    `look` reads one epoch. That of a taker that has crashed or failed is not complete, and is passed over.
    EpochUnmarked for one that was served: what was confirmed there would be passed over.
    """
    for number in range(below - 1, 0, -1):
        view = look(number)
        if view.complete:
            return number
        if view.record is not None and view.record.has_served:
            raise EpochUnmarked(number)
    return 0
