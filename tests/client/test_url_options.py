"""The options of a URL: those of the JMS client are done, accepted or refused by name, and the guide has them all."""

from __future__ import annotations

import re

import pytest

from atalanta.client.options import parse_url
from atalanta.client.url_options import (
    ACCEPTED,
    CLASSIC_ACCEPTED,
    CLASSIC_READERS,
    CLASSIC_REFUSED,
    READERS,
    REFUSED,
)
from atalanta.wire.endpoint import TLS_FIELDS
from atalanta.wire.tls_config import TLS_REFUSED, TLS_UNUSED
from atalanta.wire.uri import UriError
from tests.source_tree import ROOT

# The setters of Artemis 2.44, as javap lists them: ActiveMQConnectionFactory and ServerLocator.
FACTORY = """
autoGroup blockOnAcknowledge blockOnDurableSend blockOnNonDurableSend brokerURL cacheDestinations
cacheLargeMessagesClient callFailoverTimeout callTimeout clientFailureCheckPeriod clientID compressLargeMessage
compressionLevel confirmationWindowSize connectionLoadBalancingPolicyClassName connectionTTL consumerMaxRate
consumerWindowSize deserializationAllowList deserializationBlackList deserializationDenyList deserializationWhiteList
dupsOKBatchSize enable1xPrefixes enableSharedClientID failoverOnInitialConnection groupID ignoreJTA
incomingInterceptorList initialConnectAttempts initialMessagePacketSize maxRetryInterval minLargeMessageSize
outgoingInterceptorList password passwordCodec preAcknowledge producerMaxRate producerWindowSize
protocolManagerFactoryStr reconnectAttempts retryInterval retryIntervalMultiplier scheduledThreadPoolMaxSize
threadPoolMaxSize transactionBatchSize useGlobalPools useTopologyForLoadBalancing user
ackBatchSize failoverAttempts flowControlThreadPoolMaxSize onMessageCloseTimeout
"""
# ConnectionOptions, JMSConnectionOptions; DiscoveryGroupConfiguration, UDP- and JGroups…BroadcastEndpointFactory.
ADDRESS = """
host port ha HA type
name refreshTimeout discoveryInitialWaitTimeout stoppingTimeout groupAddress groupPort localBindAddress localBindPort
channelName properties
"""
# TransportConstants.ALLOWABLE_CONNECTOR_KEYS.
CONNECTOR = """
activemqServerName sslEnabled httpEnabled httpClientIdleTime httpClientIdleScanPeriod httpRequiresSessionId
httpUpgradeEnabled httpUpgradeEndpoint useServlet servletPath useNio useNioGlobalWorkerPool useEpoll useKQueue
useGlobalWorkerPool host port localAddress localPort keyStoreProvider keyStoreType keyStorePath keyStorePassword
keyStoreAlias trustStoreProvider trustStoreType trustStorePath trustStorePassword enabledCipherSuites enabledProtocols
verifyHost trustAll forceSSLParameters sniHost tcpNoDelay tcpSendBufferSize tcpReceiveBufferSize
writeBufferHighWaterMark writeBufferLowWaterMark nioRemotingThreads remotingThreads batchDelay socksEnabled socksHost
socksPort socksVersion socksUsername socksPassword socksRemoteDNS connect-timeout-millis useDefaultSslContext
sslProvider trustManagerFactoryPlugin handshake-timeout crlPath nettyHttpHeader.
"""
# The setters of FailoverTransport 5.18, and what its page calls backOffMultiplier.
FAILOVER = """
initialReconnectDelay maxReconnectDelay reconnectDelay reconnectDelayExponent maxReconnectAttempts
startupMaxReconnectAttempts timeout randomize backup backupPoolSize trackMessages trackTransactionProducers maxCacheSize
priorityBackup priorityURIs useExponentialBackOff reconnectSupported updateURIsSupported updateURIsURL
rebalanceUpdateURIs nestedExtraQueryOptions warnAfterReconnectAttempts backOffMultiplier
"""
TLS = {*TLS_FIELDS, *TLS_REFUSED, *TLS_UNUSED}
GUIDE = (ROOT / "docs/guide/python.md").read_text(encoding="utf-8")
# Read by client/classic_url.py itself.
RENAMED = {"connectionTimeout", "jms.userName", "jms.password", "jms.clientID"}


