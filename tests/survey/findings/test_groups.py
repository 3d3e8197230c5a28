"""`atalanta doctor` of a member's folder: what is wrong with a replicated group, and the remedy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atalanta.cli.application import application
from atalanta.config.broker_xml import read_broker_xml
from atalanta.ha.register import Register
from atalanta.management.status import HaStatus, ReplicaStatus
from atalanta.runtime.ha.group.member_status import FollowerStatus, MemberStatus
from atalanta.survey.findings.cluster_finding import ClusterFinding
from atalanta.survey.findings.groups import group_findings, replication_findings
from atalanta.survey.findings.members import announced_addresses, connectors
from atalanta.survey.members.group_state import GroupState
from atalanta.survey.model.cluster import Unreachable
from atalanta.survey.model.groups import ReplicationView, ReplicaView
from tests.cli.cluster_files import member_file
from tests.management.management_rig import Desk
from tests.survey.desk import surveyed
from tests.survey.views import two_nodes

PASSIVE = MemberStatus("b-00000002", "backup", "passive", 7, "a-00000001", 100, 0, [], 1)
ACTIVE = MemberStatus(
    "a-00000001", "primary", "active", 7, "a-00000001", 100, 0, [FollowerStatus("b-00000002", True, 0)], 1
)
REGISTER = Register(7, "a-00000001", ("a-00000001", "b-00000002"), 0, b"")


def found(folder: Path, state: GroupState, toml: str = "") -> list[ClusterFinding]:
    path = member_file(folder, "a", "b", "primary")
    own = path.with_name("a.atalanta.toml")
    own.write_text(toml + own.read_text())
    return list(group_findings(read_broker_xml(path).ha, state))


def seen(folder: Path, status: MemberStatus | None, register: Register | None = REGISTER, why: str = "") -> GroupState:
    return GroupState(folder, "a-00000001" if status is None else status.member, status, register, why)


@pytest.mark.parametrize("status", [PASSIVE, ACTIVE])
def test_nothing_is_found_in_a_healthy_group(tmp_path: Path, status: MemberStatus) -> None:
    assert found(tmp_path, seen(tmp_path, status)) == []


def test_the_manager_does_not_answer(tmp_path: Path) -> None:
    (one,) = found(tmp_path, seen(tmp_path, PASSIVE, None, "no voter answers"))
    assert (one.severity, one.code) == ("error", "manager_unreachable")
    assert one.text == "the manager does not answer: no voter answers" and "no member can take over" in one.remedy


def test_an_active_member_without_replicas(tmp_path: Path) -> None:
    behind = replace(ACTIVE, followers=[FollowerStatus("b-00000002", False, 500)])
    state = seen(tmp_path, behind, Register(7, "a-00000001", ("a-00000001",), 0, b""))
    first, second = found(tmp_path, state)
    assert (first.severity, first.code) == ("warning", "no_replica_in_sync") and "start the backup" in first.remedy
    assert second.text == "b-00000002 is not in sync: 500 records behind, for 0 s"
    first, _ = found(tmp_path, state, "[ha]\nmin_in_sync = 2\n")
    assert (first.severity, first.code) == ("error", "replicas_missing")
    assert first.text == "nothing is confirmed: members in sync are 1, and min_in_sync is 2"


def test_an_asynchronous_copy_that_is_late(tmp_path: Path) -> None:
    def followers(behind_s: float) -> MemberStatus:
        far = FollowerStatus("c-00000003", False, 20_000, True, behind_s)
        return replace(ACTIVE, followers=[*ACTIVE.followers, far])

    assert found(tmp_path, seen(tmp_path, followers(2.0))) == []
    (one,) = found(tmp_path, seen(tmp_path, followers(90.0)))
    assert (one.severity, one.code) == ("warning", "replica_lag")
    assert one.text.startswith("the asynchronous copy c-00000003 is 20000 records behind, for 90 s: as much is lost")


def test_what_the_active_node_says_over_the_network() -> None:
    desk = Desk()
    assert desk.get("broker", "ReplicationAsJSON") == ""
    replica = ReplicaStatus("b-00000002", False, False, 7, 0.5)
    desk.management.status.ha = HaStatus("Replication Primary w/lock manager", epoch=3, replicas=(replica,),
                                           register_problem="no voter answers", connected=["b-00000002"])
    manager, alone, behind = replication_findings(surveyed(desk))
    assert (manager.node, manager.text) == (desk.broker.config.name, "the manager does not answer: no voter answers")
    assert alone.code == "no_replica_in_sync"
    assert behind.text == "b-00000002 is not in sync: 7 records behind, for 0 s"


def test_a_group_whose_only_voter_is_in_a_guard(tmp_path: Path) -> None:
    """A kill of all processes of that member at once is what such a group does not survive, and nobody may know."""
    path = member_file(tmp_path, "a", "b", "primary")
    path.with_name("a.atalanta.toml").unlink()
    configuration = read_broker_xml(path)
    (warned,) = [each for each in configuration.warnings if "no manager is configured" in each]
    assert "When all processes there end at once (host, container, service), no backup takes over" in warned
    (one,) = group_findings(configuration.ha, seen(tmp_path, ACTIVE))
    assert (one.severity, one.code) == ("note", "only_voter") and "atalanta ha witness" in one.remedy
    desk = Desk()
    replica = ReplicaStatus("b-00000002", True, True, 0, 0)
    desk.management.status.ha = HaStatus("Replication Primary w/lock manager", replicas=(replica,), only_voter=True)
    (one,) = replication_findings(surveyed(desk))
    assert (one.node, one.code) == (desk.broker.config.name, "only_voter")


def test_a_passive_member_that_waits(tmp_path: Path) -> None:
    alone = replace(PASSIVE, epoch=0, active="", waits="in sync are a-00000001: start one of these")
    (one,) = found(tmp_path, seen(tmp_path, alone))
    assert (one.code, one.text) == ("member_waits", "it waits: in sync are a-00000001: start one of these")
    (one,) = found(tmp_path, seen(tmp_path, replace(alone, waits="")))
    assert one.code == "member_follows_nobody" and "<static-connectors>" in one.remedy
    late = Register(7, "a-00000001", ("a-00000001",), 0, b"")
    (one,) = found(tmp_path, seen(tmp_path, replace(PASSIVE, behind=9), late))
    assert (one.severity, one.text) == ("note", "it is not in sync with a-00000001, and 9 records behind")


def test_a_register_that_names_the_folder_s_former_content(tmp_path: Path) -> None:
    fresh = replace(PASSIVE, member="b-ffffffff")
    (one, _) = found(tmp_path, seen(tmp_path, fresh))
    assert one.code == "member_replaced"
    assert one.text == "the register has b-00000002 in sync, whose folder this was: its journal is gone"
    assert "bring that journal back" in one.remedy and "atalanta ha promote --lossy" in one.remedy


def test_the_folder_of_a_stopped_member_is_an_argument(tmp_path: Path) -> None:
    path = member_file(tmp_path, "a", "b", "primary")
    own = path.with_name("a.atalanta.toml")
    (tmp_path / "locks").mkdir()
    own.write_text(f'[ha.manager]\nkind = "file"\nlocks-folder = "{tmp_path}/locks"\n')
    journal = tmp_path / "data" / "a"
    journal.mkdir(parents=True)
    nothing = CliRunner().invoke(application, ["doctor", str(path)])
    assert nothing.exit_code == 65 and "no member of a replicated group was started here yet" in nothing.stderr
    (journal / "member").write_text("a-00000001\nstored\n")
    (journal / "node-id").write_text("0f8fad5b-d9cb-469f-a165-70867728950e\n")
    (journal / "cut-0000000003-00000000000000000100-00000000000000000002.log").write_bytes(bytes(4096))
    done = CliRunner().invoke(application, ["doctor", str(path)], env={"COLUMNS": "160"})
    assert done.exit_code == 1, done.output
    for text in (
        "the process of this member does not run",
        "the group has no register yet",
        "keep 4096 bytes that were cut from its journal",
        "1 node asked: 2 warnings, 1 note",
    ):
        assert text in done.stdout, done.stdout
    told = json.loads(CliRunner().invoke(application, ["doctor", "--json", str(path)]).stdout)
    assert [each["code"] for each in told["findings"]] == ["member_stopped", "register_missing", "kept_tail"]
    (journal / "node-id").unlink()
    told = json.loads(CliRunner().invoke(application, ["doctor", "--json", str(path)]).stdout)
    assert [each["code"] for each in told["findings"]] == ["group_unmet", "member_stopped", "kept_tail"]


def test_a_folder_of_another_node_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("<configuration><core/></configuration>")
    done = CliRunner().invoke(application, ["doctor", str(path)])
    assert done.exit_code == 65 and "has no backup (no ha-policy): name host:port" in done.stderr


def test_a_member_that_was_stopped_is_not_passed_over() -> None:
    """Another one is in sync, so that nothing else is wrong."""
    desk = Desk()
    replicas = (
        ReplicaStatus("b-00000002", True, False, 0, 0, "h2:1"),
        ReplicaStatus("c-00000003", False, False, 9, 125.0, "h3:1"),
    )
    desk.management.status.ha = HaStatus("Replication Primary", replicas=replicas, connected=["b-00000002"])
    cluster = surveyed(desk)
    (one,) = replication_findings(cluster)
    assert (one.severity, one.code) == ("warning", "replica_away")
    assert one.text == "c-00000003 of its group is away for 2 min"
    pair = cluster.nodes[0].pair()
    assert pair is not None and [each.at for each in pair.passive] == ["h2:1", "h3:1"]


def test_connectors_to_passive_members_fail_as_they_should() -> None:
    """A passive member does not listen: a healthy group of three was a warning for ever."""
    cluster = two_nodes()
    node = cluster.nodes[0]
    node.connections[0].failures = {"h3:1": "connection refused", "h9:1": "connection refused"}
    node.replication = ReplicationView(replicas=[ReplicaView("c-00000003", True, at="h3:1", connected=True)])
    (one,) = connectors(cluster)
    assert one.facts["connector"] == "h9:1"


def test_a_member_that_stays_behind(tmp_path: Path) -> None:
    late = FollowerStatus("c-00000003", False, 500, False, 40.0)
    (one,) = found(tmp_path, seen(tmp_path, replace(ACTIVE, followers=[*ACTIVE.followers, late])))
    assert (one.severity, one.code) == ("warning", "replica_behind") and "start the backup" in one.remedy


def test_an_active_node_of_a_pair_tells_of_a_stopped_backup() -> None:
    """A backup that has left stays announced, so the topology does not tell it."""
    desk = Desk()
    for waiting, codes in ((None, []), (("h2:1",), []), ((), ["backup_missing"])):
        desk.management.status.ha = HaStatus("Shared Store Primary", shared_store=True, epoch=2, waiting=waiting)
        assert [each.code for each in replication_findings(surveyed(desk))] == codes
    node = surveyed(desk).nodes[0]
    node.backups[node.node_id] = "h2:1"
    pair = node.pair()
    assert pair is not None and [(each.at, each.connected) for each in pair.passive] == [("h2:1", False)]


def test_a_voter_that_does_not_answer_while_the_others_are_a_majority() -> None:
    desk = Desk()
    replica = ReplicaStatus("b-00000002", True, False, 0, 0)
    desk.management.status.ha = HaStatus(
        "Replication Primary", replicas=(replica,), silent_voters={"h9:5790": "connection refused"}
    )
    (one,) = replication_findings(surveyed(desk))
    assert (one.severity, one.code) == ("warning", "voter_silent")
    assert one.text == "the voter at h9:5790 of its register does not answer: connection refused"


def test_a_passive_member_that_is_named_does_not_answer_and_need_not() -> None:
    cluster = two_nodes()
    cluster.nodes[0].replication = ReplicationView(replicas=[ReplicaView("c-00000003", True, at="h3:1")])
    cluster.unreachable.append(Unreachable("h3:1", "connection refused"))
    cluster.unreachable.append(Unreachable("h9:1", "connection refused"))
    assert [each.node for each in announced_addresses(cluster)] == ["h9:1"]
