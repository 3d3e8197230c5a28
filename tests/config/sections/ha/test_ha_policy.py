"""The section `<ha-policy>`: every form of Artemis, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.restart import needs_restart
from atalanta.ha.manager_config import FileManagerConfig, GuardVoter
from atalanta.ha.policy import HaPolicy
from atalanta.ha.policy_elements import ColocationConfig, SharedStoreBackup

FILE = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor></acceptors>
<connectors>
  <connector name="own">tcp://127.0.0.1:61616</connector>
  <connector name="other">tcp://127.0.0.1:61617</connector><connector name="third">tcp://127.0.0.1:61618</connector>
</connectors>
{policy}
{more}
</core></configuration>
"""
CLUSTER = """<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
<static-connectors><connector-ref>other</connector-ref></static-connectors>
</cluster-connection></cluster-connections>
<cluster-user>u</cluster-user><cluster-password>p</cluster-password>"""


def read(folder: Path, policy: str, more: str = CLUSTER) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(FILE.format(policy=f"<ha-policy>{policy}</ha-policy>", more=more))
    return read_broker_xml(path, {})


def refused(folder: Path, policy: str, more: str = CLUSTER) -> str:
    """Returns the problems of a file that is not taken."""
    with pytest.raises(ConfigError) as error:
        read(folder, policy, more)
    return str(error.value)


def without_effect(configuration: Configuration) -> list[str]:
    """Returns the names of what the file asks for and this node does not give."""
    return [each.name for each in configuration.unsupported]


def test_without_the_section_a_node_has_no_policy(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(FILE.format(policy="", more=CLUSTER))
    assert read_broker_xml(path, {}).ha == HaPolicy()
    assert HaPolicy().form == "none"


# -- shared store -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("<primary/>", HaPolicy("shared-store", "primary")),
        ("<master/>", HaPolicy("shared-store", "primary")),
        (
            "<primary><failover-on-shutdown>true</failover-on-shutdown></primary>",
            HaPolicy("shared-store", "primary", failover_on_shutdown=True),
        ),
        # The code's defaults: Artemis' schema says that restart-backup is false.
        (
            "<backup/>",
            HaPolicy("shared-store", "backup", allow_failback=True, restart_backup=True),
        ),
        (
            "<slave><allow-failback>false</allow-failback><restart-backup>false</restart-backup>"
            "<failover-on-shutdown>true</failover-on-shutdown></slave>",
            HaPolicy("shared-store", "backup", True, False, False),
        ),
    ],
)
def test_a_shared_store(tmp_path: Path, policy: str, expected: HaPolicy) -> None:
    configuration = read(tmp_path, f"<shared-store>{policy}</shared-store>")
    assert configuration.ha == expected
    assert configuration.unsupported == [] and configuration.warnings == []


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("<primary><failover-on-shutdown>perhaps</failover-on-shutdown></primary>", "neither true nor false"),
        ("<primary><allow-failback>true</allow-failback></primary>", "unknown element <allow-failback>"),
        ("<backup><restart-backups>true</restart-backups></backup>", "did you mean 'restart-backup'?"),
        ("<primery/>", "did you mean 'primary'?"),
        ("", "says one role of this node, not 0 (<primary/>, <backup/> or <colocated>)"),
        ("<primary/><backup/>", "says one role of this node, not 2"),
    ],
)  # fmt: skip
def test_mistakes_name_line_and_remedy(tmp_path: Path, policy: str, says: str) -> None:
    said = refused(tmp_path, f"<shared-store>{policy}</shared-store>")
    assert says in said and "broker.xml:7: " in said


def test_options_that_change_nothing_are_listed(tmp_path: Path) -> None:
    policy = "<wait-for-activation>false</wait-for-activation><failback-delay>1</failback-delay>"
    configuration = read(tmp_path, f"<shared-store><primary>{policy}</primary></shared-store>")
    assert without_effect(configuration) == ["wait-for-activation", "failback-delay"]


