"""The simulator finds planted bugs: what it cannot see, it does not protect.

Seeds are tried until one finds the bug, so that a change of the timing does not matter. `make test` runs the mutants
that are found within about two seconds, `make soak` the others.
"""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.runtime.process.build import compiled_modules
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.loads.absence import Absences
from atalanta.sim.loads.core_bridge import CoreBridgeLoad
from atalanta.sim.loads.divert import Diverts
from atalanta.sim.loads.full_disk import FullDisks
from atalanta.sim.loads.groups import GroupsLoad
from atalanta.sim.loads.large import LargeMessages
from atalanta.sim.loads.members import MembersLoad
from atalanta.sim.loads.overlap import Overlaps
from atalanta.sim.loads.permissions import QueuePermissions
from atalanta.sim.loads.priorities import PrioritiesLoad
from atalanta.sim.loads.replays import Replays
from atalanta.sim.loads.router import RoutersLoad
from atalanta.sim.loads.slow_readers import SlowReaders
from atalanta.sim.loads.xa.transactions import Transactions
from atalanta.sim.subject import Subject
from tests.sim.crash_points import violations
from tests.sim.mutants import (
    branches,
    clients,
    cluster_consumers,
    core_bridges,
    departures,
    diverts,
    full_disks,
    group_rules,
    grouping,
    journal,
    large,
    logs,
    members,
    networks,
    overlaps,
    pages,
    pairs,
    parking,
    permissions,
    priorities,
    reattaching,
    replays,
    replicas,
    routers,
)
from tests.sim.mutants.patching import Mutant
from tests.sim.rehearsals import check_found
from tests.sim.worlds import (
    group_that_loses_power_at_deletions,
    group_with_slow_bodies,
    groups_with_bodies,
    pair_whose_connection_breaks,
    pair_whose_started_processes_end,
    seeds_where_nodes_leave,
    seeds_with,
    seeds_with_pairs,
    world_with_pauses_in_commits,
)

# Methods of compiled classes cannot be replaced.
pytestmark = [
    pytest.mark.skipif(bool(compiled_modules()), reason="needs the interpreted build"),
    pytest.mark.timeout(600),
]

# The mark of mutants that take more than two seconds to find.
SOAK = pytest.mark.soak

