"""Faults in the rules of replicated groups: those of tests/ha/planted_faults.py, in whole nodes."""

from __future__ import annotations

from atalanta.cluster.replication.active import replicator
from atalanta.cluster.replication.active.file_changes import FileChanges
from atalanta.cluster.replication.member_codec import FileDeletion, FromActive
from atalanta.cluster.replication.passive import backup
from atalanta.cluster.replication.passive.backup import Backup
from atalanta.cluster.replication.passive.client_backlog import ClientBacklog
from atalanta.cluster.replication.passive.incoming_stream import IncomingStream
from atalanta.ha.last_instant import LastInstant
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.register import RegisterView
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import Ended, HandOver, Heartbeat
from atalanta.kernel.broker import reserved_ids
from atalanta.kernel.queue.paging.paging import Paging
from atalanta.sim.replicas import group
from atalanta.sim.replicas.machine import ReplicaMachine
from tests.ha import planted_faults
from tests.sim.mutants.patching import Patch

GROUPED = True


def _active(patch: Patch, planted: type[Active]) -> None:
    patch.setattr(replicator, "Active", planted)


def _follower(patch: Patch, planted: type[Follower]) -> None:
    patch.setattr(backup, "Follower", planted)


def _view(patch: Patch, planted: type[RegisterView]) -> None:
    patch.setattr(backup, "RegisterView", planted)


def confirmed_before_the_sync(patch: Patch) -> None:
    _active(patch, planted_faults.ConfirmsBeforeSync)


def minimum_is_ignored(patch: Patch) -> None:
    _active(patch, planted_faults.IgnoresMinimum)


def added_before_it_caught_up(patch: Patch) -> None:
    _active(patch, planted_faults.AddsBeforeCaughtUp)


def handed_over_too_early(patch: Patch) -> None:
    _active(patch, planted_faults.HandsOverTooEarly)


def lease_counts_from_the_arrival(patch: Patch) -> None:
    _active(patch, planted_faults.CountsFromArrival)


def lease_without_the_member_to_be_added(patch: Patch) -> None:
    _active(patch, planted_faults.AsksKnownMembersOnly)


def unknown_write_counts_as_done(patch: Patch) -> None:
    _view(patch, planted_faults.UnknownIsDone)


def epoch_is_used_twice(patch: Patch) -> None:
    _follower(patch, planted_faults.KeepsEpoch)


def ended_epoch_is_followed(patch: Patch) -> None:
    _follower(patch, planted_faults.NoFencing)


def tail_is_cut_by_length(patch: Patch) -> None:
    _follower(patch, planted_faults.CutsByLength)


def takeover_keeps_the_others(patch: Patch) -> None:
    _follower(patch, planted_faults.HandsOverToTheFirst)


def promise_forgotten_at_a_start(patch: Patch) -> None:
    _follower(patch, planted_faults.ForgetsPromise)


def heartbeats_answered_while_it_asks(patch: Patch) -> None:
    _follower(patch, planted_faults.AnswersWhileAsking)


def clock_rates_forgotten(patch: Patch) -> None:
    """A member waits no longer than the lease lasts, whatever the clocks do."""

    def terms(length_ns: int, drift_ppm: int) -> LeaseTerms:
        made = LeaseTerms(length_ns, drift_ppm)
        made.wait_ns = made.length_ns
        return made

    patch.setattr(group, "LeaseTerms", terms)


def proof_of_any_epoch_counts(patch: Patch) -> None:
    """The proof that an earlier process has ended is taken for one of the active process."""

    def on_ended(follower: Follower, now: int, message: Ended) -> None:
        follower.ended = follower.epoch
        follower.promise.release()

    patch.setattr(Follower, "on_ended", on_ended)


def started_process_is_the_guard(patch: Patch) -> None:
    """The end of what was started is that of guard and broker, as it was before there were three processes."""
    patch.setattr(ReplicaMachine, "lose_started", lambda machine, after_ns: machine.end_at_once(False))


def end_of_what_was_started_is_proven(patch: Patch) -> None:
    """A guard takes the end of its parent for that of the broker, which goes on for a while."""
    lose_started = ReplicaMachine.lose_started

    def lose(machine: ReplicaMachine, after_ns: int) -> None:
        assert machine.guard is not None
        machine.guard.prove()
        lose_started(machine, after_ns)

    patch.setattr(ReplicaMachine, "lose_started", lose)


def broken_connection_counts_as_proof(patch: Patch) -> None:
    on_link_lost = Backup.on_link_lost

    def lost(member: Backup, now: int, why: str) -> None:
        epoch = 0 if member.follower is None else member.follower.epoch
        on_link_lost(member, now, why)
        member.on_process_ended(now, epoch)

    patch.setattr(Backup, "on_link_lost", lost)


def doors_stay_open(patch: Patch) -> None:
    """Clients wait at a passive member though another one serves."""
    patch.setattr(ClientBacklog, "is_over", lambda backlog, now, served: False)


def message_ids_are_used_again(patch: Patch) -> None:
    patch.setattr(reserved_ids, "EPOCH_IDS", 0)


def lease_is_added_to_the_clock(patch: Patch) -> None:
    """The rule of earlier versions: a successor's clock begins above the whole lease of its predecessor."""
    on_message = IncomingStream._on_message

    def add(stream: IncomingStream, now: int, sender: str, message: FromActive) -> None:
        on_message(stream, now, sender, message)
        if isinstance(message, Heartbeat | HandOver | Ended):
            stream.last = LastInstant(message.clock_ns + stream._lease_ns)

    patch.setattr(IncomingStream, "_on_message", add)


def deleted_above_the_commit_point(patch: Patch) -> None:
    """A page file goes when the record that makes it unneeded is appended, before anybody has it."""
    end_pages = Paging.end_pages

    def end(paging: Paging) -> None:
        end_pages(paging)
        while paging.deletable:
            paging.files.delete(paging.deletable.popleft()[1].number)

    patch.setattr(Paging, "end_pages", end)


def deletions_do_not_wait_for_the_record(patch: Patch) -> None:
    """A follower deletes a file when it is told, whether it has the record or not."""

    def delete(changes: FileChanges, deletion: FileDeletion) -> None:
        for each in changes.outgoing:
            each.delete(FileDeletion(deletion.kind, deletion.number, 0))

    patch.setattr(FileChanges, "_delete", delete)
