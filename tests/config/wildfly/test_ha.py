"""WildFly's elements of high availability mean the same as `<ha-policy>`."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.xml.convert import convert_file
from atalanta.ha.policy import HaPolicy
from atalanta.ha.policy_elements import ColocationConfig, ReplicationBackup, SharedStoreBackup

SUBSYSTEM = """<subsystem xmlns="urn:jboss:domain:messaging-activemq:17.0"><server name="default">
{inside}
<remote-connector name="other" socket-binding="other"/>
</server></subsystem>"""
SERVER = """<server xmlns="urn:jboss:domain:20.0"><profile>{}</profile>
<socket-binding-group name="s" default-interface="public">
<outbound-socket-binding name="other"><remote-destination host="other.example" port="61617"/></outbound-socket-binding>
</socket-binding-group></server>"""


def write(folder: Path, inside: str) -> Path:
    path = folder / "standalone.xml"
    path.write_text(SERVER.format(SUBSYSTEM.format(inside=inside)))
    return path


def read(folder: Path, inside: str) -> Configuration:
    return read_broker_xml(write(folder, inside), {})


def refused(folder: Path, inside: str) -> str:
    with pytest.raises(ConfigError) as error:
        read(folder, inside)
    return str(error.value)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<shared-store-primary/>", HaPolicy("shared-store", "primary")),
        (
            '<shared-store-master failover-on-server-shutdown="true"/>',
            HaPolicy("shared-store", "primary", failover_on_shutdown=True),
        ),
        ("<shared-store-secondary/>", HaPolicy("shared-store", "backup")),
        (
            '<shared-store-slave allow-failback="false" failover-on-server-shutdown="true" restart-backup="false"/>',
            HaPolicy("shared-store", "backup", True, False, False),
        ),
    ],
)
def test_a_shared_store(tmp_path: Path, inside: str, expected: HaPolicy) -> None:
    assert read(tmp_path, inside).ha == expected
    written = tmp_path / "broker.xml"
    written.write_text(convert_file(write(tmp_path, inside), {}).text)
    assert read_broker_xml(written, {}).ha == expected


def test_a_primary_by_replication(tmp_path: Path) -> None:
    inside = (
        '<replication-primary group-name="west" check-for-live-server="true"'
        ' initial-replication-sync-timeout="1000"/>'
    )
    configuration = read(tmp_path, inside)
    assert configuration.ha == HaPolicy("replication", "primary", group_name="west")
    names = [each.name for each in configuration.unsupported]
    assert names == ["initial-replication-sync-timeout", "ha-policy"]


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        (
            '<replication-secondary allow-failback="true" max-saved-replicated-journal-size="1"'
            ' restart-backup="true"><scale-down connectors="other"/></replication-secondary>',
            "describes a backup by replication",
        ),
        ("<replication-slave/>", "describes a backup by replication"),
        ('<shared-store-primary failover="true"/>', "unknown element <failover>"),
        ("<shared-store-primary><x/></shared-store-primary>", "unknown element <x> in <shared-store-primary>"),
        ("<shared-store-other/>", "unknown element <shared-store-other> in <server>"),
        ('<replication-primary initial-replication-sync-timeout="0"/>', "0 is less than 1"),
        ('<replication-primary cluster-name="c"/>', "there is no cluster-connection 'c'"),
    ],
)
def test_what_is_refused_with_its_line(tmp_path: Path, inside: str, says: str) -> None:
    (said,) = refused(tmp_path, inside).splitlines()
    assert says in said and "standalone.xml:2: " in said


def test_colocated_nodes(tmp_path: Path) -> None:
    inside = (
        '<shared-store-colocated request-backup="true" max-backups="2"><primary/>'
        '<secondary failover-on-server-shutdown="true"/></shared-store-colocated>'
    )
    colocation = read(tmp_path, inside).ha.colocation
    assert colocation == ColocationConfig(
        request_backup=True, backups_max=2, backup=SharedStoreBackup(failover_on_shutdown=True)
    )
    inside = (
        '<replication-colocated backup-port-offset="5" excluded-connectors="other"><master group-name="g"/><slave/>'
        "</replication-colocated>"
    )
    policy = read(tmp_path, inside).ha
    # WildFly's default of allow-failback is true.
    assert policy.group_name == "g" and policy.colocation == ColocationConfig(
        port_offset=5, excluded=["other"], backup=ReplicationBackup(allow_failback=True)
    )


def test_the_scale_down_of_a_secondary(tmp_path: Path) -> None:
    inside = '<shared-store-secondary><scale-down enabled="true" group-name="g"/></shared-store-secondary>'
    configuration = read(tmp_path, inside)
    assert configuration.ha.role == "backup" and configuration.scale_down == ScaleDownConfig(group_name="g")