# From that seed on.
BY_SEEDS = [
    (journal.confirmed_before_durable, 4, 24),
    (journal.in_flight_not_given_back, 10, 16),
    (journal.repeat_answered_early, 3, 60),
    (logs.acknowledged_through_without_fencing, 1, 8),
    (logs.epoch_not_durable, 1, 8),
    (logs.acknowledged_before_the_commit, 1, 4),
    (pairs.numbers_are_not_kept, 1, 4),
    (journal.compaction_drops_a_message, 2, 12),
    pytest.param(journal.compaction_drops_a_duplicate_id, 1, 12, marks=SOAK),
    pytest.param(journal.sequence_used_again_after_compaction, 1, 16, marks=SOAK),
    pytest.param(members.late_messages_not_redistributed, 1, 40, marks=SOAK),
    pytest.param(members.member_that_left_is_remembered, 1, 30, marks=SOAK),
    (members.message_to_every_queue_of_a_name, 1, 8),
    pytest.param(members.consumer_counts_drift, 1, 16, marks=SOAK),
    pytest.param(reattaching.reattached_client_repeats_itself, 1, 16, marks=SOAK),
    pytest.param(reattaching.reattached_client_misses_frames, 1, 80, marks=SOAK),
    pytest.param(clients.commit_overtakes_acknowledgements, 1, 40, marks=SOAK),
]
# In worlds that have the subject.
BY_SUBJECT = [
    (grouping.group_goes_where_it_was_proposed, GroupsLoad, 1, 4),
    pytest.param(grouping.group_freed_by_a_crash, GroupsLoad, 1, 12, marks=SOAK),
    (grouping.groups_forgotten_by_a_restart, GroupsLoad, 1, 8),
    (grouping.group_read_by_two_consumers, GroupsLoad, 32, 12),
    (branches.prepared_branches_not_told, Transactions, 7, 8),
    pytest.param(branches.prepared_branch_loses_a_message, Transactions, 7, 8, marks=SOAK),
    pytest.param(core_bridges.core_bridge_trusts_the_link, CoreBridgeLoad, 70, 12, marks=SOAK),
    pytest.param(core_bridges.core_bridge_sends_no_duplicate_ids, CoreBridgeLoad, 72, 12, marks=SOAK),
    (core_bridges.core_bridge_overtakes, CoreBridgeLoad, 71, 4),
    pytest.param(large.files_of_large_messages_stay, LargeMessages, 9, 4, marks=SOAK),
    pytest.param(large.pieces_of_large_messages_change, LargeMessages, 3, 2, marks=SOAK),
    pytest.param(departures.prepared_branches_stay, Transactions, 30, 4, marks=SOAK),
    pytest.param(departures.prepared_branches_are_dropped, Transactions, 30, 4, marks=SOAK),
    pytest.param(branches.branch_gives_back_what_it_took, Transactions, 3, 4, marks=SOAK),
    pytest.param(members.peers_are_blocked_for_ever, SlowReaders, 33, 8, marks=SOAK),
    (diverts.diverts_take_everything, Diverts, 5, 2),
    (diverts.diverts_take_nothing, Diverts, 5, 2),
    pytest.param(diverts.diverts_make_no_name_routable, Diverts, 5, 4, marks=SOAK),
    (diverts.exclusive_diverts_leave_a_copy, Diverts, 5, 3),
    (overlaps.recovered_wildcards_take_from_each_other, Overlaps, 29, 4),
    (overlaps.peers_get_a_copy_for_each_binding, Overlaps, 37, 4),
    (permissions.queues_have_no_permissions, QueuePermissions, 1, 3),
    (priorities.priorities_share_one_turn, PrioritiesLoad, 29, 3),
    pytest.param(cluster_consumers.earlier_ones_stay_unacknowledged, MembersLoad, 6, 2, marks=SOAK),
    pytest.param(cluster_consumers.turn_ends_at_its_first_member, MembersLoad, 6, 3, marks=SOAK),
    pytest.param(cluster_consumers.first_members_are_all, MembersLoad, 73, 6, marks=SOAK),
    pytest.param(replays.retained_for_half_the_time, Replays, 6, 6, marks=SOAK),
    pytest.param(replays.unread_replay_is_released, Replays, 48, 4, marks=SOAK),
    (replays.past_has_a_gap, Replays, 6, 6),
    (full_disks.reserve_is_used_for_messages, FullDisks, 782, 1),
    (routers.keys_go_to_any_target, RoutersLoad, 6, 3),
    pytest.param(routers.router_forgets_its_keys, RoutersLoad, 40, 4, marks=SOAK),
    pytest.param(routers.target_is_lost_for_ever, RoutersLoad, 1, 6, marks=SOAK),
    pytest.param(routers.local_filter_takes_everybody, RoutersLoad, 1, 2, marks=SOAK),
    pytest.param(parking.what_may_have_arrived_comes_back, Absences, 92, 8, marks=SOAK),
    (parking.what_comes_back_stays_parked_too, Absences, 1, 8),
    pytest.param(parking.what_is_parked_is_dropped, Absences, 1, 4, marks=SOAK),
]
# All with a pair.
BY_PAIRS = [
    (pairs.taker_does_not_wait, 4, 1),
    (pairs.output_waits_for_no_lease, 4, 3),
    (pairs.files_are_shared, 4, 3),
    pytest.param(pairs.lease_is_added_to_the_clock, 57, 4, marks=SOAK),
    (pairs.ids_begin_at_the_clock, 57, 4),
    pytest.param(pairs.incomplete_epoch_is_inherited, 18, 6, marks=SOAK),
    pytest.param(pairs.no_look_before_the_answer, 17, 16, marks=SOAK),
]
# All with one node, which is a group.
BY_GROUPS = [
    (replicas.confirmed_without_followers, 1, 2),
    (replicas.follower_answers_before_its_sync, 4, 4),
    (replicas.taken_over_out_of_sync, 1, 3),
    (replicas.lease_never_ends, 4, 6),
    (replicas.output_is_not_held, 4, 6),
    (replicas.tail_is_not_cut, 49, 9),
    (replicas.dropped_before_the_register_says_so, 31, 3),
    (replicas.page_files_follow_their_records, 3, 8),
    (group_rules.lease_is_added_to_the_clock, 9, 4),
    pytest.param(replicas.joins_without_being_required, 7, 8, marks=SOAK),
    pytest.param(replicas.unknown_write_counts_as_failed, 1, 200, marks=SOAK),
    pytest.param(replicas.promise_is_broken, 1, 200, marks=SOAK),
    pytest.param(group_rules.confirmed_before_the_sync, 1, 20, marks=SOAK),
    pytest.param(group_rules.minimum_is_ignored, 1, 20, marks=SOAK),
    pytest.param(group_rules.lease_without_the_member_to_be_added, 1, 40, marks=SOAK),
    pytest.param(group_rules.epoch_is_used_twice, 1, 20, marks=SOAK),
    pytest.param(group_rules.tail_is_cut_by_length, 1, 60, marks=SOAK),
    pytest.param(group_rules.takeover_keeps_the_others, 1, 120, marks=SOAK),
    pytest.param(group_rules.promise_forgotten_at_a_start, 1, 20, marks=SOAK),
    pytest.param(group_rules.broken_connection_counts_as_proof, 1, 80, marks=SOAK),
    pytest.param(group_rules.deleted_above_the_commit_point, 60, 100, marks=SOAK),
]
# Networks of two nodes.
BY_NETWORKS = [
    (networks.repeats_are_not_dropped, 1, 6),
    (networks.acknowledgement_answered_before_it_is_durable, 1, 8),
    (networks.bridge_acknowledges_before_the_answer, 1, 8),
    pytest.param(networks.broker_path_is_not_kept, 15, 16, marks=SOAK),
]
# In worlds whose machines are paused in the middle of commits, and the commits end later.
BY_PAUSES = [(pairs.no_look_before_the_answer, 3), (pairs.look_before_the_sync, 3)]
# All in which nodes may leave.
BY_DEPARTURES: list[tuple[Mutant, int, int]] = [
    (departures.arrivals_in_another_order, 7, 4),
    (departures.kept_here_too, 7, 4),
]
# With page files, or without.
BY_CRASH_POINTS = [
    (members.bridge_forgets_before_the_answer, False),
    (journal.duplicate_id_in_a_record_of_its_own, False),
    (journal.transaction_in_several_records, False),
    (pages.page_named_before_its_file, True),
    (pages.page_forgets_which_messages_it_replaces, True),
]


