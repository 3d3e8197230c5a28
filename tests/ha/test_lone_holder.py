"""A holder that is alone renews its lease by looks, and writes nothing: a candidate never serves beside it.

The steps are those of the world of test_folder_search.py, and those of the files of the members: the candidate writes
its file, looks, makes the next epoch, reads the record again, and serves. The holder reads its clock, looks for a file,
writes its record if it has found one, then looks for the next epoch. It removes a file that does not change for long.
Each of them may be without the folder for a while: what it does there fails, or is done without an answer.

Two equals on a new folder begin before there is an epoch; the first one asks for patience until its first output.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import pytest

from atalanta.ha.folder_lease import (
    Announcement,
    EpochView,
    FolderCandidate,
    FolderHolder,
    FolderRecord,
)
from atalanta.ha.lease import LeaseTerms
from tests.ha.explorer import copied, explore, key_of

LENGTH = 5
DRIFT_PPM = 250_000
GAP = 6
SILENT = 12
BEAT = 3
LONG = 50
PATIENCE = 12
STATES = 12_000


@dataclass(frozen=True)
class Rules:
    """The clocks' rates, and the faults of the code around the classes."""

    rates: tuple[int, int] = (3, 5)
    ticks: int = 7
    writes: int = 2  # of the candidate's file
    announces: bool = True
    looks_for_files: bool = True
    gap: int = GAP
    silent: int = SILENT
    looks_for_epoch: bool = True
    # "looked" or "decides": the candidate stood still then; "forgotten": its file was removed before; "new": before
    # the first epoch.
    begun: str = ""
    outages: bool = False
    counts_outages: bool = False  # a look that failed has found nothing
    writes_first: bool = True  # before it removes a file


@dataclass(frozen=True)
class State:
    """What is in the folder, and the next step of each process."""

    record: FolderRecord | None
    file: int = 0  # how often it was written; 0: it is not there
    epoch_1: bool = True
    epoch_2: bool = False
    serves: bool = True
    holder: str = "idle"  # then "file", "write", "files", "next"; "make" before the first epoch
    sent: int = 0
    noticed: int = 0  # the file as the holder has seen it first, and when
    noticed_at: int = 0
    candidate: str = "write"  # then "look", "decide", "make", "again", "wait", "serve"
    made: int = 0
    wait: int = 0
    writes: int = 0
    ticks: int = 0