def test_every_option_of_the_jms_client_is_known() -> None:
    known = {*READERS, *ACCEPTED, *REFUSED, *TLS}
    assert {*FACTORY.split(), *ADDRESS.split(), *CONNECTOR.split()} - known == set()
    assert {*CLASSIC_READERS, *CLASSIC_ACCEPTED, *CLASSIC_REFUSED} >= set(FAILOVER.split())


def test_no_option_is_in_two_tables() -> None:
    tables = [set(READERS), set(ACCEPTED), set(REFUSED), TLS - set(REFUSED)]
    assert sum(map(len, tables)) == len(set().union(*tables))
    classic = [set(CLASSIC_READERS), set(CLASSIC_ACCEPTED), set(CLASSIC_REFUSED)]
    assert sum(map(len, classic)) == len(set().union(*classic))


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("## Options of the URL", {*READERS, "file", "jgroupsVersion"}),
        ("### Options of TLS", TLS - set(REFUSED)),
        ("### Accepted without effect", set(ACCEPTED)),
        ("### Refused by name", set(REFUSED)),
        ("### Options of Classic", {*CLASSIC_READERS, *RENAMED}),
        ("### Options of Classic without effect", set(CLASSIC_ACCEPTED)),
        ("### Options of Classic that are refused", set(CLASSIC_REFUSED)),
    ],
)
def test_the_guide_has_the_same_options(heading: str, names: set[str]) -> None:
    part = re.split(r"^#", GUIDE.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| (.*?) \|", part, re.MULTILINE)[1:]
    assert {name.strip("*") for row in rows for name in row.split(", ")} == names


def test_the_guide_has_the_reasons_of_the_code() -> None:
    for why in [*ACCEPTED.values(), *CLASSIC_ACCEPTED.values()]:
        assert f"| {why} |" in GUIDE
    for refused in [*REFUSED.values(), *CLASSIC_REFUSED.values()]:
        assert f"| {refused.why} |" in GUIDE


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_done_is_refused_by_name_with_the_remedy(name: str) -> None:
    given = f"{name}X" if name.endswith(".") else name
    with pytest.raises(UriError) as refused:
        parse_url(f"tcp://a:1?{given}=5")
    assert str(refused.value) == f"option {given}: {REFUSED[name].why}"
    for harmless in REFUSED[name].harmless:
        parse_url(f"tcp://a:1?{given}={harmless}")


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_what_changes_no_promise_is_accepted(name: str) -> None:
    before, after = parse_url("tcp://a:1"), parse_url(f"tcp://a:1?{name}=5")
    assert after == before


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("tcp://h:5?producerMaxRate=0", "option producerMaxRate: '0' must be -1 (no limit) or greater than 0"),
        ("tcp://h:5?localPort=7", "option localPort: needs localAddress, the address of this host to bind"),
        ("tcp://h:5?localAddress=::1&localPort=70000", "option localPort: '70000' is above 65535"),
        ("tcp://h:5?callTimeout=1_000", "option callTimeout: '1_000' is not a whole number"),
        ("tcp://h:5?randomize=true", "option randomize: belongs to Classic's forms: failover:("),
        ("tcp://h:5?priorityBackup=true", "option priorityBackup: belongs to Classic's forms: failover:("),
    ],
)
def test_a_value_or_place_that_is_wrong_is_named(url: str, says: str) -> None:
    with pytest.raises(UriError, match=re.escape(says)):
        parse_url(url)
