"""`<scale-down>`: its forms, those of 1.4, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cluster.config import ScaleDownConfig
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.findings import CheckedNode, Findings
from atalanta.config.checks.scale_down import check_scale_down
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError

FILE = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="a">tcp://127.0.0.1:61616</acceptor></acceptors>
<connectors>
  <connector name="own">tcp://127.0.0.1:61616</connector>
  <connector name="other">tcp://127.0.0.1:61617</connector>
</connectors>
<discovery-groups><discovery-group name="dg">
  <group-address>231.7.7.7</group-address><group-port>9876</group-port>
</discovery-group></discovery-groups>
{more}
</core></configuration>
"""
CLUSTER = """<cluster-connections><cluster-connection name="c"><connector-ref>own</connector-ref>
<static-connectors><connector-ref>other</connector-ref></static-connectors>
</cluster-connection></cluster-connections>"""


def read(folder: Path, text: str, cluster: str = CLUSTER) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(FILE.format(more=text + cluster))
    return read_broker_xml(path, {})


def scale_down(folder: Path, text: str) -> ScaleDownConfig:
    settings = read(folder, text).cluster_settings()
    assert settings is not None and settings.scale_down is not None
    return settings.scale_down


@pytest.mark.parametrize("policy", ["primary-only", "live-only"])
def test_the_whole_element_is_read(tmp_path: Path, policy: str) -> None:
    text = f"""<ha-policy><{policy}><scale-down>
        <enabled>false</enabled><group-name>west</group-name>
        <connectors><connector-ref>other</connector-ref><connector-ref>own</connector-ref></connectors>
        <commit-interval>500</commit-interval></scale-down></{policy}></ha-policy>"""
    assert scale_down(tmp_path, text) == ScaleDownConfig(
        False, "west", 500, None, None, ["other", "own"]
    )


def test_a_discovery_group_instead_of_connectors(tmp_path: Path) -> None:
    text = """<ha-policy><live-only><scale-down>
        <discovery-group-ref discovery-group-name="dg"/></scale-down></live-only></ha-policy>"""
    assert scale_down(tmp_path, text) == ScaleDownConfig(discovery_group="dg")


def test_without_the_element_a_node_does_not_scale_down(tmp_path: Path) -> None:
    configuration = read(tmp_path, "<ha-policy><primary-only/></ha-policy>")
    assert configuration.scale_down is None and not configuration.unsupported


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<ha-policy><live-only><scale-down>true</scale-down>"
            "<scale-down-group-name>g</scale-down-group-name></live-only></ha-policy>",
            ScaleDownConfig(group_name="g"),
        ),
        (
            "<scale-down>true</scale-down><scale-down-clustername>c</scale-down-clustername>",
            ScaleDownConfig(cluster_name="c"),
        ),
        (
            "<scale-down-group-name>g</scale-down-group-name>",
            ScaleDownConfig(enabled=False, group_name="g"),
        ),
        (
            "<scale-down-group-name>g</scale-down-group-name><scale-down>true</scale-down>",
            ScaleDownConfig(group_name="g"),
        ),
    ],
)
def test_forms_of_1_4(tmp_path: Path, text: str, expected: ScaleDownConfig) -> None:
    assert scale_down(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("inside", "problem"),
    [
        ("<connectors><connector-ref>othre</connector-ref></connectors>", "no connector 'othre'"),
        ('<discovery-group-ref discovery-group-name="x"/>', "no discovery-group 'x'"),
        ("<commit-interval>0</commit-interval>", "commit-interval is above 0, or -1"),
        ("<enabeld>true</enabeld>", "unknown element <enabeld>"),
        (
            '<discovery-group-ref discovery-group-name="dg"/>'
            "<connectors><connector-ref>other</connector-ref></connectors>",
            "connectors and a discovery group",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, inside: str, problem: str) -> None:
    text = f"<ha-policy><primary-only><scale-down>{inside}</scale-down></primary-only></ha-policy>"
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, text)
    (said,) = refused.value.problems
    assert problem in str(said) and said.line == 10


def test_without_a_cluster_connection_it_has_no_effect_and_that_is_said(tmp_path: Path) -> None:
    text = "<ha-policy><primary-only><scale-down/></primary-only></ha-policy>"
    configuration = read(tmp_path, text, cluster="")
    assert [each.name for each in configuration.unsupported] == ["scale-down"]


def test_a_backup_empties_itself(tmp_path: Path) -> None:
    text = "<ha-policy><shared-store><backup><scale-down>{}</scale-down></backup></shared-store></ha-policy>"
    configuration = read(tmp_path, text.format("<group-name>west</group-name>"))
    assert configuration.scale_down == ScaleDownConfig(group_name="west") and configuration.unsupported == []
    assert configuration.empties_itself
    assert not read(tmp_path, text.format("<enabled>false</enabled>")).empties_itself


def test_the_element_of_a_hosted_backup_is_checked_and_has_no_effect(tmp_path: Path) -> None:
    text = "<ha-policy><shared-store><colocated><primary/><backup><scale-down>{}</scale-down></backup></colocated>"
    text += "</shared-store></ha-policy>"
    configuration = read(tmp_path, text.format("<group-name>west</group-name>"))
    assert configuration.scale_down is None and not configuration.empties_itself
    assert [(each.name, each.lost) for each in configuration.unsupported] == [("scale-down", True)]
    with pytest.raises(ConfigError, match="unknown element <enabeld>"):
        read(tmp_path, text.format("<enabeld>true</enabeld>"))


# -- what `atalanta check` says ---------------------------------------------------------------------------
def checked(*configurations: Configuration) -> list[str]:
    findings = Findings()
    check_scale_down([CheckedNode(each) for each in configurations], findings)
    return [finding.text for finding in findings.found]


def node(folder: Path, name: str, inside: str, port: int = 61616) -> Configuration:
    (folder / name).mkdir()
    text = f"<ha-policy><primary-only><scale-down>{inside}</scale-down></primary-only></ha-policy>"
    path = folder / name / "broker.xml"
    path.write_text(FILE.format(more=text + CLUSTER).replace(":61616<", f":{port}<"))
    return read_broker_xml(path, {})


def test_a_group_that_nobody_else_is_of_is_an_error(tmp_path: Path) -> None:
    west = node(tmp_path, "a", "<group-name>west</group-name>")
    east = node(tmp_path, "b", "<enabled>false</enabled><group-name>east</group-name>", 61617)
    also = node(tmp_path, "c", "<enabled>false</enabled><group-name>west</group-name>", 61618)
    (said,) = checked(west, east)
    assert "no other node is of the group 'west'" in said
    assert checked(west, east, also) == []


def test_connectors_that_lead_nowhere_or_home(tmp_path: Path) -> None:
    inside = "<connectors><connector-ref>{}</connector-ref></connectors>"
    stays = node(tmp_path, "b", "<enabled>false</enabled>", 61617)
    assert checked(node(tmp_path, "a", inside.format("other")), stays) == []
    home = checked(node(tmp_path, "c", inside.format("own")), stays)
    assert "leads to this node itself" in home[0]
    elsewhere = node(tmp_path, "d", "<enabled>false</enabled>", 61999)
    nowhere = checked(node(tmp_path, "e", inside.format("other")), elsewhere)
    assert nowhere == ["scale-down: other lead to none of the other nodes"]


def test_when_all_leave_somebody_must_stay(tmp_path: Path) -> None:
    both = [node(tmp_path, "a", ""), node(tmp_path, "b", "", 61617)]
    (said,) = checked(*both)
    assert "every node scales down at a stop" in said
