"""The options of a client's URL by name: those that are read, those without effect, and those that are refused.

The list is that of Artemis' JMS client 2.44 (ActiveMQConnectionFactory, ServerLocator, ConnectionOptions,
DiscoveryGroupConfiguration, TransportConstants.ALLOWABLE_CONNECTOR_KEYS), whole, with Atalanta's own. What would change
a promise is done or refused; what changes none is accepted, since URLs are shared with JMS clients. The parameters of
TLS are those of a connector (wire/tls_config.py). docs/guide/python.md has the table, which a test holds to this one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from atalanta.client.discovery.load_balancing import policy_named
from atalanta.message.encoding.digits import all_digits

FOREVER: Final = -1
NO_LIMIT: Final = -1
PORT_MAX: Final = 65_535


@dataclass(frozen=True)
class RefusedOption:
    """An option that is not done: `why` has the remedy. A value of `harmless`, in small letters, asks for nothing."""

    why: str
    harmless: tuple[str, ...] = ("false",)


_HTTP: Final = RefusedOption("CORE over HTTP is not built; remove it, or use httpUpgradeEnabled=true with WildFly")
_SOCKS: Final = RefusedOption("SOCKS is not built; connect without a proxy, or by a tunnel of ssh -L")
_COMPRESSION: Final = "compressed large messages are read, but not written; compress the body in the program"
_JAVA: Final = "a Java class cannot be loaded; "
_ADDRESS: Final = "write it in the address: tcp://host:port"
_GROUP: Final = "write it in the address: udp://group:port"

REFUSED: Final[dict[str, RefusedOption]] = {
    "brokerURL": RefusedOption("a URL in a URL; write one of them"),
    "compressLargeMessage": RefusedOption(_COMPRESSION),
    "compressionLevel": RefusedOption(_COMPRESSION, ("-1",)),
    "confirmationWindowSize": RefusedOption(
        "sessions are not attached again after a loss: an open transaction ends with its connection. Remove it: "
        "with reconnectAttempts unconfirmed messages are sent again, and the broker drops those that it has; "
        "sendWindow limits them",
        ("-1",),
    ),
    "enable1xPrefixes": RefusedOption(
        "names of queues are sent as they are; write the prefixes in the program: jms.queue.orders, jms.topic.news"
    ),
    "incomingInterceptorList": RefusedOption(f"{_JAVA}change messages in the program", ("",)),
    "outgoingInterceptorList": RefusedOption(f"{_JAVA}change messages in the program", ("",)),
    "protocolManagerFactoryStr": RefusedOption(
        "only Artemis' own protocol is spoken; remove it",
        (
            "",
            "activemqclientprotocolmanagerfactory",
            "org.apache.activemq.artemis.core.protocol.core.impl.activemqclientprotocolmanagerfactory",
        ),
    ),
    "passwordCodec": RefusedOption(f"{_JAVA}pass the password as an argument of connect", ("",)),
    "properties": RefusedOption("a stack is read from a file: jgroups://channel?file=stack.xml", ()),
    "channelName": RefusedOption("write it in the address: jgroups://channel?file=stack.xml", ()),
    "groupAddress": RefusedOption(_GROUP, ()),
    "groupPort": RefusedOption(_GROUP, ()),
    "host": RefusedOption(_ADDRESS, ()),
    "port": RefusedOption(_ADDRESS, ()),
    "httpEnabled": _HTTP,
    "useServlet": _HTTP,
    "nettyHttpHeader.": RefusedOption("headers of the HTTP upgrade cannot be added; remove it", ()),
    "socksEnabled": _SOCKS,
    "socksHost": _SOCKS,
    "socksPort": _SOCKS,
    "socksVersion": _SOCKS,
    "socksUsername": _SOCKS,
    "socksPassword": _SOCKS,
    "socksRemoteDNS": _SOCKS,
}

_FIRST: Final = "the topology tells the backup of a node anyway"
_THREADS: Final = "there are no thread pools"
_SOCKETS: Final = "of sockets and buffers"
_JMS: Final = "of the JMS classes, which are not here"
_OBJECTS: Final = "no object of Java is read"
_BATCHES: Final = "acknowledgements are the program's own calls"
_OF_HTTP: Final = "a part of httpEnabled, which is refused"

ACCEPTED: Final[dict[str, str]] = {
    "ha": _FIRST,
    "HA": _FIRST,
    "failoverOnInitialConnection": "every server of the URL is tried anyway",
    "threadPoolMaxSize": _THREADS,
    "scheduledThreadPoolMaxSize": _THREADS,
    "flowControlThreadPoolMaxSize": _THREADS,
    "useGlobalPools": _THREADS,
    "useGlobalWorkerPool": _THREADS,
    "useNioGlobalWorkerPool": _THREADS,
    "nioRemotingThreads": _THREADS,
    "remotingThreads": _THREADS,
    "useNio": _SOCKETS,
    "useEpoll": _SOCKETS,
    "useKQueue": _SOCKETS,
    "tcpNoDelay": _SOCKETS,
    "tcpSendBufferSize": _SOCKETS,
    "tcpReceiveBufferSize": _SOCKETS,
    "writeBufferLowWaterMark": _SOCKETS,
    "writeBufferHighWaterMark": _SOCKETS,
    "batchDelay": _SOCKETS,
    "directDeliver": _SOCKETS,
    "initialMessagePacketSize": _SOCKETS,
    "cacheDestinations": _JMS,
    "type": _JMS,
    "ignoreJTA": _JMS,
    "onMessageCloseTimeout": _JMS,
    "cacheLargeMessagesClient": "received large bodies are kept anyway (largeMessagesFolder: in files)",
    "deserializationBlackList": _OBJECTS,
    "deserializationWhiteList": _OBJECTS,
    "deserializationAllowList": _OBJECTS,
    "deserializationDenyList": _OBJECTS,
    "blockOnAcknowledgeDefault": "no option of any client",
    "dupsOKBatchSize": _BATCHES,
    "transactionBatchSize": _BATCHES,
    "httpClientIdleTime": _OF_HTTP,
    "httpClientIdleScanPeriod": _OF_HTTP,
    "httpRequiresSessionId": _OF_HTTP,
    "servletPath": _OF_HTTP,
    "handshake-timeout": "connect-timeout-millis includes the handshake of TLS",
    "localBindPort": "a client that listens to a group sends nothing to it",
    "discoveryStoppingTimeout": "a listener ends at once",
    "stoppingTimeout": "a listener ends at once",
    "name": "a label",
}


def boolean(text: str) -> bool:
    """Returns the value of `true` or `false`. ValueError."""
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def whole(least: int) -> Callable[[str], int]:
    """Returns a reader of whole numbers from `least` on. The reader raises ValueError."""

    def read(text: str) -> int:
        if not all_digits(text.removeprefix("-"), 20):
            raise ValueError("is not a whole number")
        value = int(text)
        if not least <= value < 1 << 63:
            raise ValueError(f"is below {least}" if value < least else "is too large")
        return value

    return read


def multiplier(text: str) -> float:
    """Returns a number above 0. ValueError."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not 0 < value < 1e6:
        raise ValueError("must be greater than 0")
    return value