def test_a_shared_store_without_messages_on_disk_is_refused(tmp_path: Path) -> None:
    more = "<persistence-enabled>false</persistence-enabled>" + CLUSTER
    said = refused(tmp_path, "<shared-store><primary/></shared-store>", more)
    assert "broker.xml:7: a shared store needs messages on disk" in said
    assert "remove persistence-enabled" in said


def test_without_a_cluster_connection_nobody_learns_of_the_backup(tmp_path: Path) -> None:
    configuration = read(tmp_path, "<shared-store><primary/></shared-store>", "")
    (warning,) = configuration.warnings
    assert "broker.xml:7: ha-policy: there is no cluster-connection: clients" in warning


def test_a_second_section_is_a_problem(tmp_path: Path) -> None:
    more = "<ha-policy><primary-only/></ha-policy>"
    said = refused(tmp_path, "<shared-store><primary/></shared-store>", more)
    assert "broker.xml:8: ha-policy is given twice" in said


@pytest.mark.parametrize(
    ("policy", "effect"),
    [
        ("<shared-store><primary/></shared-store>", []),
        ("<shared-store><backup/></shared-store>", ["journal-lock-acquisition-timeout"]),
        ("<primary-only/>", ["journal-lock-acquisition-timeout"]),
    ],
)
def test_how_long_a_primary_waits_for_the_store(tmp_path: Path, policy: str, effect: list[str]) -> None:
    more = "<journal-lock-acquisition-timeout>{}</journal-lock-acquisition-timeout>" + CLUSTER
    configuration = read(tmp_path, policy, more.format(5000))
    assert configuration.journal.lock_acquisition_timeout_ms == 5000
    assert without_effect(configuration) == effect
    assert without_effect(read(tmp_path, policy, more.format(-1))) == []
    assert "is above 0, or -1" in refused(tmp_path, policy, more.format(0))


def test_another_policy_needs_a_restart(tmp_path: Path) -> None:
    before = read(tmp_path, "<shared-store><primary/></shared-store>")
    after = read(tmp_path, "<shared-store><backup/></shared-store>")
    assert needs_restart(before, after) == ["ha-policy"]


# -- replication ------------------------------------------------------------------------------------------
REPLICATION = """<group-name>west</group-name><cluster-name>c</cluster-name>
<initial-replication-sync-timeout>9000</initial-replication-sync-timeout>
<max-saved-replicated-journals-size>-1</max-saved-replicated-journals-size>
<retry-replication-wait>100</retry-replication-wait>
<vote-on-replication-failure>true</vote-on-replication-failure>
<quorum-size>2</quorum-size><vote-retries>3</vote-retries><vote-retry-wait>10</vote-retry-wait>
<quorum-vote-wait>5</quorum-vote-wait>"""
SEVERAL = CLUSTER.replace("<connector-ref>other</connector-ref>", "<connector-ref>other</connector-ref>" * 2).replace(
    "other</connector-ref></static", "third</connector-ref></static"
)
NAMES = [
    "initial-replication-sync-timeout", "max-saved-replicated-journals-size",
    "retry-replication-wait", "vote-on-replication-failure", "quorum-size", "vote-retries", "vote-retry-wait",
    "quorum-vote-wait",
]  # fmt: skip


@pytest.mark.parametrize("name", ["primary", "master"])
@pytest.mark.parametrize("check", ["check-for-active-server", "check-for-live-server"])
def test_a_primary_of_several_without_a_manager_serves_alone_and_says_so_with_the_remedy(
    tmp_path: Path, name: str, check: str
) -> None:
    more = f"<{check}>true</{check}><coordination-id>x</coordination-id>"
    policy = f"<replication><{name}>{REPLICATION}{more}</{name}></replication>"
    configuration = read(tmp_path, policy, SEVERAL)
    expected = HaPolicy("replication", "primary", group_name="west", cluster_name="c", coordination_id="x")
    assert configuration.ha == expected
    assert without_effect(configuration) == [*NAMES, "ha-policy"]
    (lost,) = [each for each in configuration.unsupported if each.name == "ha-policy"]
    assert lost.why.startswith("no manager says who is active, so this node serves alone: start `atalanta ha witness`")


