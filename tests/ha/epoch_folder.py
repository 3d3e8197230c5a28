"""A shared folder of epochs as the processes of a small world see it (folder_world.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atalanta.ha.folder_lease import (
    EpochUnmarked,
    EpochView,
    FolderCandidate,
    FolderHolder,
    FolderRecord,
    inherited_epoch,
)

LENGTH = 8
DRIFT_PPM = 250_000
SERVED = "served"  # by the holder of epoch 1
NEW = "new"
PLAIN = "plain"  # of a node without a pair, which has confirmed one message


@dataclass(frozen=True)
class FolderScope:
    """Budgets of steps. `early`: an operator takes the folder from a holder that is alive."""

    messages: int = 0
    writers: int = 3  # so many of the processes get messages
    renewals: int = 0
    ticks: int = 0
    pauses: int = 0  # ticks in which the first holder's clock stands still
    unknown: int = 0  # writes of a record whose outcome the holder does not get to know
    crashes: int = 0
    releases: int = 0
    takes: int = 1
    early: int = 0
    prunes: int = 0
    unmarks: int = 0  # somebody deletes the mark of an epoch that is served
    rates: tuple[int, ...] = (3, 5, 5)
    begun: bool = False  # one message is confirmed already
    behind: int = 0  # how far the clocks of the candidates are behind the first holder's
    proof: bool = False  # the lock of a process that has crashed is seen free
    ids: int = 0  # ids that leave
    start: str = SERVED
    equals: bool = False  # they adopt
    boots: tuple[str, ...] = ()  # the machine of each process; (): one each
    older: int = 0  # starts of a node of an earlier build, which makes no epochs
    outages: int = 0  # a process is without the folder
    failures: int = 0  # takes that fail


@dataclass(frozen=True)
class FolderParts:
    """The classes of the world, and faults of the code around them."""

    holder: type[FolderHolder] = FolderHolder
    candidate: type[FolderCandidate] = FolderCandidate
    wait_ns: int = -1  # of the terms; -1: as computed
    checks: str = "after the sync"
    completes_early: bool = False
    inherits_incomplete: bool = False
    passes_over_served: bool = False
    ids_from_the_clock: bool = False
    ids_without_a_mark: bool = False
    removes_epochs: bool = False
    prunes_early: bool = False
    trusts_free_lock: bool = False
    reads_no_more: bool = False
    adopts_always: bool = False
    any_machine: bool = False  # has the files of a holder whose lock is free, wherever that ran
    prunes_base: bool = False
    founds_served: bool = False
    makes_twice: bool = False
    empties_after_mark: bool = False
    failed_look: str = "fails"  # "counts": one that fails has found nothing
    keeps_lock: bool = True
    primary: bool = True


@dataclass(frozen=True)
class Epoch:
    """A directory: the record in it, whether it is complete, whether its holder's process has ended, whether the file
    system has taken the lock of that, and the epoch whose files it has. Its own files: the journal, and the mark of the
    ids in that."""

    record: FolderRecord | None = None
    complete: bool = False
    ended: bool = False
    journal: frozenset[int] = frozenset()
    exists: bool = True
    mark: int = 0
    base: int = 0
    stolen: bool = False


class EpochFolder:
    """The folder. `plain` has the files of a node without a pair, which are those of epoch 0."""

    def __init__(self, scope: FolderScope, parts: FolderParts) -> None:
        self.scope = scope
        self.parts = parts
        self.plain = Epoch(None, True, True)
        self.epochs: tuple[Epoch, ...] = ()

    def change_epoch(self, number: int, **values: object) -> None:
        epochs = list(self.epochs)
        epochs[number - 1] = replace(epochs[number - 1], **values)  # type: ignore[arg-type]
        self.epochs = tuple(epochs)

    def exists(self, number: int) -> bool:
        return number <= len(self.epochs) and self.epochs[number - 1].exists

    def newest(self) -> int:
        return max(
            (number for number in range(1, len(self.epochs) + 1) if self.exists(number)), default=0
        )

    def view(self, number: int, boot: str = "") -> EpochView:
        """Returns an epoch as a machine sees it: the own machine knows a lock that the file system has taken."""
        if number == 0:
            return EpochView(0)
        epoch = self.epochs[number - 1]
        record = epoch.record
        content = b"" if record is None else repr(record.renewals).encode() + record.state.encode()
        here = record is not None and record.boot == boot
        ended = epoch.ended or (epoch.stolen and not here)
        gone = self.parts.trusts_free_lock or (self.scope.proof and ended)
        return EpochView(number, epoch.complete, record, content, gone)

    def may_adopt(self, number: int, boot: str) -> bool:
        """Returns whether the files of an epoch are adopted by a taker on that machine."""
        view = self.view(number, boot)
        if self.parts.adopts_always or (self.parts.any_machine and view.holder_gone):
            return True
        return view.has_ended(boot)

    def files(self, number: int) -> Epoch:
        """Returns the epoch whose files that one has."""
        base = self.epochs[number - 1].base if number else 0
        return self.epochs[base - 1] if base else self.plain

    def change_files(self, number: int, **values: object) -> None:
        base = self.epochs[number - 1].base if number else 0
        if base:
            self.change_epoch(base, **values)
        else:
            self.plain = replace(self.plain, **values)  # type: ignore[arg-type]

    def source(self, number: int) -> int | None:
        """Returns the epoch that `number` inherits from, 0 for none; None if it must not be taken."""
        if self.parts.inherits_incomplete:
            return number - 1
        below = [each for each in range(1, number) if self.epochs[each - 1].complete]
        if self.parts.passes_over_served:
            return below[-1] if below else 0
        try:
            return inherited_epoch(number, self.view)
        except EpochUnmarked:
            return None

    def journal(self, number: int) -> frozenset[int]:
        """Returns the messages of an epoch; none for 0."""
        return self.files(number).journal

    def remove_files(self, below: int) -> None:
        """Removes the files of earlier epochs; their directories stay, unless that is the fault."""
        base = self.epochs[below - 1].base
        for number in range(1, below):
            kept = number == base and not self.parts.prunes_base
            journal = self.epochs[number - 1].journal if kept else frozenset()
            record = self.epochs[number - 1].record if kept else None
            self.change_epoch(
                number,
                record=record,
                complete=kept,
                journal=journal,
                exists=not self.parts.removes_epochs,
            )
        if base or self.parts.prunes_base:
            self.plain = replace(self.plain, journal=frozenset())
