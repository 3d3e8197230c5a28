"""The URL of a client: `tcp://host:port?options` or `(tcp://a:1,tcp://b:2)?options`. With `udp://group:port?options`
and `jgroups://channel?file=stack.xml` the servers are discovered.

Options have the names of Artemis' client (ActiveMQClient, ServerLocatorImpl), times in milliseconds, sizes in bytes.
TLS is `sslEnabled=true` with the parameters of a connector (wire/tls_config.py). Atalanta's own options are `stay`,
`zone`, `sendWindow`, `largeMessageMaxBytes`, `largeMessagesFolder`. `user`, `password` and `clientID` may be in the URL
or be given as arguments.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from atalanta.client.discovery.load_balancing import Balancing, policy_named
from atalanta.client.discovery.udp import Finder, UdpFinder, UdpGroup
from atalanta.tls.context import ClientTls
from atalanta.wire.endpoint import TLS_FIELDS, read_tls
from atalanta.wire.tls_config import TLS_REFUSED, TLS_UNUSED, TlsConfig
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_uri, parse_uri_list

SCHEMES: Final = ("tcp",)
UDP: Final = "udp"
JGROUPS: Final = "jgroups"
FOREVER: Final = -1
NO_LIMIT: Final = -1

# Options of Artemis' client that are refused here, with the reason.
UNSUPPORTED: Final[dict[str, str]] = {
    "httpEnabled": "HTTP is not supported",
    "socksEnabled": "SOCKS is not supported",
    "socksHost": "SOCKS is not supported",
    "socksPort": "SOCKS is not supported",
    "compressLargeMessage": "compressed large messages are read, but not written",
    "compressionLevel": "compressed large messages are read, but not written",
}

# Options of Artemis' client without effect here.
IGNORED: Final = frozenset(
    "ha failoverAttempts blockOnAcknowledgeDefault cacheLargeMessagesClient "
    "autoGroup groupID preAcknowledge initialMessagePacketSize threadPoolMaxSize "
    "scheduledThreadPoolMaxSize useGlobalPools flowControlThreadPoolMaxSize cacheDestinations "
    "consumerMaxRate producerMaxRate callFailoverTimeout "
    "dupsOKBatchSize transactionBatchSize enable1xPrefixes enableSharedClientID "
    "deserializationBlackList deserializationWhiteList deserializationAllowList "
    "deserializationDenyList ignoreJTA type protocolManagerFactoryStr tcpNoDelay "
    "tcpSendBufferSize tcpReceiveBufferSize nioRemotingThreads remotingThreads "
    "useGlobalWorkerPool useEpoll useKQueue directDeliver batchDelay connectTimeoutMillis "
    "netty-connect-timeout name localAddress localPort "
    "confirmationWindowSize discoveryStoppingTimeout localBindPort".split()
)


@dataclass(frozen=True)
class Server:
    """An address of the URL or of the topology."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"