def test_defaults_of_replication_are_not_listed(tmp_path: Path) -> None:
    policy = "<vote-retries>12</vote-retries><quorum-size>-1</quorum-size>"
    configuration = read(tmp_path, f"<replication><primary>{policy}</primary></replication>")
    assert without_effect(configuration) == []


@pytest.mark.parametrize(
    ("role", "whose", "voter"), [("primary", "this primary", 62616), ("slave", "the primary", 62617)]
)
def test_of_two_nodes_without_a_manager_the_guard_of_the_primary_decides(
    tmp_path: Path, role: str, whose: str, voter: int
) -> None:
    configuration = read(tmp_path, f"<replication><{role}/></replication>")
    manager = configuration.ha.manager
    assert isinstance(manager, GuardVoter) and manager.voters == f"127.0.0.1:{voter}" and manager.password
    assert manager.voter == (f"127.0.0.1:{voter}" if role == "primary" else None)
    (said,) = configuration.warnings
    assert said.startswith(f"{tmp_path}/broker.xml:7: ha-policy: no manager is configured: the voter 127.0.0.1:{voter}")
    assert f"in the guard of {whose}, decides who is active. When all processes there end at once" in said
    assert "start `atalanta ha witness`" in said and "\n" not in said
    named = read(tmp_path, f"<replication><{role}>{MANAGER}</{role}></replication>")
    assert not isinstance(named.ha.manager, GuardVoter)


@pytest.mark.parametrize("name", ["backup", "slave"])
def test_a_backup_of_several_without_a_manager_is_refused(tmp_path: Path, name: str) -> None:
    more = "<allow-failback>true</allow-failback><restart-backup>false</restart-backup>"
    said = refused(tmp_path, f"<replication><{name}>{REPLICATION}{more}</{name}></replication>", SEVERAL)
    assert "broker.xml:7: this file describes a backup by replication" in said
    assert "start `atalanta ha witness` and name it in atalanta.toml" in said and "\n" not in said


MANAGER = """<manager><class-name>org.apache.activemq.artemis.lockmanager.file.FileBasedLockManager</class-name>
<properties><property key="locks-folder" value="/srv/locks"/></properties></manager>"""


@pytest.mark.parametrize("role", ["primary", "backup"])
def test_a_member_of_a_group(tmp_path: Path, role: str) -> None:
    more = "" if role == "primary" else "<allow-failback>true</allow-failback>"
    configuration = read(tmp_path, f"<replication><{role}>{more}{MANAGER}</{role}></replication>")
    expected = HaPolicy("replication", role, manager=FileManagerConfig("/srv/locks"))
    assert configuration.ha == expected
    (folder_is_missing,) = configuration.warnings
    assert configuration.unsupported == [] and "locks-folder: there is no folder /srv/locks" in folder_is_missing
    named = configuration.group_connection()
    assert named is not None and named.static_connectors == ["other"]


def test_a_backup_gives_back_only_if_it_is_told_to(tmp_path: Path) -> None:
    """The default of Artemis' code; its schema and its manual say true."""
    assert read(tmp_path, f"<replication><backup>{MANAGER}</backup></replication>").ha.allow_failback is False


def test_a_replication_without_messages_on_disk_is_refused(tmp_path: Path) -> None:
    more = "<persistence-enabled>false</persistence-enabled>" + CLUSTER
    said = refused(tmp_path, f"<replication><primary>{MANAGER}</primary></replication>", more)
    assert "broker.xml:7: a replication needs messages on disk" in said


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "there is no cluster-connection: this node cannot find the others"),
        (CLUSTER.replace("<connector-ref>other</connector-ref>", ""), "c has neither static-connectors nor a"),
    ],
)
def test_a_member_that_cannot_find_the_others_is_refused(tmp_path: Path, more: str, says: str) -> None:
    assert says in refused(tmp_path, f"<replication><backup>{MANAGER}</backup></replication>", more)


