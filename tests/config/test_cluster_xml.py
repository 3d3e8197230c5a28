"""Cluster connections in their forms, and what they refer to."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigError

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


@pytest.mark.parametrize(
    ("connection", "text"),
    [
        ('<cluster-connection-uri name="x" address="udp://dg"/>', "neither static"),
        (
            '<cluster-connection-uri name="x" address="static://(b)?connectorName=own;hops=2"/>',
            "unknown parameter 'hops'",
        ),
        ('<cluster-connection-uri name="x" address="static://(zz)"/>', "no connector 'zz'"),
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
