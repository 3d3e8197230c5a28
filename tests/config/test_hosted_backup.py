"""The configuration of a hosted backup, made from that of its host."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.hosted_backup import hosted_configuration
from atalanta.ha.manager_config import GuardVoter
from atalanta.ha.policy_elements import HostedBackup

FILE = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<name>host</name>
<journal-directory>{folder}/journal</journal-directory>
<connectors>
  <connector name="own">tcp://10.0.0.1:61616</connector>
  <connector name="vip">tcp://10.0.0.9:443</connector>
  <connector name="other">tcp://10.0.0.2:61616</connector>
</connectors>
<acceptors><acceptor name="a">tcp://0.0.0.0:61616</acceptor><acceptor name="b">tcp://0.0.0.0:5445</acceptor></acceptors>
<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
  <static-connectors><connector-ref>other</connector-ref></static-connectors></cluster-connection>
  <cluster-connection name="d"><connector-ref>vip</connector-ref></cluster-connection></cluster-connections>
<ha-policy>{policy}</ha-policy>
</core></configuration>
"""
NODE = "d7315da5-e7b2-11f1-8330-9bd59ca859a0"
REPLICATION = """<replication><colocated><primary><group-name>west</group-name></primary>
<backup><group-name>east</group-name><allow-failback>true</allow-failback></backup>
<excludes><connector-ref>vip</connector-ref></excludes></colocated></replication>"""


def hosted(folder: Path, policy: str, backup: HostedBackup, own: str = "") -> Configuration:
    (folder / "broker.xml").write_text(FILE.format(folder=folder, policy=policy))
    (folder / "atalanta.toml").write_text(own)
    return hosted_configuration(read_broker_xml(folder / "broker.xml", {}), backup)


def test_ports_are_shifted_but_not_those_of_other_nodes_and_excluded_ones(tmp_path: Path) -> None:
    made = hosted(tmp_path, REPLICATION, HostedBackup(NODE, 2, "10.0.0.2", 61616))
    assert [each.port for each in made.acceptors] == [61816, 5645]
    ports = {name: (each.host, each.port) for name, each in made.connectors.items()}
    assert ports["own"] == ("10.0.0.1", 61816) and ports["other"] == ("10.0.0.2", 61616)
    assert ports["vip"] == ("10.0.0.9", 443)
    # The backup finds its host, which is a member of the cluster too.
    assert ports["colocated_host"] == ("10.0.0.1", 61616)
    assert made.cluster_connections[0].static_connectors == ["other", "colocated_host"]


def test_with_replication_it_has_folders_of_its_own_and_the_node_id_of_its_primary(tmp_path: Path) -> None:
    own = '[ha]\nguard_port = 7000\n[ha.manager]\nkind = "quorum"\nvoters = "h:1"\nvoter = "h:1"\n'
    made = hosted(tmp_path, REPLICATION, HostedBackup(NODE, 1, "10.0.0.2", 61616), own)
    assert made.journal_folder == tmp_path / f"journal-of-{NODE}"
    assert made.paging_folder == tmp_path / f"data/paging-of-{NODE}"
    assert made.large_messages_folder.name.endswith(f"-of-{NODE}")
    policy = made.ha
    assert (policy.role, policy.coordination_id, policy.group_name) == ("backup", NODE, "east")
    assert policy.allow_failback and policy.colocation is None and policy.guard_port == 7100
    # The voter of the host's guard is not one of the backup, too.
    assert policy.manager is not None and getattr(policy.manager, "voter", "") is None
    assert made.broker.name == "colocated_backup_1"


def test_with_a_shared_store_it_has_the_folders_of_its_primary(tmp_path: Path) -> None:
    backup = "<backup><failover-on-shutdown>true</failover-on-shutdown></backup>"
    policy = f"<shared-store><colocated>{backup}</colocated></shared-store>"
    made = hosted(tmp_path, policy, HostedBackup(NODE, 1, "h", 1, "/san/j", "/san/p", "/san/l"))
    folders = made.journal_folder, made.paging_folder, made.large_messages_folder
    assert folders == (Path("/san/j"), Path("/san/p"), Path("/san/l"))
    assert made.ha.failover_on_shutdown and made.ha.coordination_id is None


def test_a_host_whose_file_is_not_colocated_any_more_hosts_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no <colocated> any more"):
        hosted(tmp_path, "<shared-store><primary/></shared-store>", HostedBackup(NODE, 1, "h", 1))


def test_without_a_manager_the_voter_is_that_of_the_primary_it_backs_up(tmp_path: Path) -> None:
    made = hosted(tmp_path, REPLICATION, HostedBackup(NODE, 1, "10.0.0.2", 61616)).ha.manager
    assert isinstance(made, GuardVoter) and (made.voters, made.voter) == ("10.0.0.2:62616", None)