@dataclass
class ClientOptions:
    """The options of a URL. Times in ms, sizes in bytes; -1 means no limit where noted."""

    servers: list[Server] = field(default_factory=list)
    user: str | None = None
    password: str | None = None
    client_id: str | None = None
    reconnect_attempts: int = 0  # -1: no limit; one attempt is one pass over the servers
    initial_connect_attempts: int = 1  # -1: no limit
    retry_interval_ms: int = 2_000
    retry_interval_multiplier: float = 1.0
    max_retry_interval_ms: int = 2_000
    call_timeout_ms: int = 30_000
    connection_timeout_ms: int = 10_000  # of one TCP connection
    connection_ttl_ms: int = 60_000
    client_failure_check_period_ms: int = 30_000
    producer_window_size: int = 1 << 20  # -1: no credits are requested
    consumer_window_size: int = 1 << 20  # -1: no limit; 0: one message at a time
    ack_batch_size: int = 0  # bytes of cumulative acknowledgements that are sent together
    min_large_message_size: int = 100 * 1024
    large_message_max_bytes: int = 256 << 20
    large_messages_folder: str = ""  # folder for bodies of large messages; "": in memory
    send_window: int = 1_000  # unconfirmed messages of a producer
    block_on_durable_send: bool = True  # request a confirmation of each durable message
    block_on_non_durable_send: bool = True
    block_on_acknowledge: bool = False
    use_topology_for_load_balancing: bool = False
    balancing: Balancing | None = None  # None: the servers in the order of the URL
    refresh_timeout_ms: int = 10_000  # validity of discovered servers
    initial_wait_timeout_ms: int = 10_000  # for the first discovered server
    local_bind_address: str = ""  # the interface that listens
    finder: Finder | None = None  # of a URL without servers
    stay: bool = False  # reconnect to the same server only
    zone: str = ""  # the zones that it prefers, the most wanted first, with commas
    auto_create_queues: bool = True
    auto_create_addresses: bool = True
    http_upgrade: bool = False  # begin with an HTTP request, like WildFly's http-acceptor requires
    http_upgrade_endpoint: str = ""
    server_name: str = ""
    tls: TlsConfig | None = None
    tls_params: dict[str, str] = field(default_factory=dict)  # as in the URL
    secure: ClientTls | None = None  # TLS of a dial, made from `tls` or given by the program


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError("is not a whole number") from None
        if not least <= value < 1 << 63:
            raise ValueError(f"is below {least}" if value < least else "is too large")
        return value

    return read


def _multiplier(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not 0 < value < 1e6:
        raise ValueError("must be greater than 0")
    return value


def _text(text: str) -> str:
    return text


_READERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "user": ("user", _text),
    "password": ("password", _text),
    "clientID": ("client_id", _text),
    "clientId": ("client_id", _text),
    "reconnectAttempts": ("reconnect_attempts", _whole(FOREVER)),
    "initialConnectAttempts": ("initial_connect_attempts", _whole(FOREVER)),
    "retryInterval": ("retry_interval_ms", _whole(0)),
    "retryIntervalMultiplier": ("retry_interval_multiplier", _multiplier),
    "maxRetryInterval": ("max_retry_interval_ms", _whole(0)),
    "callTimeout": ("call_timeout_ms", _whole(1)),
    "connect-timeout-millis": ("connection_timeout_ms", _whole(1)),
    "connectionTTL": ("connection_ttl_ms", _whole(NO_LIMIT)),
    "clientFailureCheckPeriod": ("client_failure_check_period_ms", _whole(NO_LIMIT)),
    "producerWindowSize": ("producer_window_size", _whole(NO_LIMIT)),
    "consumerWindowSize": ("consumer_window_size", _whole(NO_LIMIT)),
    "ackBatchSize": ("ack_batch_size", _whole(0)),
    "minLargeMessageSize": ("min_large_message_size", _whole(1)),
    "largeMessageMaxBytes": ("large_message_max_bytes", _whole(0)),
    "largeMessagesFolder": ("large_messages_folder", _text),
    "sendWindow": ("send_window", _whole(1)),
    "blockOnDurableSend": ("block_on_durable_send", _boolean),
    "blockOnNonDurableSend": ("block_on_non_durable_send", _boolean),
    "blockOnAcknowledge": ("block_on_acknowledge", _boolean),
    "connectionLoadBalancingPolicyClassName": ("balancing", policy_named),
    "refreshTimeout": ("refresh_timeout_ms", _whole(1)),
    "initialWaitTimeout": ("initial_wait_timeout_ms", _whole(1)),
    "discoveryInitialWaitTimeout": ("initial_wait_timeout_ms", _whole(1)),
    "localBindAddress": ("local_bind_address", _text),
    "useTopologyForLoadBalancing": ("use_topology_for_load_balancing", _boolean),
    "stay": ("stay", _boolean),
    "zone": ("zone", _text),
    "httpUpgradeEnabled": ("http_upgrade", _boolean),
    "httpUpgradeEndpoint": ("http_upgrade_endpoint", _text),
    "activemqServerName": ("server_name", _text),
    "autoCreateQueues": ("auto_create_queues", _boolean),
    "autoCreateAddresses": ("auto_create_addresses", _boolean),
}