def test_the_cluster_connection_of_the_group_is_checked(tmp_path: Path) -> None:
    policy = f"<replication><backup><cluster-name>west</cluster-name>{MANAGER}</backup></replication>"
    assert "there is no cluster-connection 'west'" in refused(tmp_path, policy)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("<vote-retries>-2</vote-retries>", "vote-retries: -2 is less than -1"),
        ("<initial-replication-sync-timeout>0</initial-replication-sync-timeout>", "0 is less than 1"),
        ("<group-nam>x</group-nam>", "did you mean 'group-name'?"),
        ("<failover-on-shutdown>true</failover-on-shutdown>", "unknown element <failover-on-shutdown>"),
        ("<quorum-vote-wait>30 s</quorum-vote-wait>", "'30 s' is not a number"),
    ],
)
def test_values_of_replication_are_checked(tmp_path: Path, policy: str, says: str) -> None:
    said = refused(tmp_path, f"<replication><primary>{policy}</primary></replication>")
    assert "broker.xml:7: " in said and says in said


def test_a_value_of_an_inner_element_is_not_one_of_the_outer(tmp_path: Path) -> None:
    """Artemis takes the group of `<scale-down>` for that of a backup that has none."""
    inside = "<scale-down><group-name>west</group-name></scale-down>"
    configuration = read(tmp_path, f"<shared-store><backup>{inside}</backup></shared-store>")
    assert configuration.ha.group_name is None


# -- colocated, several ------------------------------------------------------------------------------------
COLOCATED = """<request-backup>true</request-backup><backup-request-retries>3</backup-request-retries>
<backup-request-retry-interval>10</backup-request-retry-interval><max-backups>2</max-backups>
<backup-port-offset>7</backup-port-offset>"""


@pytest.mark.parametrize("roles", [("primary", "backup"), ("master", "slave")])
@pytest.mark.parametrize("form", ["shared-store", "replication"])
def test_a_colocated_node_is_a_primary_that_hosts_backups(tmp_path: Path, form: str, roles: tuple[str, str]) -> None:
    inside = f"{COLOCATED}<{roles[0]}/><{roles[1]}><allow-failback>false</allow-failback></{roles[1]}>"
    if form == "replication":
        inside += "<excludes><connector-ref>other</connector-ref></excludes>"
    configuration = read(tmp_path, f"<{form}><colocated>{inside}</colocated></{form}>")
    policy, colocation = configuration.ha, configuration.ha.colocation
    assert (policy.form, policy.role) == (form, "primary") and colocation is not None
    assert colocation.request_backup and colocation.request_retry_interval_ms == 10
    assert (colocation.backups_max, colocation.port_offset) == (2, 7)
    assert colocation.backup is not None and colocation.backup.allow_failback is False
    assert colocation.excluded == (["other"] if form == "replication" else [])


def test_colocated_defaults_are_those_of_the_code(tmp_path: Path) -> None:
    colocation = read(tmp_path, "<shared-store><colocated/></shared-store>").ha.colocation
    assert colocation == ColocationConfig(backup=SharedStoreBackup())
    assert (colocation.request_backup, colocation.backups_max, colocation.port_offset) == (False, 1, 100)
    assert colocation.request_retry_interval_ms == 5000


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("<replication><colocated><max-backups>-1</max-backups></colocated></replication>", "-1 is less than 0"),
        (
            "<replication><colocated><excludes><connector-ref>x</connector-ref></excludes></colocated></replication>",
            "there is no connector 'x'",
        ),
        ("<shared-store><colocated><excludes/></colocated></shared-store>", "unknown element <excludes>"),
        ("<primary-only/><shared-store><backup/></shared-store>", "one policy, not 2: primary-only, shared-store"),
        ("<replicated/>", "did you mean 'replication'?"),
        ("<replication/>", "says one role of this node, not 0"),
    ],
)  # fmt: skip
def test_mistakes_in_the_form(tmp_path: Path, policy: str, says: str) -> None:
    assert says in refused(tmp_path, policy)


def test_an_empty_section_is_that_of_a_node_alone(tmp_path: Path) -> None:
    configuration = read(tmp_path, "")
    assert configuration.ha == HaPolicy() and configuration.unsupported == []
