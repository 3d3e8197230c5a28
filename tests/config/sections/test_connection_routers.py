"""`<connection-routers>`: as they are read, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.findings import CheckedNode, Findings
from atalanta.config.checks.routers import check_routers
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.sections.connection_routers import routers_config

BROKER_XML = """<configuration><core>
<connectors><connector name="one">tcp://localhost:61617</connector>
<connector name="two">tcp://localhost:61618</connector></connectors>
<acceptors><acceptor name="artemis">tcp://localhost:61616{door}</acceptor></acceptors>
<connection-routers>
{routers}
</connection-routers>
<cluster-password>own</cluster-password>
</core></configuration>"""
STATIC = "<pool><static-connectors><connector-ref>one</connector-ref></static-connectors></pool>"


def read(folder: Path, routers: str, door: str = "?router=r") -> Configuration:
    path = folder / "broker.xml"
    path.write_text(BROKER_XML.format(routers=routers, door=door))
    return read_broker_xml(path, {})


def test_a_router_is_read_with_all_its_elements(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        """<connection-router name="r"><key-type>USER_NAME</key-type><key-filter>^.{3}</key-filter>
        <local-target-filter>^FOO.*</local-target-filter>
        <cache><persisted>true</persisted><timeout>60000</timeout></cache>
        <policy name="LEAST_CONNECTIONS"><property key="CONNECTION_COUNT_THRESHOLD" value="5"/></policy>
        <pool><username>ann</username><password>secret</password><check-period>1000</check-period>
        <quorum-size>2</quorum-size><quorum-timeout>100</quorum-timeout>
        <local-target-enabled>true</local-target-enabled><static-connectors>
        <connector-ref>one</connector-ref><connector-ref>two</connector-ref></static-connectors></pool>
        </connection-router>""",
    )
    assert configuration.unsupported == []
    (router,) = configuration.routers
    assert (router.key_type, router.key_filter, router.local_target_filter) == (
        "USER_NAME", "^.{3}", "^FOO.*",
    )  # fmt: skip
    assert (router.policy, router.policy_number) == ("LEAST_CONNECTIONS", 5)
    assert router.cache is not None and (router.cache.persisted, router.cache.timeout_ms) == (
        True, 60_000,
    )  # fmt: skip
    pool = router.pool
    assert pool is not None
    assert (pool.user, pool.password, pool.check_period_ms) == ("ann", "secret", 1_000)
    assert (pool.quorum_size, pool.quorum_timeout_ms, pool.local_target_enabled) == (2, 100, True)
    assert pool.static_connectors == ["one", "two"]
    settings = routers_config(configuration)
    assert settings is not None and sorted(settings.settings.connectors) == ["one", "two"]


def test_defaults_are_those_of_artemis_code(tmp_path: Path) -> None:
    text = f'<connection-router name="r"><policy name="FIRST_ELEMENT"/>{STATIC}</connection-router>'
    (router,) = read(tmp_path, text).routers
    assert router.key_type == "SOURCE_IP" and router.cache is None
    assert router.pool is not None
    assert (router.pool.check_period_ms, router.pool.quorum_size) == (5_000, 1)
    assert (router.pool.quorum_timeout_ms, router.pool.local_target_enabled) == (3_000, False)


def test_a_router_that_no_acceptor_names_costs_nothing(tmp_path: Path) -> None:
    text = f'<connection-router name="r"><policy name="FIRST_ELEMENT"/>{STATIC}</connection-router>'
    assert routers_config(read(tmp_path, text, "")) is None


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ('<policy name="BEST"/>', "there is no policy 'BEST'"),
        ('<policy name="CONSISTENT_HASH_MODULO"/>', "needs its property MODULO"),
        (
            '<policy name="CONSISTENT_HASH_MODULO"><property key="MODULO" value="'
            + "9" * 5_000
            + '"/></policy>',
            "is not a number",
        ),
        ('<policy name="ROUND_ROBIN"><property key="x" value="1"/></policy>', "has no property 'x'"),
        ("<key-filter>[</key-filter>", "not a regular expression"),
        ("<key-filter>a{4294967295}</key-filter>", "not a regular expression"),
        ("<pool/>", "has either a cluster-connection"),
        ("<pool><cluster-connection>c</cluster-connection></pool>", "there is no cluster-connection 'c'"),
        ("<key-type>SHOE_SIZE</key-type>", "SHOE_SIZE"),
        ("<surprise/>", "unknown element <surprise>"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, inside: str, why: str) -> None:
    with pytest.raises(ConfigError, match=r"broker\.xml:\d+") as refused:
        read(tmp_path, f'<connection-router name="r">{inside}</connection-router>')
    assert why in str(refused.value)


def test_an_acceptor_must_name_a_router_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no connection-router 's'"):
        read(tmp_path, f'<connection-router name="r">{STATIC}</connection-router>', "?router=s")


@pytest.mark.parametrize(
    ("user", "password", "levels"),
    [
        ("", "own", []),
        ("<username>u</username>", "CHANGE ME!!", []),
        ("", "CHANGE ME!!", ["warning"]),
        ("", "", ["warning"]),
    ],
)
def test_check_names_a_pool_that_its_targets_refuse(
    tmp_path: Path, user: str, password: str, levels: list[str]
) -> None:
    pool = STATIC.replace("<pool>", f"<pool>{user}")
    text = f'<connection-router name="r"><policy name="ROUND_ROBIN"/>{pool}</connection-router>'
    configuration = read(tmp_path, text)
    configuration.broker.cluster_password = password
    findings = Findings()
    check_routers([CheckedNode(configuration)], findings)
    assert [each.level for each in findings.found if "its pool has no username" in each.text] == levels


def test_check_finds_unused_routers_and_circles(tmp_path: Path) -> None:
    text = f'<connection-router name="r"><policy name="ROUND_ROBIN"/>{STATIC}</connection-router>'
    unused = CheckedNode(read(tmp_path, text, ""))
    path = tmp_path / "target.xml"
    path.write_text(BROKER_XML.format(routers=text, door="?router=r").replace("61616", "61617"))
    target = CheckedNode(read_broker_xml(path, {}))
    used = CheckedNode(read(tmp_path, text))
    for nodes, why in (([unused], "used by no acceptor"), ([used, target], "may be sent back")):
        findings = Findings()
        check_routers(nodes, findings)
        assert [why in each.text for each in findings.found] == [True]
    findings = Findings()
    check_routers([used, unused], findings)
    assert len(findings.found) == 1, "the other's door has no router"