def parse_url(url: str, user: str | None = None, password: str | None = None) -> ClientOptions:
    """Parses a URL. Arguments override its options. Raises ValueError, which names the invalid part."""
    if not isinstance(url, str):
        raise TypeError(f"a URL must be str, not {type(url).__name__}")
    options = ClientOptions()
    if url.strip().startswith(f"{UDP}://"):
        _udp(options, url)
    elif url.strip().startswith(f"{JGROUPS}://"):
        _jgroups(options, url)
    else:
        _listed(options, url)
    options.tls = read_tls(options.tls_params)
    if options.zone and (options.stay or options.reconnect_attempts == 0):
        raise UriError("option zone: needs reconnectAttempts other than 0, and not stay=true")
    if user is not None:
        options.user = user
    if password is not None:
        options.password = password
    return options


def _listed(options: ClientOptions, url: str) -> None:
    found = parse_uri_list(url, SCHEMES)
    for member in found.members:
        port = DEFAULT_PORT if member.port is None else member.port
        server = Server(member.host, port)
        if server not in options.servers:
            options.servers.append(server)
        for name, value in member.params.items():
            _set(options, name, value)
    for name, value in found.params.items():
        _set(options, name, value)


def _udp(options: ClientOptions, url: str) -> None:
    """Applies the options first, since the group needs them."""
    found = parse_uri(url, (UDP,))
    for name, value in found.params.items():
        _set(options, name, value)
    try:
        multicast = ipaddress.ip_address(found.host).is_multicast
    except ValueError:
        multicast = False
    if not multicast or not found.port:
        raise UriError(f"'{url}' names no group such as udp://231.7.7.7:9876 or udp://[ff02::77]:9876")
    group = UdpGroup(
        found.host,
        found.port,
        options.local_bind_address,
        options.refresh_timeout_ms,
        options.initial_wait_timeout_ms,
    )
    options.finder = UdpFinder(group, Server)


def _jgroups(options: ClientOptions, url: str) -> None:
    """Applies a JGroups stack. `file` is a path for the program; its placeholders are environment variables."""
    found = parse_uri(url, (JGROUPS,))
    file = found.params.pop("file", "")
    for name, value in found.params.items():
        _set(options, name, value)
    if not file:
        raise UriError(f"'{url}' names no stack file: jgroups://channel?file=stack.xml")
    # The imports are local: an XML parser and a DNS library would delay the start of every client.
    from atalanta.client.discovery.jgroups import finder_for
    from atalanta.files.jgroups_stack import StackError, read_stack

    try:
        stack = read_stack(Path(file), found.host, os.environ)
    except StackError as error:
        place = f"{file}:{error.line}" if error.line else file
        raise UriError(f"{place}: {error.text}") from error
    if options.local_bind_address:
        stack.interface = options.local_bind_address
    refresh_ms, wait_ms = options.refresh_timeout_ms, options.initial_wait_timeout_ms
    options.finder = finder_for(stack, refresh_ms, wait_ms, Server)


def _set(options: ClientOptions, name: str, value: str) -> None:
    if name in UNSUPPORTED:
        if value.lower() == "false":
            return
        raise UriError(f"option {name}: {UNSUPPORTED[name]}")
    if name in TLS_FIELDS or name in TLS_REFUSED or name in TLS_UNUSED:
        options.tls_params[name] = value
        return
    reader = _READERS.get(name)
    if reader is None:
        if name in IGNORED:
            return
        near = difflib.get_close_matches(name, [*_READERS, *TLS_FIELDS, *UNSUPPORTED, *IGNORED], 1)
        hint = f"; is {near[0]} meant?" if near else ""
        raise UriError(f"unknown option {name}{hint}")
    try:
        setattr(options, reader[0], reader[1](value))
    except ValueError as error:
        raise UriError(f"option {name}: '{value}' {error}") from None
