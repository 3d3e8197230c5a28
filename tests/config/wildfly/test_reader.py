"""WildFly's standalone.xml means the same as the broker.xml that `atalanta convert` writes."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.config.xml.convert import convert_file

DATA = Path(__file__).parents[1] / "data"
STANDALONE = DATA / "standalone-cluster.xml"
NAMESPACE = "urn:jboss:domain:messaging-activemq:13.0"


@pytest.fixture(scope="module")
def configuration() -> Configuration:
    return read_broker_xml(STANDALONE)


def described(value: Any) -> dict[str, Any]:
    return {entry.name: getattr(value, entry.name) for entry in fields(value) if entry.metadata}


def test_the_broker(configuration: Configuration) -> None:
    broker = configuration.broker
    assert broker.name == "shop"
    assert (broker.cluster_user, broker.cluster_password) == ("peer", "secret")
    assert broker.management_address == "manage.me"
    assert broker.message_expiry_scan_period_ms == 500
    assert broker.global_max_size_bytes == 50_000_000
    assert configuration.journal.directory == "data/messages/journal"


def test_connectors_and_acceptors_by_socket_bindings(configuration: Configuration) -> None:
    connectors = configuration.connectors
    assert {name: (each.host, each.port) for name, each in connectors.items()} == {
        "netty": ("127.0.0.1", 61716),
        "other": ("other.example", 61617),
        "http-connector": ("127.0.0.1", 8180),
    }
    assert connectors["other"].connect_timeout_ms == 700
    assert connectors["http-connector"].params["httpUpgradeEndpoint"] == "http-acceptor"
    acceptors = {each.name: each for each in configuration.acceptors}
    assert (acceptors["netty"].port, acceptors["netty"].tcp_no_delay) == (61716, False)
    assert acceptors["http-acceptor"].port == 8180
    assert "http-acceptor-throughput" not in acceptors


def test_groups_and_cluster_connections(configuration: Configuration) -> None:
    (broadcast,) = configuration.broadcast_groups
    assert (broadcast.group_address, broadcast.group_port) == ("231.7.7.7", 9876)
    assert (broadcast.broadcast_period_ms, broadcast.connectors) == (700, ["netty"])
    assert configuration.discovery_groups["dg"].refresh_timeout_ms == 7000
    everybody, few = configuration.cluster_connections
    assert (everybody.address, everybody.discovery_group, everybody.max_hops) == ("jms", "dg", 2)
    assert everybody.message_load_balancing == "STRICT"
    assert few.static_connectors == ["other", "netty"]
    assert few.allow_direct_connections_only


def test_addresses_have_the_names_wildfly_gives_them(configuration: Configuration) -> None:
    addresses = {each.name: each for each in configuration.broker.addresses}
    (orders,) = addresses["jms.queue.orders"].queues
    assert (orders.name, orders.filter_text) == ("jms.queue.orders", "a = 1")
    assert addresses["jms.topic.news"].multicast
    (late,) = addresses["flights"].queues
    assert (late.name, late.filter_text) == ("late", "delay > 60")


def test_permissions_and_settings(configuration: Configuration) -> None:
    (rule,) = configuration.broker.security_rules
    assert rule.permissions["send"] == ("guest", "admin")
    assert rule.permissions["manage"] == ("admin",)
    assert rule.permissions["browse"] == ("guest", "admin")
    assert rule.permissions["createAddress"] == ("admin",)
    (setting,) = configuration.broker.address_settings
    assert setting.match == "#"
    assert setting.values["redelivery_delay_multiplier"] == 2.0
    (divert,) = configuration.broker.diverts
    assert (divert.forwarding_address, divert.filter_text) == ("audit", "price > 100")


def test_what_is_for_applications_is_named_not_done(configuration: Configuration) -> None:
    named = {each.name for each in configuration.unsupported}
    assert {"connection-factory entries", "pooled-connection-factory", "security elytron-domain"} <= named


def test_the_converted_file_means_the_same(tmp_path: Path, configuration: Configuration) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(convert_file(STANDALONE, {}).text)
    again = read_broker_xml(path)
    assert described(again.broker) == described(configuration.broker)
    assert again.cluster_connections == configuration.cluster_connections
    assert again.discovery_groups == configuration.discovery_groups
    assert again.broadcast_groups == configuration.broadcast_groups
    assert again.broker.addresses == configuration.broker.addresses
    assert again.broker.address_settings == configuration.broker.address_settings
    assert again.broker.security_rules == configuration.broker.security_rules
    assert again.broker.diverts == configuration.broker.diverts
    before = {name: (each.host, each.port) for name, each in configuration.connectors.items()}
    assert {name: (each.host, each.port) for name, each in again.connectors.items()} == before


def test_a_broker_xml_is_not_converted(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text("<configuration>\n<core><name>n</name></core></configuration>")
    with pytest.raises(ConfigError, match=r"broker\.xml:1: <configuration> is not a standalone\.xml"):
        convert_file(path, {})


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ("<remote-connector name='c' socket-binding='messagin'/>", "there is no socket-binding 'messagin'"),
        ("<http-acceptor name='a' http-listener='web'/>", "there is no http-listener 'web'"),
        ("<cluster-connection name='c' address='jms' connector-name='x'/>", "there is no connector 'x'"),
        ("<journal-directory path='j' relative-to='shared.dir'/>", "'shared.dir' is not known here"),
        ("<journal kind='NIO'/>", "unknown attribute 'kind' of <journal>"),
        ("<clutser-connection name='c'/>", "unknown element <clutser-connection> in <server>"),
        ("<address-setting name='#' max-size-byte='1'/>", "unknown element <max-size-byte>"),
        ("<cluster user='u'><credential-reference store='s' alias='a'/></cluster>", "credential stores"),
        ("<cluster user='u' password='${nobody.knows}'/>", "'${nobody.knows}' has no value"),
    ],
)
def test_mistakes_are_told_where_they_stand(tmp_path: Path, server: str, says: str) -> None:
    path = tmp_path / "standalone.xml"
    path.write_text(
        "<server xmlns='urn:jboss:domain:20.0'><profile>\n"
        f"<subsystem xmlns='{NAMESPACE}'><server name='s'>\n{server}\n</server></subsystem></profile>"
        "<socket-binding-group name='g'><socket-binding name='messaging' port='1'/></socket-binding-group></server>"
    )
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    assert any(problem.line == 3 and says in problem.text for problem in caught.value.problems), str(
        caught.value
    )


@pytest.mark.parametrize("port", ["9" * 5_000, "65536", "٣", "-1"])
def test_a_port_has_five_digits_at_most(tmp_path: Path, port: str) -> None:
    """5,000 digits are more than Python turns into a number (found by fuzzing)."""
    path = tmp_path / "standalone.xml"
    path.write_text(
        "<server xmlns='urn:jboss:domain:20.0'><profile>\n"
        f"<subsystem xmlns='{NAMESPACE}'><server name='s'>\n"
        "<remote-connector name='c' socket-binding='b'/></server></subsystem></profile>"
        f"<socket-binding-group name='g'><socket-binding name='b' port='{port}'/></socket-binding-group></server>"
    )
    with pytest.raises(ConfigError, match="standalone.xml:3: port: '.*' is not a port"):
        read_broker_xml(path)


def test_a_domain_and_a_file_without_a_broker_are_refused(tmp_path: Path) -> None:
    for text, says in (
        ("<domain xmlns='urn:jboss:domain:20.0'/>", "take the standalone.xml of one"),
        ("<server xmlns='urn:jboss:domain:20.0'/>", "holds 0 brokers"),
    ):
        path = tmp_path / "standalone.xml"
        path.write_text(text)
        with pytest.raises(ConfigError, match=says):
            read_broker_xml(path)


JGROUPS = """<server xmlns="urn:jboss:domain:20.0"><profile>
<subsystem xmlns="urn:jboss:domain:jgroups:9.0"><channels default="ee"><channel name="ee" stack="{stack}"/></channels>
<stacks><stack name="tcp"><transport type="TCP" socket-binding="jgroups-tcp"/>
<socket-discovery-protocol type="TCPPING" socket-bindings="one two"><property name="port_range">0</property>
</socket-discovery-protocol></stack>
<stack name="udp"><transport type="UDP" socket-binding="jgroups-udp"/><protocol type="PING"/></stack>
<stack name="dns"><transport type="TCP" socket-binding="jgroups-tcp"/>
<protocol type="dns.DNS_PING"><property name="dns_query">brokers.example</property></protocol></stack></stacks>
</subsystem>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="s">
<remote-connector name="netty" socket-binding="messaging"/><remote-acceptor name="netty" socket-binding="messaging"/>
<jgroups-broadcast-group name="bg" jgroups-cluster="mq" connectors="netty"/>
<jgroups-discovery-group name="dg" jgroups-cluster="mq"/>
<cluster-connection name="c" address="jms" connector-name="netty" discovery-group="dg"/>
</server></subsystem></profile>
<interfaces><interface name="public"><inet-address value="127.0.0.1"/></interface></interfaces>
<socket-binding-group name="g" default-interface="public"><socket-binding name="messaging" port="61616"/>
<socket-binding name="jgroups-tcp" port="7600"/>
<socket-binding name="jgroups-udp" port="55200" multicast-address="230.0.0.4" multicast-port="45688"/>
<outbound-socket-binding name="one"><remote-destination host="h1" port="7600"/></outbound-socket-binding>
<outbound-socket-binding name="two"><remote-destination host="h2" port="7601"/></outbound-socket-binding>
</socket-binding-group></server>"""


@pytest.mark.parametrize(
    ("stack", "place"),
    [
        ("tcp", "hosts h1:7600 h2:7601"),
        ("udp", "group 230.0.0.4:45688"),
        ("dns", "dns brokers.example"),
    ],
)
def test_groups_meet_where_the_jgroups_subsystem_says(
    tmp_path: Path, stack: str, place: str
) -> None:
    path = tmp_path / "standalone.xml"
    path.write_text(JGROUPS.format(stack=stack))
    converted = convert_file(path, {})
    for each in converted.beside:
        (tmp_path / each.name).write_text(each.text)
    (tmp_path / "broker.xml").write_text(converted.text)
    for file in ("standalone.xml", "broker.xml"):
        configuration = read_broker_xml(tmp_path / file)
        stacks = [group.stack for group in configuration.broadcast_groups]
        stacks += [group.stack for group in configuration.discovery_groups.values()]
        assert len(stacks) == 2
        for found in stacks:
            assert found is not None
            assert (found.describe(), found.channel) == (place, "mq")


def test_a_stack_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "standalone.xml"
    path.write_text(JGROUPS.format(stack="tpc"))
    with pytest.raises(ConfigError, match=r"standalone\.xml:13: there is no JGroups stack 'tpc'"):
        read_broker_xml(path)


def test_services_that_the_file_asks_for_are_named(tmp_path: Path) -> None:
    server = """<security elytron-domain="d" override-in-vm-security="true"/>
    <journal datasource="ds" messages-table="m"/>
    <primary-only><scale-down cluster-name="c"/></primary-only><jms-queue name="q" entries="java:jboss/exported/q"/>
    <jms-queue name="r" entries="java:/r"/><connection-factory name="f" entries="java:/f"/>
    <incoming-interceptors><class name="x"/></incoming-interceptors>"""
    path = tmp_path / "standalone.xml"
    path.write_text(
        '<server xmlns="urn:jboss:domain:20.0"><profile><subsystem xmlns="urn:jboss:domain:messaging-activemq:16.0">'
        f'<server name="s">{server}</server></subsystem></profile></server>'
    )
    found = read_broker_xml(path).unsupported
    assert sorted(each.name for each in found if each.lost) == [
        "incoming-interceptors", "jms-queue entries", "journal datasource", "scale-down", "scale-down cluster-name",
        "security elytron-domain",
    ]  # fmt: skip
    assert sorted(each.name for each in found if not each.lost) == [
        "connection-factory", "journal messages-table", "security override-in-vm-security",
    ]  # fmt: skip
