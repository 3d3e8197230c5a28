"""The section `<ha-policy>`: every form of Artemis, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.restart import needs_restart
from atalanta.ha.policy import HaPolicy

FILE = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor></acceptors>
<connectors>
  <connector name="own">tcp://127.0.0.1:61616</connector>
  <connector name="other">tcp://127.0.0.1:61617</connector>
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
        ("", "says one role of this node, not 0 (<primary/> or <backup/>)"),
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


def test_another_policy_needs_a_restart(tmp_path: Path) -> None:
    before = read(tmp_path, "<shared-store><primary/></shared-store>")
    after = read(tmp_path, "<shared-store><backup/></shared-store>")
    assert needs_restart(before, after) == ["ha-policy"]
