"""Faults that are planted in the world of a shared folder (folder_world.py): each must be found."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atalanta.ha.folder_lease import (
    ACTIVE,
    EpochView,
    FolderCandidate,
    FolderHolder,
    FolderRecord,
)
from tests.ha.epoch_folder import LENGTH, NEW, PLAIN, SERVED, FolderParts, FolderScope


class RenewsWithoutLook(FolderHolder):
    def on_renewed(self, sent_ns: int, next_exists: bool) -> None:
        super().on_renewed(sent_ns, False)


class RenewsFromTheEnd(FolderHolder):
    """The lease counts from far later than the clock was read."""

    def on_renewed(self, sent_ns: int, next_exists: bool) -> None:
        super().on_renewed(sent_ns + 6, next_exists)


class UnknownRenews(FolderHolder):
    """The lease is extended when a renewal begins, not when it has succeeded."""

    def next_record(self, clock_ns: int, state: str = ACTIVE) -> FolderRecord:
        self.until_ns += self.terms.length_ns if self.record.renewals else 0
        return super().next_record(clock_ns, state)


class RepeatsRecords(FolderHolder):
    """A second attempt writes what the first one had written, perhaps."""

    def next_record(self, clock_ns: int, state: str = ACTIVE) -> FolderRecord:
        if self.record.renewals == 2:
            return self.record
        return super().next_record(clock_ns, state)


class WaitsNever(FolderCandidate):
    def wait_ns(self, made_ns: int, again: EpochView) -> int:
        return 0


class TrustsIncomplete(FolderCandidate):
    """The end of a taker is taken for the end of the holder before it."""

    def wait_ns(self, made_ns: int, again: EpochView) -> int:
        return super().wait_ns(made_ns, replace(again, complete=True))


class CountsFromFirstLook(FolderCandidate):
    """The candidate waits from its first look, also when the holder has renewed since."""

    def on_look(self, now: int, view: EpochView) -> None:
        since, seen = self.since_ns, self.seen
        super().on_look(now, view)
        if seen is not None:
            self.since_ns = since


class WaitsForRecord(FolderCandidate):
    """The candidate knows no end of a taker that has crashed before it had a record."""

    def may_take(self, now: int, primary: bool) -> str:
        if self.seen is not None and self.seen.epoch and self.seen.record is None:
            return ""
        return super().may_take(now, primary)


LEASES = FolderScope(renewals=2, ticks=5, rates=(3, 5))


@dataclass(frozen=True)
class FolderFault:
    """A planted fault, a scope in which it does harm, and the word of the promise that it breaks."""

    parts: FolderParts
    finds: str
    scope: FolderScope = LEASES


COMMITS = FolderScope(messages=1, early=1, ticks=2, rates=(8, 8))
UNKNOWN = FolderScope(renewals=2, ticks=3, unknown=1, rates=(4, 5))
TAKERS = FolderScope(takes=2, early=1, crashes=1, ticks=1, begun=True, proof=True, rates=(16, 16, 16))
CLOCKS = FolderScope(ticks=5, rates=(4, 4), behind=20, crashes=1, proof=True, ids=2)
MARKS = FolderScope(takes=2, crashes=2, proof=True, ids=3, rates=(4, 4, 4))

# Two equals. On a new folder and on one of a node without a pair, one may crash in its first start.
EQUALS = FolderScope(start=NEW, equals=True, proof=True, takes=2, messages=1, boots=("one", "one"))
EQUAL_SCOPES = {
    "on a new folder": replace(EQUALS, crashes=1, takes=3, ticks=2, rates=(8, 8)),
    "on a new folder, on two machines": replace(
        EQUALS, crashes=1, early=1, ticks=3, rates=(6, 9), boots=("one", "two")
    ),
    "on one of a node without a pair": replace(
        EQUALS, start=PLAIN, older=1, crashes=1, prunes=1, ticks=2, rates=(8, 8)
    ),
    "whose take fails": replace(
        EQUALS, start=SERVED, begun=True, messages=0, failures=1, early=1, ticks=2, rates=(16, 16), boots=()
    ),
    "without the folder": replace(
        EQUALS, start=SERVED, outages=1, early=1, takes=1, ticks=2, rates=(16, 16), boots=()
    ),
    "without a lock": replace(
        EQUALS, start=SERVED, messages=0, outages=1, renewals=1, takes=1, ticks=3, rates=(4, 5), boots=()
    ),
    "without the folder, on a new one": replace(
        EQUALS, writers=1, outages=1, ticks=1, rates=(16, 16), boots=("one", "two")
    ),
}
HEAL_EVERY = 50

FOLDER_FAULTS = {
    "looks before the sync": FolderFault(FolderParts(checks="before the sync"), "lacks", COMMITS),
    "does not look": FolderFault(FolderParts(checks="never"), "lacks", COMMITS),
    "looks at the clock, which stands still": FolderFault(
        FolderParts(checks="by clock"), "lacks", FolderScope(messages=1, ticks=2, pauses=2, rates=(8, 8))
    ),
    "renews without a look": FolderFault(FolderParts(holder=RenewsWithoutLook), "both deliver"),
    "counts from the end of a renewal": FolderFault(FolderParts(holder=RenewsFromTheEnd), "both deliver"),
    "takes an unknown renewal for done": FolderFault(FolderParts(holder=UnknownRenews), "both deliver", UNKNOWN),
    "repeats a record": FolderFault(FolderParts(holder=RepeatsRecords), "both deliver", UNKNOWN),
    "serves at once": FolderFault(
        FolderParts(candidate=WaitsNever), "both deliver", FolderScope(ticks=1, early=1, rates=(4, 4))
    ),
    "does not read the record again": FolderFault(FolderParts(reads_no_more=True), "both deliver"),
    "waits from the first look": FolderFault(
        FolderParts(candidate=CountsFromFirstLook), "both deliver", replace(LEASES, renewals=1)
    ),
    "clock rates forgotten": FolderFault(FolderParts(wait_ns=LENGTH), "both deliver"),
    "takes the end of a taker for that of the holder": FolderFault(
        FolderParts(candidate=TrustsIncomplete), "both deliver",
        FolderScope(takes=2, early=1, crashes=1, ticks=1, proof=True, rates=(4, 4, 4)),
    ),
    "completes before the wait": FolderFault(
        FolderParts(completes_early=True), "both deliver",
        FolderScope(takes=2, early=1, crashes=1, ticks=1, proof=True, rates=(4, 4, 4)),
    ),
    "a free lock for a dead holder": FolderFault(FolderParts(trusts_free_lock=True), "both deliver"),
    "inherits from an incomplete epoch": FolderFault(FolderParts(inherits_incomplete=True), "lacks", TAKERS),
    "passes over an epoch that was served": FolderFault(
        FolderParts(passes_over_served=True), "lacks",
        FolderScope(crashes=1, begun=True, unmarks=1, proof=True, rates=(16, 16)),
    ),
    "removes files before it is complete": FolderFault(FolderParts(prunes_early=True), "lacks", TAKERS),
    "removes directories of epochs": FolderFault(
        FolderParts(removes_epochs=True), "lacks",
        replace(TAKERS, messages=1, writers=1, begun=False),
    ),
    "ids begin at the clock": FolderFault(FolderParts(ids_from_the_clock=True), "used twice", CLOCKS),
    "ids leave before their mark is durable": FolderFault(FolderParts(ids_without_a_mark=True), "used twice", MARKS),
    "an epoch is made twice": FolderFault(
        FolderParts(makes_twice=True), "both deliver", EQUAL_SCOPES["on a new folder"]
    ),
    "files of a holder that may live are adopted": FolderFault(
        FolderParts(adopts_always=True), "late holder",
        replace(EQUALS, start=SERVED, early=1, takes=1, ticks=2, rates=(16, 16), boots=()),
    ),
    "files are adopted after a lock was lost on another machine": FolderFault(
        FolderParts(any_machine=True), "late holder", EQUAL_SCOPES["without the folder"]
    ),
    "the files that an epoch goes on with are removed": FolderFault(
        FolderParts(prunes_base=True), "lacks", EQUAL_SCOPES["on one of a node without a pair"]
    ),
    "a folder becomes one of equals while a node serves it": FolderFault(
        FolderParts(founds_served=True), "late holder", EQUAL_SCOPES["on one of a node without a pair"]
    ),
    "files are removed after the mark of their epoch": FolderFault(
        FolderParts(empties_after_mark=True), "lacks", EQUAL_SCOPES["whose take fails"]
    ),
    "a look that fails has found nothing": FolderFault(
        FolderParts(failed_look="counts"), "lacks", EQUAL_SCOPES["without the folder"]
    ),
    "a renewal without the folder counts": FolderFault(
        FolderParts(failed_look="counts"), "both deliver", EQUAL_SCOPES["without a lock"]
    ),
    "a lock that was lost is not taken again": FolderFault(
        FolderParts(keeps_lock=False), "both deliver", EQUAL_SCOPES["without a lock"]
    ),
    "equals wait for a primary": FolderFault(
        FolderParts(primary=False), "nobody serves", EQUAL_SCOPES["on a new folder"]
    ),
    "an epoch without a record is waited for": FolderFault(
        FolderParts(candidate=WaitsForRecord), "nobody serves", EQUAL_SCOPES["on a new folder"]
    ),
}  # fmt: skip
