"""Cluster connections in their forms, and what they refer to."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.checks.cluster_connections import password_warnings
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError
from atalanta.wire.jgroups.version import version_text

CONNECTORS = """<connectors><connector name="own">tcp://127.0.0.1:1</connector>
<connector name="b">tcp://127.0.0.1:2?tcpNoDelay=false</connector>
<connector name="c">tcp://[::1]:3</connector></connectors>
<discovery-groups><discovery-group name="dg"><group-address>231.7.7.7</group-address>
<group-port>9876</group-port></discovery-group></discovery-groups>"""


def read(folder: Path, connections: str) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(
        f"<configuration><core>{CONNECTORS}<cluster-connections>{connections}"
        "</cluster-connections></core></configuration>"
    )
    return read_broker_xml(path)


def only(folder: Path, connection: str) -> ClusterConnectionConfig:
    [found] = read(folder, connection).cluster_connections
    return found


def test_every_element(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        """<cluster-connection name="x"><address>jms,!jms.private</address>
        <connector-ref>own</connector-ref><check-period>1</check-period>
        <connection-ttl>2</connection-ttl><min-large-message-size>1K</min-large-message-size>
        <call-timeout>3</call-timeout><retry-interval>4</retry-interval>
        <retry-interval-multiplier>1.5</retry-interval-multiplier>
        <max-retry-interval>5</max-retry-interval>
        <initial-connect-attempts>6</initial-connect-attempts>
        <reconnect-attempts>7</reconnect-attempts>
        <use-duplicate-detection>false</use-duplicate-detection>
        <message-load-balancing>strict</message-load-balancing><max-hops>2</max-hops>
        <confirmation-window-size>1M</confirmation-window-size>
        <call-failover-timeout>8</call-failover-timeout>
        <notification-interval>9</notification-interval>
        <notification-attempts>10</notification-attempts>
        <producer-window-size>-1</producer-window-size>
        <static-connectors allow-direct-connections-only="true">
        <connector-ref>b</connector-ref><connector-ref connector-name="c"/></static-connectors>
        </cluster-connection>""",
    )
    assert found.address == "jms,!jms.private"
    assert (found.connector, found.static_connectors) == ("own", ["b", "c"])
    assert (found.static, found.allow_direct_connections_only) == (True, True)
    assert (found.retry_interval_ms, found.retry_interval_multiplier) == (4, 1.5)
    assert (found.initial_connect_attempts, found.reconnect_attempts) == (6, 7)
    assert (found.message_load_balancing, found.max_hops) == ("STRICT", 2)
    assert (found.min_large_message_bytes, found.confirmation_window_bytes) == (1024, 1024**2)
    assert (found.use_duplicate_detection, found.producer_window_bytes) == (False, -1)
    assert (found.notification_interval_ms, found.notification_attempts) == (9, 10)


def test_defaults_are_those_of_the_code() -> None:
    found = ClusterConnectionConfig()
    assert found.confirmation_window_bytes == 10 * 1024 * 1024
    assert (found.retry_interval_ms, found.max_retry_interval_ms) == (500, 2000)
    assert (found.message_load_balancing, found.max_hops, found.address) == ("ON_DEMAND", 1, "")


def test_an_empty_static_list_only_accepts(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        '<cluster-connection name="x"><connector-ref>own</connector-ref><static-connectors/>'
        "</cluster-connection>",
    )
    assert found.static and found.static_connectors == [] and found.discovery_group is None


@pytest.mark.parametrize(("old", "expected"), [("true", "STRICT"), ("false", "ON_DEMAND")])
def test_forward_when_no_consumers(tmp_path: Path, old: str, expected: str) -> None:
    connection = (
        '<cluster-connection name="x"><connector-ref>own</connector-ref>'
        f"<forward-when-no-consumers>{old}</forward-when-no-consumers>%s</cluster-connection>"
    )
    assert only(tmp_path, connection % "").message_load_balancing == expected
    given = "<message-load-balancing>OFF</message-load-balancing>"
    assert only(tmp_path, connection % given).message_load_balancing == "OFF"


def test_both_names_of_load_balancing_that_contradict(tmp_path: Path) -> None:
    """A real Artemis would take the other one: told, with the line."""
    connection = (
        '<cluster-connection name="x">\n<connector-ref>own</connector-ref>'
        "<forward-when-no-consumers>%s</forward-when-no-consumers>"
        "<message-load-balancing>STRICT</message-load-balancing></cluster-connection>"
    )
    for old, told in (("true", False), ("false", True)):
        configuration = read(tmp_path, connection % old)
        assert configuration.cluster_connections[0].message_load_balancing == "STRICT"
        text = "a real Artemis takes forward-when-no-consumers, which is ON_DEMAND"
        assert any(text in each for each in configuration.warnings) == told


@pytest.mark.parametrize(
    ("tls", "interface", "told"), [("", "", True), ("?sslEnabled=true", "", False), ("", "127.0.0.1", False)]
)
def test_a_password_in_clear_for_anyone_who_announces_himself_is_warned_of(
    tmp_path: Path, tls: str, interface: str, told: bool
) -> None:
    path = tmp_path / "broker.xml"
    local = f"<local-bind-address>{interface}</local-bind-address>" if interface else ""
    path.write_text(
        f"""<configuration><core xmlns="urn:activemq:core">
        <connectors><connector name="own">tcp://node-a:61616{tls}</connector></connectors>
        <discovery-groups><discovery-group name="near">{local}<group-address>231.7.7.7</group-address>
        <group-port>9876</group-port></discovery-group></discovery-groups>
        <cluster-connections><cluster-connection name="x"><connector-ref>own</connector-ref>
        <discovery-group-ref discovery-group-name="near"/></cluster-connection></cluster-connections>
        </core></configuration>"""
    )
    configuration = read_broker_xml(path)
    assert password_warnings(configuration) == []
    configuration.own.cluster_plain_password = True
    warnings = password_warnings(configuration)
    assert ["gets the cluster password in clear text" in each for each in warnings] == [True] * told


def test_an_in_vm_connector_and_an_unknown_cluster_are_told_where_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(
        "<configuration><core><connectors><connector name='own'>tcp://127.0.0.1:1</connector>"
        "<connector name='self'>vm://0</connector></connectors>\n<acceptors>\n"
        "<acceptor name='a'>tcp://127.0.0.1:1?clusterConnection=y</acceptor></acceptors>\n"
        "<cluster-connections><cluster-connection name='x'><connector-ref>own</connector-ref>\n"
        "<static-connectors><connector-ref>self</connector-ref></static-connectors>"
        "</cluster-connection></cluster-connections></core></configuration>"
    )
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(path)
    door, vm = sorted(caught.value.problems, key=lambda problem: problem.line)
    assert vm.line == 5 and "in-vm connectors" in vm.hint
    assert door.line == 3 and "no cluster-connection 'y'" in door.text


def test_uri_forms(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        '<cluster-connection-uri name="x" address="static://(b,c)?connectorName=own;maxHops=2;'
        'messageLoadBalancingType=OFF_WITH_REDISTRIBUTION&amp;retryInterval=9"/>',
    )
    assert (found.static_connectors, found.connector, found.max_hops) == (["b", "c"], "own", 2)
    assert (found.message_load_balancing, found.retry_interval_ms) == ("OFF_WITH_REDISTRIBUTION", 9)
    found = only(
        tmp_path,
        '<cluster-connection-uri name="x" address="multicast://dg?connectorName=own"/>',
    )
    assert found.discovery_group == "dg"
    found = only(
        tmp_path,
        '<cluster-connection-uri name="x" address="multicast://dg?connectorName=own;maxHops=0;retryInterval=333"/>',
    )
    assert (found.discovery_group, found.max_hops, found.retry_interval_ms) == ("dg", 0, 333)


def test_a_static_uri_of_connectors_written_out_as_artemis_has_them(tmp_path: Path) -> None:
    configuration = read(
        tmp_path,
        '<cluster-connection-uri name="x" address="static://(tcp://one:6556?tcpNoDelay=false,tcp://two:6557,b)'
        '?connectorName=own;allowDirectConnectionsOnly=true;clusterNotificationAttempts=4"/>',
    )
    [found] = configuration.cluster_connections
    assert found.allow_direct_connections_only and found.notification_attempts == 4
    settings = configuration.cluster_settings()
    assert settings is not None
    targets = [settings.transport(name) for name in found.static_connectors]
    assert [(each.host, each.port) for each in targets] == [("one", 6556), ("two", 6557), ("127.0.0.1", 2)]
    assert targets[0].parameters["tcpNoDelay"] == "false"


@pytest.mark.parametrize(
    ("connection", "text"),
    [
        ('<cluster-connection-uri name="x" address="udp://dg"/>', "neither static"),
        (
            '<cluster-connection-uri name="x" address="static://(b)?connectorName=own;hops=2"/>',
            "unknown parameter 'hops'",
        ),
        ('<cluster-connection-uri name="x" address="static://(zz)"/>', "no connector 'zz'"),
        ('<cluster-connection-uri name="x" address="static://(tcp://b:x)"/>', "'tcp://b:x'"),
        (
            '<cluster-connection-uri name="x" address="static://(b)?allowDirectConnectionsOnly=yes"/>',
            "allow-direct-connections-only: 'yes' is neither",
        ),
        (
            '<cluster-connection name="x"><connector-ref>own</connector-ref>'
            '<discovery-group-ref discovery-group-name="d"/></cluster-connection>',
            "no discovery-group 'd'",
        ),
        (
            '<cluster-connection name="x"><connector-ref>own</connector-ref><static-connectors/>'
            '<discovery-group-ref discovery-group-name="dg"/></cluster-connection>',
            "static connectors and a discovery group",
        ),
        (
            '<cluster-connection name="x"><connector-ref>own</connector-ref>'
            "<message-load-balancing>SOMETIMES</message-load-balancing></cluster-connection>",
            "none of OFF, STRICT",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, connection: str, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, connection)
    assert text in str(caught.value)


def test_settings_of_the_node(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        '<cluster-connection name="x"><connector-ref>own</connector-ref></cluster-connection>',
    ).cluster_settings()
    assert settings is not None
    assert settings.has_default_password
    assert settings.connectors["b"].transport_params() == {
        "port": "2",
        "host": "127.0.0.1",
        "tcpNoDelay": "false",
    }
    assert settings.connectors["c"].host == "::1"
    assert list(settings.discovery_groups) == ["dg"]


GROUPS = """<configuration><core>
<connectors><connector name="own">tcp://%s:1</connector><connector name="b">tcp://b:2</connector></connectors>
<broadcast-groups><broadcast-group name="bg">
<local-bind-address>127.0.0.1</local-bind-address><local-bind-port>5432</local-bind-port>
<group-address>231.7.7.7</group-address><group-port>9876</group-port>
<broadcast-period>100</broadcast-period>
<connector-ref>own</connector-ref><connector-ref connector-name="b"/>%s
</broadcast-group></broadcast-groups>
<discovery-groups><discovery-group name="dg">
<local-bind-address>127.0.0.2</local-bind-address>
<group-address>231.7.7.7</group-address><group-port>9876</group-port>
<refresh-timeout>10001</refresh-timeout><initial-wait-timeout>10002</initial-wait-timeout>
%s</discovery-group></discovery-groups><cluster-connections><cluster-connection name="x">
<connector-ref>own</connector-ref></cluster-connection></cluster-connections></core></configuration>"""


def groups(
    folder: Path, host: str = "a", broadcast: str = "", discovery: str = ""
) -> Configuration:
    path = folder / "broker.xml"
    path.write_text(GROUPS % (host, broadcast, discovery))
    return read_broker_xml(path)


def test_every_element_of_the_groups(tmp_path: Path) -> None:
    found = groups(tmp_path)
    [broadcast] = found.broadcast_groups
    assert broadcast.connectors == ["own", "b"]
    assert (broadcast.local_bind_address, broadcast.local_bind_port) == ("127.0.0.1", 5432)
    assert (broadcast.group_address, broadcast.group_port) == ("231.7.7.7", 9876)
    assert broadcast.broadcast_period_ms == 100
    discovery = found.discovery_groups["dg"]
    assert (discovery.local_bind_address, discovery.local_bind_port) == ("127.0.0.2", -1)
    assert (discovery.refresh_timeout_ms, discovery.initial_wait_timeout_ms) == (10001, 10002)
    assert found.unsupported == []


def test_a_group_that_meets_by_udp_and_by_jgroups_is_refused_with_its_line(tmp_path: Path) -> None:
    for kind, parts in (
        ("broadcast-group", {"broadcast": JGROUPS}),
        ("discovery-group", {"discovery": JGROUPS}),
    ):
        with pytest.raises(ConfigError) as caught:
            groups(tmp_path, **parts)
        [problem] = [each for each in caught.value.problems if "jgroups-file" in each.text]
        assert problem.text.startswith(kind) and "UDP or JGroups" in problem.hint
        text = (tmp_path / "broker.xml").read_text().splitlines()
        assert "<jgroups-file>" in text[problem.line - 1]


JGROUPS = "\n<jgroups-file>x.xml</jgroups-file><jgroups-channel>c</jgroups-channel>"


STACK_GROUPS = """<configuration><core>
<connectors><connector name="own">tcp://a:1</connector></connectors>
<broadcast-groups><broadcast-group name="bg"><jgroups-file>%s</jgroups-file>
%s<connector-ref>own</connector-ref></broadcast-group></broadcast-groups>
<discovery-groups><discovery-group name="dg"><jgroups-file>stack.xml</jgroups-file>
<jgroups-channel>c</jgroups-channel></discovery-group></discovery-groups></core></configuration>"""
CHANNEL = "<jgroups-channel>c</jgroups-channel>"


def with_stack(folder: Path, file: str = "stack.xml", channel: str = CHANNEL) -> Configuration:
    (folder / "stack.xml").write_text(
        '<config xmlns="urn:org:jgroups"><TCP/>\n<TCPPING initial_hosts="${hosts:x[1]}"/></config>'
    )
    (folder / "bad.xml").write_text("<config><TCP/>\n\n<JDBC_PING/></config>")
    os.mkfifo(folder / "pipe.xml")
    path = folder / "broker.xml"
    path.write_text(STACK_GROUPS % (file, channel))
    return read_broker_xml(path, {"hosts": "a[7800]"})


def test_a_jgroups_stack_beside_the_broker_xml_says_where_groups_meet(tmp_path: Path) -> None:
    found = with_stack(tmp_path)
    [broadcast] = found.broadcast_groups
    discovery = found.discovery_groups["dg"]
    assert broadcast.stack is not None and broadcast.stack == discovery.stack
    assert (broadcast.stack.protocol, broadcast.stack.channel) == ("TCPPING", "c")
    assert broadcast.stack.hosts == [("a", 7800)]
    assert tmp_path / "stack.xml" in found.files and found.unsupported == []


@pytest.mark.parametrize(
    ("file", "channel", "place", "says"),
    [
        ("bad.xml", CHANNEL, "bad.xml:3", "<JDBC_PING> is not supported for discovery"),
        ("none.xml", CHANNEL, "none.xml", "cannot be read"),
        ("pipe.xml", CHANNEL, "pipe.xml", "is a named pipe, not a regular file"),
        ("stack.xml", "", "broker.xml:3", "needs both jgroups-file and jgroups-channel"),
    ],
)
def test_a_stack_that_cannot_be_used(
    tmp_path: Path, file: str, channel: str, place: str, says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        with_stack(tmp_path, file, channel)
    assert f"{tmp_path / place}: " in str(caught.value) and says in str(caught.value)


def with_protocols(folder: Path, protocols: str, own: str = "") -> Configuration:
    (folder / "stack.xml").write_text(f'<config xmlns="urn:org:jgroups">\n{protocols}</config>')
    (folder / "atalanta.toml").write_text(own)
    path = folder / "broker.xml"
    path.write_text(STACK_GROUPS % ("stack.xml", CHANNEL))
    return read_broker_xml(path, {})


TCPPING = '<TCPPING initial_hosts="a[7800]"/>'


@pytest.mark.parametrize(
    ("protocols", "line", "why"),
    [
        (f"<TCP/>{TCPPING}\n\n<SYM_ENCRYPT/>", 4, "<SYM_ENCRYPT> encrypts what its members send"),
        ("<UDP/><PING/>\n<ASYM_ENCRYPT/>", 3, "<ASYM_ENCRYPT> encrypts what its members send"),
        (f'<TCP tls.enabled="true"/>\n{TCPPING}', 2, "<TCP> uses TLS"),
        (f"<TUNNEL/>\n{TCPPING}", 2, "<TUNNEL> is not spoken here"),
        (f"<UDP/>\n{TCPPING}", 2, "<UDP> with <TCPPING> is met by the multicast group of <PING> or <MPING> only"),
        ('<UDP ip_mcast="false"/>\n<FILE_PING location="/x"/>', 2, "<UDP> has no multicast group (ip_mcast)"),
    ],
)
def test_a_stack_by_which_no_real_member_is_found_is_named_once_with_its_line(
    tmp_path: Path, protocols: str, line: int, why: str
) -> None:
    found = with_protocols(tmp_path, protocols)
    [warning] = [each for each in found.warnings if "no real member" in each]
    says = f"{tmp_path / 'stack.xml'}:{line}: no real member of JGroups is found by this stack: {why}"
    assert warning.startswith(says)
    assert "use static connectors or a UDP group" in warning
    [broadcast] = found.broadcast_groups
    assert broadcast.stack == found.discovery_groups["dg"].stack
    assert broadcast.stack is not None and broadcast.stack.unmet


@pytest.mark.parametrize(
    "protocols", [f"<TCP/>{TCPPING}<AUTH/>", "<UDP/><PING/>", "<TCP_NIO2/><MPING/>", "<UDP/><MPING/>"]
)
def test_a_stack_by_which_real_members_are_found_has_no_warning(tmp_path: Path, protocols: str) -> None:
    found = with_protocols(tmp_path, protocols, 'jgroups-version = "5.2"\n')
    assert [each for each in found.warnings if "no real member" in each or "jgroups" in each] == []
    [broadcast] = found.broadcast_groups
    assert broadcast.stack == found.discovery_groups["dg"].stack and broadcast.stack is not None
    assert version_text(broadcast.stack.version) == "5.2.0"


def test_a_version_of_jgroups_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"jgroups-version: '2\.4' is not a version of JGroups from 3\.6 to 5\.x"):
        with_protocols(tmp_path, "<UDP/><PING/>", 'jgroups-version = "2.4"\n')


@pytest.mark.parametrize("written", ["0.0.0.0", "[::]"])
def test_all_addresses_of_a_machine_are_never_announced(tmp_path: Path, written: str) -> None:
    found = groups(tmp_path, written)
    settings = found.cluster_settings()
    assert settings is not None
    assert settings.transport("own").host == socket.gethostname()
    [warning] = [each for each in found.warnings if "others cannot dial" in each]
    assert warning.startswith(f"{tmp_path / 'broker.xml'}:2: connector 'own'")