class LoneWorld:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.wrong = ""
        self.clocks = (100, 100)
        terms = LeaseTerms(LENGTH, DRIFT_PPM)
        self.holder = FolderHolder(terms, 1, "0")
        self.candidate = FolderCandidate(terms)
        self.announcement = Announcement(rules.gap)
        if rules.begun == "new":
            self.holder = FolderHolder(terms, 1, "0", patience_ns=PATIENCE)
            self.state = State(None, epoch_1=False, serves=False, holder="make")
            return
        record = self.holder.next_record(100)
        self.holder.on_renewed(100 - LONG if rules.begun else 100, False)
        self.state = State(record)
        if rules.begun:
            # The candidate has written its file, and looked; the holder has found the file, and renewed. Then both
            # stood still.
            self.announcement.on_written(100 - LONG, 100 - LONG)
            self.candidate.on_look(100 - LONG, self.view())
            self.candidate.on_announced(100 - LONG)
            stage = "decide" if rules.begun == "decides" else "write"
            file = 0 if rules.begun == "forgotten" else 1
            self.state = replace(self.state, file=file, writes=1, noticed=file, noticed_at=100 - LONG, candidate=stage)

    def key(self) -> Hashable:
        parts = (self.holder, self.candidate, self.announcement)
        return (self.wrong, self.clocks, self.state, tuple(map(key_of, parts)))

    def healed(self) -> str:
        return ""

    def with_state(self, **values: object) -> LoneWorld:
        """A copy with a changed state, and objects of its own."""
        fresh = object.__new__(LoneWorld)
        fresh.__dict__.update(self.__dict__)
        fresh.holder, fresh.candidate = copied(self.holder), copied(self.candidate)
        fresh.announcement = copied(self.announcement)
        fresh.state = replace(self.state, **values)  # type: ignore[arg-type]
        return fresh

    def view(self) -> EpochView:
        record = self.state.record
        if not self.state.epoch_1:
            return EpochView(0)
        return EpochView(1, True, record, b"" if record is None else repr(record.renewals).encode())

    def steps(self) -> Iterator[tuple[str, LoneWorld]]:
        if self.wrong:
            return
        yield from self.holder_steps()
        yield from self.candidate_steps()
        if self.state.ticks < self.rules.ticks:
            world = self.with_state(ticks=self.state.ticks + 1)
            world.clocks = (self.clocks[0] + self.rules.rates[0], self.clocks[1] + self.rules.rates[1])
            world.check()
            yield "time passes", world

    def holder_steps(self) -> Iterator[tuple[str, LoneWorld]]:
        state, now = self.state, self.clocks[0]
        if state.epoch_1 and not state.serves and self.holder.may_deliver(now):
            world = self.with_state(serves=True)
            world.holder.serves()
            world.check()
            yield "the holder begins to serve", world
        if self.rules.outages and state.holder in ("file", "write", "files", "next"):
            world = self.with_state(holder="idle")
            if self.rules.counts_outages:
                world.holder.on_renewed(state.sent, False)
                world.check()
            yield "the holder is without the folder", world
        if state.holder == "make":
            yield "the holder makes epoch 1", self.with_state(holder="idle", epoch_1=True)
        elif state.holder == "idle" and not self.holder.lost:
            yield "the holder reads its clock", self.with_state(holder="file", sent=now)
        elif state.holder == "file":
            found = self.holder.must_write() or (state.file > 0 and self.rules.looks_for_files)
            following = "write" if self.rules.writes_first else "files"
            yield "the holder looks for a file", self.with_state(holder=following if found else "next")
        elif state.holder == "write":
            world = self.with_state(holder="files" if self.rules.writes_first else "next")
            world.state = replace(world.state, record=world.holder.next_record(now))
            yield "the holder writes its record", world
        elif state.holder == "files":
            last = "next" if self.rules.writes_first else "write"
            if state.file == state.noticed and now >= state.noticed_at + self.rules.silent:
                yield "the holder removes the file", self.with_state(holder="next", file=0, noticed=0)
            elif state.file == state.noticed:
                yield "the holder finds the file as it was", self.with_state(holder=last)
            else:
                world = self.with_state(holder=last, noticed=state.file, noticed_at=now)
                yield "the holder finds a new file", world
        elif state.holder == "next":
            world = self.with_state(holder="idle")
            world.holder.on_renewed(state.sent, state.epoch_2 and self.rules.looks_for_epoch)
            world.check()
            yield "the holder looks for the next epoch", world

    def candidate_steps(self) -> Iterator[tuple[str, LoneWorld]]:
        """The candidate writes its file if it is due, looks, and decides, again and again."""
        state, now = self.state, self.clocks[1]
        written = self.announcement.written_ns
        if state.candidate == "write" and 0 <= written and now <= written + BEAT:
            yield "the candidate's file is new enough", self.with_state(candidate="look")
        elif state.candidate == "write" and state.writes < self.rules.writes:
            file = state.writes + 1 if self.rules.announces else 0
            world = self.with_state(file=file, writes=state.writes + 1, candidate="look")
            world.announcement.on_written(now, now)
            yield "the candidate writes its file", world
            if self.rules.outages:
                world = self.with_state(file=file, writes=state.writes + 1)
                yield "the candidate writes its file, without an answer", world
        elif state.candidate == "look":
            world = self.with_state(candidate="decide")
            world.candidate.on_look(now, self.view())
            world.candidate.on_announced(world.announcement.since_ns)
            yield "the candidate looks", world
        elif state.candidate == "decide":
            allowed = bool(self.candidate.may_take(now, True))
            yield f"the candidate decides: {allowed}", self.with_state(candidate="make" if allowed else "write")
        elif state.candidate == "make" and self.candidate.seen == EpochView(0):
            if state.epoch_1:
                yield "the candidate finds that epoch 1 is made", self.with_state(candidate="write")
        elif state.candidate == "make":
            yield "the candidate makes epoch 2", self.with_state(candidate="again", epoch_2=True, made=now)
        elif state.candidate == "again":
            wait = self.candidate.wait_ns(state.made, self.view())
            yield "the candidate reads the record again", self.with_state(candidate="wait", wait=wait)
        elif state.candidate == "wait" and now >= state.made + state.wait:
            world = self.with_state(candidate="serve")
            world.check()
            yield "the candidate serves", world

    def check(self) -> None:
        if self.state.candidate == "serve" and self.state.serves and self.holder.may_deliver(self.clocks[0]):
            self.wrong = "two deliver"


BEGUN = ("", "new", "looked", "decides", "forgotten")
RATES = ((3, 5), (5, 3), (4, 4))
STARTS = [Rules(rates, begun=begun) for rates in RATES for begun in BEGUN]
STARTS += [Rules(rates, begun=begun, outages=True) for rates in RATES for begun in ("", "new")]


@pytest.mark.parametrize("rules", STARTS, ids=str)
def test_two_never_deliver(rules: Rules) -> None:
    result = explore(LoneWorld(rules), STATES)
    assert not result.wrong, result


FAULTS = {
    "the candidate does not tell of itself": Rules((3, 5), announces=False),
    "the holder does not look for files": Rules((3, 5), looks_for_files=False),
    "the holder removes a file before it writes": Rules((5, 3), writes_first=False, begun="decides"),
    "the candidate does not notice its gap": Rules((5, 3), gap=1_000, begun="forgotten"),
    "a renewal without the folder counts": Rules((3, 5), outages=True, counts_outages=True, begun="decides"),
    "the holder does not look for the next epoch": Rules((3, 5), looks_for_epoch=False, begun="decides"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    result = explore(LoneWorld(FAULTS[name]), 150_000)
    assert result.wrong == "two deliver", result
