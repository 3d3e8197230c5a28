"""Findings about replicated groups: what active nodes say, and what the folder of a member on this host shows.

A passive member gives no sessions, so its state is read from its files (runtime/ha/group/member_status.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from atalanta.ha.manager_config import has_only_voter
from atalanta.ha.policy import HaPolicy
from atalanta.runtime.ha.group.member_status import FollowerStatus, MemberStatus
from atalanta.store.tail_cut import CUT_PREFIX
from atalanta.survey.findings.cluster_finding import ERROR, NOTE, WARNING, ClusterFinding
from atalanta.survey.members.group_state import ACTIVE, UNMET, GroupState
from atalanta.survey.members.pair_state import REMEDIES, PairState
from atalanta.survey.model.cluster import LiveCluster
from atalanta.survey.model.groups import ReplicaView
from atalanta.survey.texts import duration_text

LAG_MS: Final = 30_000  # of a member that catches up, or of an asynchronous copy
MANAGER_AWAY: Final = "see that it runs and can be reached; meanwhile no member can take over, or leave those in sync"
WITNESS: Final = "start `atalanta ha witness` on a third host, and name it in atalanta.toml, [ha.manager]"
START_VOTER: Final = (
    "start it again with its folder: `atalanta ha witness`; of a voter in a guard the log of its member says why. The "
    "others must stay a majority"
)
LOOK_AT_BACKUP: Final = "start the backup; if it runs, `atalanta doctor` of its folder says why it is not in sync"


def group_findings(ha: HaPolicy, seen: GroupState) -> Iterator[ClusterFinding]:
    """Yields what is wrong with the member, and with its group as far as the member and the register know it."""
    yield from _register(seen)
    if has_only_voter(ha.manager):
        yield _only_voter(seen.member)
    status = seen.status
    if status is None:
        yield ClusterFinding(
            WARNING, "member_stopped", seen.member, "the process of this member does not run", "atalanta run"
        )
    elif status.state == ACTIVE:
        yield from _followers(seen.member, ha.min_in_sync, [replica_of(each) for each in status.followers])
    else:
        yield from _passive(seen, status)
    yield from _kept_tail(seen)


def store_findings(label: str, seen: PairState) -> Iterator[ClusterFinding]:
    """Yields what is wrong with a pair that has a shared store, as its folder shows it."""
    if seen.state != ACTIVE:
        text = f"no process serves this store: it is {seen.state}"
        yield ClusterFinding(ERROR, "store_not_served", label, text, REMEDIES[seen.state], {"state": seen.state})
    elif not seen.waiting:
        yield _backup_missing(label)


def _backup_missing(label: str) -> ClusterFinding:
    text = "no process waits for this store: when the active one ends, nobody serves"
    return ClusterFinding(WARNING, "backup_missing", label, text, "start the backup: atalanta run")


def _register(seen: GroupState) -> Iterator[ClusterFinding]:
    register = seen.register
    if seen.why:
        text = f"the manager does not answer: {seen.why}"
        yield ClusterFinding(ERROR, "manager_unreachable", seen.member, text, MANAGER_AWAY, {"why": seen.why})
    elif seen.unmet:
        text = "this member has not met an active member of its group yet"
        yield ClusterFinding(WARNING, "group_unmet", seen.member, text, UNMET.partition(": ")[2])
    elif register is None:
        text = "the group has no register yet"
        yield ClusterFinding(WARNING, "register_missing", seen.member, text, "start the primary: it founds the group")
    else:
        own = seen.member.rpartition("-")[0]
        for name in register.in_sync:
            # The rest of a member's name stands for the content of its folder.
            if name != seen.member and name.rpartition("-")[0] == own and seen.member not in register.in_sync:
                yield ClusterFinding(
                    WARNING,
                    "member_replaced",
                    seen.member,
                    f"the register has {name} in sync, whose folder this was: its journal is gone",
                    "bring that journal back if you have it. If another member serves, wait until this one is in sync; "
                    "if none does, atalanta ha promote --lossy at the one that has most",
                    {"replaced": name},
                )


def _only_voter(label: str) -> ClusterFinding:
    text = (
        "the only voter of the register is in the guard of a member. When all processes of that one end at once (host, "
        "container, service), no other member takes over before they start again"
    )
    return ClusterFinding(NOTE, "only_voter", label, text, WITNESS)


def replication_findings(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    """Yields what the active nodes of replicated groups say of their groups."""
    for node in cluster.nodes:
        told = node.replication
        if node.replica_sync is False:
            text = "its replica does not have everything: with this node's disk its messages are lost"
            remedy = "start the backup, and see in its log that it follows"
            yield ClusterFinding(WARNING, "no_replica_in_sync", node.label, text, remedy)
        if node.waiting == []:
            yield _backup_missing(node.label)
        if told is None:
            continue
        for at, why in told.silent_voters.items():
            text = f"the voter at {at} of its register does not answer: {why}"
            yield ClusterFinding(WARNING, "voter_silent", node.label, text, START_VOTER, {"voter": at, "why": why})
        if problem := told.register_problem:
            text = f"the manager does not answer: {problem}"
            yield ClusterFinding(ERROR, "manager_unreachable", node.label, text, MANAGER_AWAY, {"why": problem})
        if told.only_voter:
            yield _only_voter(node.label)
        yield from _followers(node.label, told.min_in_sync, told.replicas)


def replica_of(follower: FollowerStatus) -> ReplicaView:
    """Returns a follower of the status file as a replica."""
    return ReplicaView(
        follower.member,
        follower.in_sync,
        follower.asynchronous,
        follower.behind,
        int(follower.behind_s * 1_000),
        follower.connected,
    )


def _followers(label: str, required: int, followers: list[ReplicaView]) -> Iterator[ClusterFinding]:
    """Finds what the active member lacks."""
    in_sync = [each.member for each in followers if each.in_sync]
    if 1 + len(in_sync) < required:
        text = f"nothing is confirmed: members in sync are {1 + len(in_sync)}, and min_in_sync is {required}"
        yield ClusterFinding(ERROR, "replicas_missing", label, text, LOOK_AT_BACKUP)
    elif not in_sync:
        text = "no other member is in sync: with this node's disk its messages are lost"
        yield ClusterFinding(WARNING, "no_replica_in_sync", label, text, LOOK_AT_BACKUP)
    for each in followers:
        facts: dict[str, object] = {"replica": each.member, "behind": each.behind, "behind_s": each.behind_ms / 1_000}
        lag = f"{each.behind} records behind, for {duration_text(each.behind_ms)}"
        if each.asynchronous and not each.in_sync and each.behind_ms >= LAG_MS:
            text = f"the asynchronous copy {each.member} is {lag}: as much is lost if it must serve"
            remedy = "is it up, and its network fast enough? artemis_replica_lag_seconds shows the course"
            yield ClusterFinding(WARNING, "replica_lag", label, text, remedy, facts)
        elif each.connected is False and not each.in_sync:
            text = f"{each.member} of its group is away for {duration_text(each.behind_ms)}"
            yield ClusterFinding(WARNING, "replica_away", label, text, LOOK_AT_BACKUP, facts)
        elif not each.in_sync and not each.asynchronous:
            severity, remedy = (WARNING, LOOK_AT_BACKUP) if each.behind_ms >= LAG_MS else (NOTE, "")
            text = f"{each.member} is not in sync: {lag}"
            yield ClusterFinding(severity, "replica_behind", label, text, remedy, facts)


def _passive(seen: GroupState, status: MemberStatus) -> Iterator[ClusterFinding]:
    """Finds why a passive member would not take over."""
    in_sync = seen.register is not None and seen.member in seen.register.in_sync
    if status.waits:
        yield ClusterFinding(WARNING, "member_waits", seen.member, f"it waits: {status.waits}")
    elif not status.active:
        text = "it follows nobody: no active member was found"
        remedy = "start the others; do host and port of the <static-connectors> lead to them?"
        yield ClusterFinding(NOTE if in_sync else WARNING, "member_follows_nobody", seen.member, text, remedy)
    elif not in_sync and not seen.why:
        text = f"it is not in sync with {status.active}, and {status.behind} records behind"
        yield ClusterFinding(NOTE, "replica_behind", seen.member, text, "", {"behind": status.behind})


def _kept_tail(seen: GroupState) -> Iterator[ClusterFinding]:
    """Finds files with the end of a journal that the group does not have."""
    sizes = {each.name: each.stat().st_size for each in sorted(seen.journal.glob(f"{CUT_PREFIX}*"))}
    if sizes:
        yield ClusterFinding(
            NOTE,
            "kept_tail",
            seen.member,
            f"{len(sizes)} files in {seen.journal} keep {sum(sizes.values())} bytes that were cut from its journal,"
            " because the active member did not have them",
            "keep them if replica_tail_cut in the log says that some of it was confirmed; else nothing in them counts",
            {"files": list(sizes)},
        )
