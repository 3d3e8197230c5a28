"""Pairs with a shared folder."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.ha.folder_lease import ACTIVE, EpochView, FolderCandidate, FolderRecord
from atalanta.ha.last_instant import LastInstant
from atalanta.kernel.broker.reserved_ids import FoundIds
from atalanta.sim.host import Host
from atalanta.sim.node_machine import NodeMachine
from atalanta.sim.pairs.machine import PairMachine
from atalanta.sim.pairs.shared_folder import Epoch, SharedFolder
from tests.sim.mutants.patching import Patch


def no_look_before_the_answer(patch: Patch) -> None:
    patch.setattr(PairMachine, "_committed", _committed_without_look)


def _committed_without_look(pair: PairMachine, token: int) -> None:
    Host._committed(pair, token)


def look_before_the_sync(patch: Patch) -> None:
    """The look is made when the commit begins."""
    looks: dict[str, bool] = {}
    later = PairMachine._disk_later

    def begin(pair: PairMachine, delay_ns: int, call: Callable[[], None]) -> None:
        found = pair.epoch is not None and pair.next_exists()

        def end() -> None:
            looks[pair.name] = found
            call()

        later(pair, delay_ns, end)

    def committed(pair: PairMachine, token: int) -> None:
        if not looks[pair.name]:
            Host._committed(pair, token)

    patch.setattr(PairMachine, "_disk_later", begin)
    patch.setattr(PairMachine, "_committed", committed)


def incomplete_epoch_is_inherited(patch: Patch) -> None:
    def newest(folder: SharedFolder, before: int) -> Epoch | None:
        return folder.epochs.get(before - 1)

    patch.setattr(SharedFolder, "newest_complete", newest)


def taker_does_not_wait(patch: Patch) -> None:
    def may_take(candidate: FolderCandidate, now: int, primary: bool) -> str:
        return "at once" if candidate.seen is not None else ""

    patch.setattr(FolderCandidate, "may_take", may_take)
    patch.setattr(FolderCandidate, "wait_ns", _no_wait)


def _no_wait(candidate: FolderCandidate, made_ns: int, again: EpochView) -> int:
    return 0


def lease_is_added_to_the_clock(patch: Patch) -> None:
    """The rule of earlier versions: a successor's clock begins above the whole lease of its predecessor."""

    def last_instant(candidate: FolderCandidate, read_ns: int, record: FolderRecord | None) -> LastInstant:
        if record is None:
            return LastInstant(0)
        later = record.length_ns if record.state == ACTIVE else 0
        return LastInstant(record.clock_ns + later)

    patch.setattr(FolderCandidate, "last_instant", last_instant)


def ids_begin_at_the_clock(patch: Patch) -> None:
    patch.setattr(FoundIds, "trusted", lambda found: False)
    patch.setattr(FoundIds, "on_counters", lambda found, message_id, binding_id, announced: None)


def numbers_are_not_kept(patch: Patch) -> None:
    on_counters = FoundIds.on_counters

    def forget(found: FoundIds, message_id: int, binding_id: int, announced: int) -> None:
        on_counters(found, message_id, binding_id, min(announced, 0))

    patch.setattr(FoundIds, "on_counters", forget)


def files_are_shared(patch: Patch) -> None:
    """The successor writes into the files of the old holder."""

    def inherit(folder: SharedFolder, source: Epoch, target: Epoch) -> None:
        target.disk.files = source.disk.files
        target.large.contents = source.large.contents

    patch.setattr(SharedFolder, "inherit", inherit)


def output_waits_for_no_lease(patch: Patch) -> None:
    patch.setattr(PairMachine, "send_out", NodeMachine.send_out)
