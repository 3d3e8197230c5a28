"""Network connectors: every attribute with Classic's default, uris, and the same in atalanta.toml."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from atalanta.cluster.networks.config import (
    NetworkConnectorConfig,
    NetworkDestination,
    NetworkRetry,
    consumer_hops,
    message_hops,
)
from atalanta.config.broker_xml import read_broker_xml
from atalanta.config.native.network_uri import read_uri
from atalanta.config.native.networks import networks_text
from atalanta.config.problems import ConfigError
from atalanta.wire.uri import UriError
from tests.config.activemq.classic_files import classic_file, findings, network_file, read

# NetworkBridgeConfiguration of Classic 6.x.
DEFAULTS = {
    "name": "NC", "uri": "", "duplex": False, "conduitSubscriptions": True,
    "conduitNetworkQueueSubscriptions": False, "useVirtualDestSubs": False, "dynamicOnly": False,
    "staticBridge": False, "syncDurableSubs": False, "dispatchAsync": True,
    "decreaseNetworkConsumerPriority": True, "consumerPriorityBase": -5, "bridgeTempDestinations": True,
    "prefetchSize": 1000, "advisoryPrefetchSize": 0, "advisoryAckPercentage": 75, "networkTTL": 1,
    "consumerTTL": None, "messageTTL": None, "userName": "", "password": "", "remoteUserName": "",
    "remotePassword": "", "destinationFilter": None, "clientIdToken": "_",
    "suppressDuplicateQueueSubscriptions": False, "suppressDuplicateTopicSubscriptions": True,
    "alwaysSyncSend": True, "useCompression": False, "advisoryForFailedForward": False,
    "useBrokerNamesAsIdSeed": True, "gcDestinationViews": True, "gcSweepTime": 60_000,
    "checkDuplicateMessagesOnDuplex": False, "autoStart": True,
    "replayWhenNoConsumers": True, "replayDelay": 5000,  # Classic has them in conditionalNetworkBridgeFilterFactory
}  # fmt: skip
RETRY = {
    "initialReconnectDelay": 1000, "maxReconnectDelay": 30_000, "useExponentialBackOff": True,
    "backOffMultiplier": 2.0, "maxReconnectAttempts": 0, "minConnectTime": 5000,
}  # fmt: skip


def test_defaults() -> None:
    entries = [entry for entry in fields(NetworkConnectorConfig) if entry.metadata]
    assert {entry.metadata["xml"]: entry.default for entry in entries} == DEFAULTS
    assert {entry.metadata["xml"]: entry.default for entry in fields(NetworkRetry)} == RETRY


def test_a_connector_with_everything(tmp_path: Path) -> None:
    inside = (
        '<networkConnectors><networkConnector name="north" uri="static:(tcp://b:61616)" duplex="true"'
        ' networkTTL="3" consumerTTL="1" userName="u" password="p" conduitSubscriptions="false">\n'
        '<excludedDestinations><topic physicalName="local.&gt;"/></excludedDestinations>'
        '<dynamicallyIncludedDestinations><queue physicalName="orders"/></dynamicallyIncludedDestinations>'
        '<staticallyIncludedDestinations><queue physicalName="always"/></staticallyIncludedDestinations>'
        "</networkConnector></networkConnectors>"
    )
    configuration = read(classic_file(tmp_path, inside))
    (config,) = configuration.networks.connectors
    assert (config.duplex, config.conduit_subscriptions, config.user_name) == (True, False, "u")
    assert (message_hops(config), consumer_hops(config)) == (3, 1)
    assert config.excluded == [NetworkDestination(False, "local.>")]
    assert config.dynamically_included == [NetworkDestination(True, "orders")]
    assert config.statically_included == [NetworkDestination(True, "always")]
    assert not [each for each in findings(configuration) if "networkConnector" in each]


@pytest.mark.parametrize(
    ("uri", "bridges"),
    [
        ("static:(tcp://a:1,ssl://b:2)", [["a:1"], ["b:2"]]),
        ("static://(tcp://a:1?wireFormat.maxInactivityDuration=0,tcp://b)", [["a:1"], ["b:61616"]]),
        ("static:tcp://a:1", [["a:1"]]),
        ("simple:(tcp://a:1)", [["a:1"]]),
        ("static:(failover:(tcp://a:1,tcp://b:2)?randomize=false,nio+ssl://c:3)", [["a:1", "b:2"], ["c:3"]]),
        ("masterslave:(tcp://a:1,tcp://b:2)", [["a:1", "b:2"]]),
    ],
)
def test_uris(uri: str, bridges: list[list[str]]) -> None:
    way = read_uri(uri)
    assert [[f"{each.host}:{each.port}" for each in bridge] for bridge in way.bridges] == bridges


def test_multicast_and_retries() -> None:
    assert read_uri("multicast://north?initialReconnectDelay=5").group == "north"
    assert read_uri("multicast:default").group == "default"
    retry = read_uri("static:(tcp://a)?maxReconnectDelay=5000&useExponentialBackOff=false").retry
    assert (retry.max_reconnect_delay_ms, retry.exponential) == (5000, False)
    with pytest.raises(UriError, match="unknown option 'maxReconnectDely' of the uri"):
        read_uri("static:(tcp://a)?maxReconnectDely=5000")
    with pytest.raises(UriError, match="begins with none of static:, masterslave:, multicast:"):
        read_uri("tcp://a:1")
    with pytest.raises(UriError, match="an address in the list is empty"):
        read_uri("static:(tcp://a:1,)")


def test_three_brokers_in_a_ring(tmp_path: Path) -> None:
    for name, port, after in (("a", 61616, "b"), ("b", 61617, "c"), ("c", 61618, "a")):
        configuration = read(network_file(tmp_path, name, port, f"static:(tcp://{after}:61616)", 'networkTTL="2"'))
        assert configuration.broker.name == name
        (config,) = configuration.networks.connectors
        assert config.way.bridges[0][0].host == after
        assert configuration.journal_folder == tmp_path / name / "data" / name / "KahaDB" / "journal"


def test_the_same_in_atalanta_toml(tmp_path: Path) -> None:
    inside = (
        '<networkConnectors><networkConnector name="to b" uri="static:(tcp://b:61616)?maxReconnectDelay=5"'
        ' duplex="true" networkTTL="3" password="&quot;"><durableDestinations><topic physicalName="d"/>'
        '</durableDestinations></networkConnector><networkConnector name="c" uri="multicast://x"/></networkConnectors>'
    )
    connectors = read(classic_file(tmp_path, inside)).networks.connectors
    broker = tmp_path / "broker.xml"
    broker.write_text("<configuration><core><name>n</name></core></configuration>")
    (tmp_path / "atalanta.toml").write_text(networks_text(connectors))
    again = read_broker_xml(broker)
    assert again.networks.connectors == connectors
    assert not [each for each in again.unsupported if each.name.startswith("networks ")]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[networks.x]\nuri = 'static:(tcp://b)'\nduplx = true", "3: unknown key 'duplx' in [networks.x]"),
        ("[networks.x]\nuri = 'static:(tcp://b)'\nduplex = 'yes'", "3: duplex: 'yes' is not of type bool"),
        ("[networks.x]\nuri = 'ldap://b'", "2: [networks.x]: ldap: brokers are not discovered in a directory"),
        ("[networks.x]\nuri = 'zeroconf:_a'", "2: [networks.x]: zeroconf: brokers are not discovered by"),
        ("[networks.x]\nuri = 'fanout:(static:(tcp://b))'", "2: [networks.x]: fanout: messages are not copied to each"),
        (
            "[networks.x]\nuri = 'static:(tcp://b)'\nexcludedDestinations = 'a'",
            "3: excludedDestinations: 'a' is not a destination",
        ),
        ("networks = 1", "1: networks is not a table"),
    ],
)
def test_mistakes_in_atalanta_toml(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "broker.xml").write_text("<configuration><core><name>n</name></core></configuration>")
    (tmp_path / "atalanta.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_broker_xml(tmp_path / "broker.xml")
    assert f"atalanta.toml:{says}" in str(caught.value)


@pytest.mark.parametrize(
    ("queue", "factory", "expected"),
    [
        ("&gt;", '<conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="true"/>', (True, 0)),
        ("&gt;", '<conditionalNetworkBridgeFilterFactory replayDelay="700"/>', (False, 700)),
        ("a.&gt;", '<conditionalNetworkBridgeFilterFactory replayWhenNoConsumers="false"/>', (True, 5_000)),
    ],
)
def test_a_policy_says_when_messages_return_over_bridges(
    tmp_path: Path, queue: str, factory: str, expected: tuple[bool, int]
) -> None:
    inside = (
        f'<destinationPolicy><policyMap><policyEntries><policyEntry queue="{queue}"><networkBridgeFilterFactory>'
        f"{factory}</networkBridgeFilterFactory></policyEntry></policyEntries></policyMap></destinationPolicy>"
        '<networkConnectors><networkConnector uri="static:(tcp://b:1)"/></networkConnectors>'
    )
    configuration = read(classic_file(tmp_path, inside))
    (config,) = configuration.networks.connectors
    assert (config.replay_when_no_consumers, config.replay_delay_ms) == expected
    told = [each for each in findings(configuration) if "conditionalNetworkBridgeFilterFactory" in each]
    assert len(told) == (1 if queue == "a.&gt;" else 0)
