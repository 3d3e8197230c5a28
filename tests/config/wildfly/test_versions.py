"""Differences between WildFly's versions, and between WildFly's defaults and those of Artemis."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError

FILE = """<server xmlns="urn:jboss:domain:{domain}">
<system-properties><property name="shop.password" value="${{shop.base:se}}cret"/></system-properties>
<profile>
<subsystem xmlns="urn:jboss:domain:jgroups:4.0"><channels default="ee"><channel name="ee" stack="udp"/></channels>
<stacks><stack name="udp"><transport type="UDP" socket-binding="jgroups-udp"/><protocol type="PING"/></stack>
<stack name="tcp"><transport type="TCP" socket-binding="jgroups-tcp"/><protocol type="MPING"
 socket-binding="mping"/></stack></stacks></subsystem>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:{schema}">
<server name="s">
<cluster password="${{shop.password}}"/>
<address-setting name="#" redistribution-delay="1000"/>
<http-connector name="http-connector" socket-binding="http" endpoint="http-acceptor"/>
<http-acceptor name="http-acceptor" http-listener="default"/>
{groups}
<cluster-connection name="my-cluster" address="jms" connector-name="http-connector" discovery-group="dg"/>
<bridge name="b" queue-name="q" static-connectors="http-connector"/>
</server></subsystem>
<subsystem xmlns="urn:jboss:domain:undertow:3.0"><server name="d"><http-listener name="default" socket-binding="http"/>
</server></subsystem></profile>
<interfaces><interface name="public"><inet-address value="${{jboss.bind.address:127.0.0.1}}"/></interface></interfaces>
<socket-binding-group name="g" default-interface="public">
<socket-binding name="http" port="${{jboss.http.port:8080}}"/>
<socket-binding name="jgroups-tcp" port="7600"/>
<socket-binding name="jgroups-udp" port="55200" multicast-address="230.0.0.4" multicast-port="45688"/>
<socket-binding name="mping" port="0" multicast-address="230.0.0.5" multicast-port="45700"/>
</socket-binding-group></server>"""

WILDFLY_10 = """<broadcast-group name="bg" jgroups-channel="activemq-cluster" connectors="http-connector"/>
<discovery-group name="dg" jgroups-channel="activemq-cluster"/>"""
WILDFLY_10_STACK = """<broadcast-group name="bg" jgroups-stack="tcp" jgroups-channel="activemq-cluster"
 connectors="http-connector"/>
<discovery-group name="dg" jgroups-stack="tcp" jgroups-channel="activemq-cluster"/>"""
WILDFLY_12 = """<broadcast-group name="bg" jgroups-cluster="activemq-cluster" connectors="http-connector"/>
<discovery-group name="dg" jgroups-cluster="activemq-cluster" jgroups-channel="ee"/>"""
WILDFLY_35 = """<jgroups-broadcast-group name="bg" jgroups-cluster="activemq-cluster" connectors="http-connector"/>
<jgroups-discovery-group name="dg" jgroups-cluster="activemq-cluster"/>"""


def read(
    folder: Path,
    groups: str = WILDFLY_35,
    schema: str = "16.0",
    values: Mapping[str, str] | None = None,
) -> Configuration:
    path = folder / "standalone.xml"
    path.write_text(FILE.format(domain="20.0", schema=schema, groups=groups))
    return read_broker_xml(path, values)


@pytest.mark.parametrize(
    ("schema", "groups", "place"),
    [
        ("1.0", WILDFLY_10, "group 230.0.0.4:45688"),
        ("1.1", WILDFLY_10_STACK, "group 230.0.0.5:45700"),
        ("4.0", WILDFLY_12, "group 230.0.0.4:45688"),
        ("16.0", WILDFLY_35, "group 230.0.0.4:45688"),
    ],
)
def test_jgroups_groups_of_every_version(
    tmp_path: Path, schema: str, groups: str, place: str
) -> None:
    """Before `jgroups-cluster` the cluster's name stood in `jgroups-channel`."""
    configuration = read(tmp_path, groups, schema)
    (broadcast,) = configuration.broadcast_groups
    for group in (broadcast, configuration.discovery_groups["dg"]):
        assert group.jgroups_channel == "activemq-cluster"
        assert group.stack is not None
        assert group.stack.describe() == place


def test_defaults_are_those_of_wildfly(tmp_path: Path) -> None:
    """Defaults that WildFly sets itself, and Artemis has otherwise."""
    configuration = read(tmp_path)
    (setting,) = configuration.broker.address_settings
    assert setting.values["auto_create_queues"] is False
    assert setting.values["auto_delete_queues"] is False
    assert configuration.cluster_connections[0].producer_window_bytes == -1
    assert configuration.bridges[0].producer_window_bytes == -1
    assert configuration.broker.max_disk_usage == 100


def test_what_wildfly_lets_be_without_end(tmp_path: Path) -> None:
    path = tmp_path / "standalone.xml"
    text = FILE.format(domain="20.0", schema="16.0", groups=WILDFLY_35)
    link = 'name="my-cluster" check-period="-1" connection-ttl="-1" confirmation-window-size="-1" '
    path.write_text(text.replace('name="my-cluster" ', link))
    connection = read_broker_xml(path).cluster_connections[0]
    assert connection.connection_ttl_ms == connection.check_period_ms == 2**31 - 1
    assert connection.confirmation_window_bytes == 2**31 - 1


def test_expressions_find_properties_of_the_file_and_the_environment(tmp_path: Path) -> None:
    """The file's <system-properties>; and NAME_IN_CAPITALS, since no shell can set name.with.dots."""
    assert read(tmp_path).broker.cluster_password == "secret"
    values = {"SHOP_BASE": "top-se", "JBOSS_HTTP_PORT": "8181"}
    configuration = read(tmp_path, values=values)
    assert configuration.broker.cluster_password == "top-secret"
    assert configuration.connectors["http-connector"].port == 8181
    assert read(tmp_path, values={"shop.password": "mine"}).broker.cluster_password == "mine"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("${env.SHOP}", "env"),
        ("${none.such,env.SHOP:default}", "env"),
        ("${none.such,other:default}", "default"),
        ("${none.such:${other:inner}}", "inner"),
    ],
)
def test_forms_of_expressions(tmp_path: Path, expression: str, value: str) -> None:
    path = tmp_path / "standalone.xml"
    text = FILE.format(domain="20.0", schema="16.0", groups=WILDFLY_35)
    path.write_text(text.replace("${shop.password}", expression))
    assert read_broker_xml(path, {"SHOP": "env"}).broker.cluster_password == value


def test_two_brokers_are_named_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "standalone.xml"
    text = FILE.format(domain="20.0", schema="16.0", groups=WILDFLY_35)
    end = "</server></subsystem>\n<sub"
    path.write_text(text.replace(end, end.replace("><", ">\n<server name='backup'/><", 1), 1))
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    (problem,) = caught.value.problems
    assert problem.line == 19
    assert "'s' (line 9)" in problem.hint and "'backup' (line 19)" in problem.hint