@pytest.mark.parametrize(("mutant", "first", "seeds"), BY_SEEDS)
def test_seeds_find_the_mutant(
    mutant: Mutant, first: int, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_found(mutant, monkeypatch, range(first, first + seeds), 3)


@pytest.mark.parametrize(("mutant", "first", "worlds"), BY_DEPARTURES)
def test_worlds_with_departures_find_the_mutant(
    mutant: Mutant, first: int, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_found(mutant, monkeypatch, seeds_where_nodes_leave(first, worlds), 3)


@pytest.mark.parametrize(("mutant", "first", "worlds"), BY_PAIRS)
def test_worlds_with_pairs_find_the_mutant(
    mutant: Mutant, first: int, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_found(mutant, monkeypatch, seeds_with_pairs(first, worlds), 3)


@pytest.mark.parametrize(("mutant", "first", "worlds"), BY_GROUPS)
def test_groups_find_the_mutant(
    mutant: Mutant, first: int, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_found(mutant, monkeypatch, range(first, first + worlds), 1, grouped=True)


@pytest.mark.parametrize(("mutant", "first", "worlds"), BY_NETWORKS)
def test_networks_find_the_mutant(
    mutant: Mutant, first: int, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_found(mutant, monkeypatch, range(first, first + worlds), 2, networked=True)


def test_slow_bodies_find_records_that_do_not_wait_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas.records_do_not_wait_for_bodies(monkeypatch)
    with pytest.raises(Violation):
        for seed in groups_with_bodies(1, 2):
            group_with_slow_bodies(seed).run()


def test_power_losses_find_deletions_above_the_commit_point(monkeypatch: pytest.MonkeyPatch) -> None:
    group_rules.deleted_above_the_commit_point(monkeypatch)
    with pytest.raises(Violation, match="lacks a page file"):
        group_that_loses_power_at_deletions(4).run()


def test_an_end_that_nobody_proves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    group_rules.started_process_is_the_guard(monkeypatch)
    with pytest.raises(Violation, match="nobody serves after epoch 1"):
        pair_whose_started_processes_end(8).run()


def test_a_proof_of_the_wrong_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    group_rules.end_of_what_was_started_is_proven(monkeypatch)
    with pytest.raises(Violation, match="both may deliver"):
        pair_whose_started_processes_end(8).run()


def test_broken_connections_find_doors_that_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    group_rules.doors_stay_open(monkeypatch)
    with pytest.raises(Violation, match="clients may wait at n0b"):
        pair_whose_connection_breaks(1).run()


@pytest.mark.parametrize(("mutant", "worlds"), BY_PAUSES)
def test_pauses_in_commits_find_the_mutant(
    mutant: Mutant, worlds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(Violation):
        for seed in seeds_with_pairs(4, worlds):
            world_with_pauses_in_commits(seed).run()


@pytest.mark.parametrize(("mutant", "subject", "first", "worlds"), BY_SUBJECT)
def test_worlds_with_the_subject_find_the_mutant(
    mutant: Mutant,
    subject: type[Subject],
    first: int,
    worlds: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_found(mutant, monkeypatch, seeds_with(subject, first, worlds), 3)


@pytest.mark.soak
@pytest.mark.parametrize(("mutant", "pages"), BY_CRASH_POINTS)
def test_crash_points_find_the_mutant(
    mutant: Mutant, pages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    try:
        for _ in violations(2, pages, 1 if pages else 2):
            return
    except DecodeError:  # a node that does not start again
        return
    pytest.fail(f"no crash point sees {mutant.__name__}")