def _rate(text: str) -> int:
    value = whole(NO_LIMIT)(text)
    if value == 0:
        raise ValueError("must be -1 (no limit) or greater than 0")
    return value


def _port(text: str) -> int:
    value = whole(0)(text)
    if value > PORT_MAX:
        raise ValueError(f"is above {PORT_MAX}")
    return value


def text_of(text: str) -> str:
    """Returns the text as it is."""
    return text


READERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "user": ("user", text_of),
    "password": ("password", text_of),
    "clientID": ("client_id", text_of),
    "clientId": ("client_id", text_of),
    "enableSharedClientID": ("shared_client_id", boolean),
    "reconnectAttempts": ("reconnect_attempts", whole(FOREVER)),
    "initialConnectAttempts": ("initial_connect_attempts", whole(FOREVER)),
    "failoverAttempts": ("failover_attempts", whole(FOREVER)),
    "retryInterval": ("retry_interval_ms", whole(0)),
    "retryIntervalMultiplier": ("retry_interval_multiplier", multiplier),
    "maxRetryInterval": ("max_retry_interval_ms", whole(0)),
    "callTimeout": ("call_timeout_ms", whole(1)),
    "callFailoverTimeout": ("call_failover_timeout_ms", whole(FOREVER)),
    "connect-timeout-millis": ("connection_timeout_ms", whole(1)),
    "connectTimeoutMillis": ("connection_timeout_ms", whole(1)),
    "netty-connect-timeout": ("connection_timeout_ms", whole(1)),
    "localAddress": ("local_address", text_of),
    "localPort": ("local_port", _port),
    "connectionTTL": ("connection_ttl_ms", whole(NO_LIMIT)),
    "clientFailureCheckPeriod": ("client_failure_check_period_ms", whole(NO_LIMIT)),
    "producerWindowSize": ("producer_window_size", whole(NO_LIMIT)),
    "producerMaxRate": ("producer_max_rate", _rate),
    "consumerWindowSize": ("consumer_window_size", whole(NO_LIMIT)),
    "consumerMaxRate": ("consumer_max_rate", _rate),
    "ackBatchSize": ("ack_batch_size", whole(0)),
    "preAcknowledge": ("pre_acknowledge", boolean),
    "groupID": ("group_id", text_of),
    "autoGroup": ("auto_group", boolean),
    "minLargeMessageSize": ("min_large_message_size", whole(1)),
    "largeMessageMaxBytes": ("large_message_max_bytes", whole(0)),
    "largeMessagesFolder": ("large_messages_folder", text_of),
    "sendWindow": ("send_window", whole(1)),
    "blockOnDurableSend": ("block_on_durable_send", boolean),
    "blockOnNonDurableSend": ("block_on_non_durable_send", boolean),
    "blockOnAcknowledge": ("block_on_acknowledge", boolean),
    "connectionLoadBalancingPolicyClassName": ("balancing", policy_named),
    "useTopologyForLoadBalancing": ("use_topology_for_load_balancing", boolean),
    "refreshTimeout": ("refresh_timeout_ms", whole(1)),
    "initialWaitTimeout": ("initial_wait_timeout_ms", whole(1)),
    "discoveryInitialWaitTimeout": ("initial_wait_timeout_ms", whole(1)),
    "localBindAddress": ("local_bind_address", text_of),
    "stay": ("stay", boolean),
    "zone": ("zone", text_of),
    "httpUpgradeEnabled": ("http_upgrade", boolean),
    "httpUpgradeEndpoint": ("http_upgrade_endpoint", text_of),
    "activemqServerName": ("server_name", text_of),
    "autoCreateQueues": ("auto_create_queues", boolean),
    "autoCreateAddresses": ("auto_create_addresses", boolean),
}

# Classic's forms of an address (client/classic_url.py), and the options that only they have.
CLASSIC_SCHEMES: Final = ("failover", "discovery", "static", "fanout")
RANDOMIZE: Final = "randomize"

# Name -> field of ClassicOptions. The setters are those of FailoverTransport; backOffMultiplier is its documented name.
CLASSIC_READERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "initialReconnectDelay": ("initial_delay_ms", whole(0)),
    "maxReconnectDelay": ("delay_max_ms", whole(0)),
    "useExponentialBackOff": ("exponential", boolean),
    "backOffMultiplier": ("growth", multiplier),
    "reconnectDelayExponent": ("growth", multiplier),
    "maxReconnectAttempts": ("attempts", whole(FOREVER)),
    "startupMaxReconnectAttempts": ("startup_attempts", whole(FOREVER)),
    "warnAfterReconnectAttempts": ("warn_attempts", whole(FOREVER)),
    "timeout": ("timeout_ms", whole(FOREVER)),
    RANDOMIZE: (RANDOMIZE, boolean),
    "priorityBackup": ("priority_backup", boolean),
    "priorityURIs": ("priority_uris", text_of),
    "updateURIsSupported": ("updates", boolean),
    "nestedExtraQueryOptions": ("nested", text_of),
}

_MOVED: Final = (
    "a node with too many clients may send this one to another; stay=true forbids it, and with it the other servers "
    "after a loss"
)

CLASSIC_REFUSED: Final[dict[str, RefusedOption]] = {
    "backup": RefusedOption("no second connection is kept ready; remove it: the next server is dialled after a loss"),
    "maxCacheSize": RefusedOption("unconfirmed messages are counted; write sendWindow=1000", ("131072",)),
    "rebalanceUpdateURIs": RefusedOption(_MOVED, ("true",)),
    "reconnectSupported": RefusedOption(_MOVED, ("true",)),
    "reconnectDelay": RefusedOption("it is what initialReconnectDelay has become after some attempts; write that", ()),
    "updateURIsURL": RefusedOption("a list of servers is not read from elsewhere; write the servers here", ("",)),
    "jms.": RefusedOption(
        "an option of ActiveMQ's JMS client, which speaks OpenWire; this one speaks CORE: write its own option "
        "(user, password, clientID, consumerWindowSize …)",
        (),
    ),
    "wireFormat.": RefusedOption(
        "OpenWire is not spoken here; write connectionTTL, the time after which a silent connection is lost", ()
    ),
    "socket.": RefusedOption("options of Java's sockets are not set; write verifyHost, trustStorePath … for TLS", ()),
}

_TRACKED: Final = "with each reconnect unconfirmed messages are sent again anyway"

CLASSIC_ACCEPTED: Final[dict[str, str]] = {
    "trackMessages": _TRACKED,
    "trackTransactionProducers": _TRACKED,
    "backupPoolSize": "a part of backup, which is refused",
    "minConnectTime": "a server that ends each connection at once is retried after a pause anyway",
    "keepAlive": _SOCKETS,
    "soLinger": _SOCKETS,
    "soTimeout": _SOCKETS,
    "soWriteTimeout": _SOCKETS,
    "socketBufferSize": _SOCKETS,
    "ioBufferSize": _SOCKETS,
    "useLocalHost": _SOCKETS,
    "trace": "a log of Java's client",
    "daemon": _THREADS,
    "stackSize": _THREADS,
}

CLASSIC_OPTIONS: Final = frozenset((*CLASSIC_READERS, *CLASSIC_REFUSED, *CLASSIC_ACCEPTED))


def refusal(name: str, value: str, refused: dict[str, RefusedOption]) -> str | None:
    """Returns why an option cannot have this value: "" if it may, None if `refused` does not know its name.

    A name of `refused` that ends with a dot is the beginning of many.
    """
    found = refused.get(name)
    if found is None:
        beginning = f"{name.partition('.')[0]}."
        found = refused.get(beginning)
    if found is None:
        return None
    return "" if value.lower() in found.harmless else f"option {name}: {found.why}"
