"""Acceptors and connectors, as `broker.xml` has them: `<acceptor name="x">tcp://host:port?k=v;k=v</acceptor>`.

Every parameter of Artemis (TransportConstants) is known by name. Parameters without effect here are collected in
`unused` and `named`, and listed at start. A parameter is refused if ignoring it would be dangerous or misleading
(HTTP, SOCKS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from atalanta.kernel.option import OptionGroup, option
from atalanta.kernel.unseen_options import (
    IN_PROCESS,
    SOCKETS,
    THREADS,
    UNREAD,
    UNSERVED,
    FixedValue,
)
from atalanta.message.repetition import PERIOD_MS_MIN
from atalanta.wire.tls_config import TLS_PRIVATE, TLS_REFUSED, TLS_UNUSED, TlsConfig
from atalanta.wire.uri import DEFAULT_PORT, Uri, UriError, parse_uri

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.security.security import Security


SCHEMES: Final = ("tcp",)
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
PROTOCOLS: Final = ("CORE", "AMQP", "STOMP", "HORNETQ", "MQTT", "OPENWIRE")

_HTTP: Final = "a part of httpEnabled, which is refused"
_SOCKS: Final = "a part of socksEnabled, which is refused"

# Known to Artemis, without effect here, and seen by no client. Name -> why: a kind of kernel/unseen_options.py, or
# tests/config/harmless has a case.
UNUSED: Final[dict[str, str]] = {
    "localAddress": UNREAD,  # of an acceptor
    "localPort": UNREAD,
    "writeBufferLowWaterMark": SOCKETS,
    "writeBufferHighWaterMark": SOCKETS,
    "batchDelay": "nothing is held back: what one turn of the loop writes to a client goes at its end",
    "useNio": SOCKETS,
    "useEpoll": SOCKETS,
    "useKQueue": SOCKETS,
    "useInvm": IN_PROCESS,
    "useGlobalWorkerPool": THREADS,
    "useNioGlobalWorkerPool": THREADS,
    "nioRemotingThreads": THREADS,
    "remotingThreads": THREADS,
    "directDeliver": THREADS,
    "quietPeriod": THREADS,
    "shutdownTimeout": THREADS,
    "protocol": UNREAD,  # of a connector; in an acceptor it is the old form of protocols
    "amqpCredits": UNSERVED,
    "amqpLowCredits": UNSERVED,
    "amqpMinLargeMessageSize": UNSERVED,
    "amqpMinCredits": UNSERVED,
    "amqpIdleTimeout": UNSERVED,
    "amqpDuplicateDetection": UNSERVED,
    "amqpUseModifiedForTransientDeliveryErrors": UNSERVED,
    "amqpTreatRejectAsUnmodifiedDeliveryFailed": UNSERVED,
    "saslMechanisms": UNSERVED,
    "saslLoginConfigScope": UNSERVED,
    "maximumPacketSize": UNSERVED,
    "defaultMqttSessionExpiryInterval": UNSERVED,
    "topicAliasMaximum": UNSERVED,
    "receiveMaximum": UNSERVED,
    "serverKeepAlive": UNSERVED,
    "closeMqttConnectionOnPublishAuthorizationFailure": UNSERVED,
    "httpClientIdleTime": _HTTP,
    "httpClientIdleScanPeriod": _HTTP,
    "httpResponseTime": _HTTP,
    "httpServerScanPeriod": _HTTP,
    "httpRequiresSessionId": _HTTP,
    "servletPath": _HTTP,
    "socksHost": _SOCKS,
    "socksPort": _SOCKS,
    "socksVersion": _SOCKS,
    "socksUsername": _SOCKS,
    "socksPassword": _SOCKS,
    "socksRemoteDNS": _SOCKS,
    **TLS_UNUSED,
}
_SOURCE: Final = "the operating system chooses the source of connections: a firewall for this one alone stops them"
# Of connectors alone: what others see of them.
CONNECTOR_LOST: Final[dict[str, str]] = {"localAddress": _SOURCE, "localPort": _SOURCE}
# Of an acceptor that does not say which protocols it serves.
NOT_SPOKEN: Final = "no AMQP and no MQTT is spoken, also where no protocols are named: their clients are disconnected"
UNKNOWN: Final = "unknown: nothing is done"

# If one of these is true, the bytes on the wire differ: refused rather than ignored.
REFUSED: Final[dict[str, str]] = {
    "httpEnabled": "CORE over HTTP is not supported: remove it here and in the URLs of the clients",
    "useServlet": "CORE over HTTP is not supported",
    "socksEnabled": "connections through SOCKS are not supported",
    "proxyProtocolEnabled": "the PROXY protocol is not supported",
}

OLD_PROTOCOLS: Final = "protocol"
TLS_FIELDS: Final = {entry.metadata["xml"]: entry for entry in fields(TlsConfig)}


@dataclass(eq=False, repr=False)
class ProtocolOptions(OptionGroup):
    """The base of the acceptor's parameters that belong to one protocol; they live beside it.

    Parameters of the protocol that Artemis or Classic know, without effect here, name -> why: no client sees `UNUSED`;
    `FIXED` are harmless with one value; `LOST` are named.
    """

    UNUSED: ClassVar[dict[str, str]] = {}
    FIXED: ClassVar[dict[str, FixedValue]] = {}
    LOST: ClassVar[dict[str, str]] = {}

    def check(self) -> None:
        """Raises UriError for values that cannot be used."""


Options = TypeVar("Options", bound=ProtocolOptions)


@dataclass(eq=False, repr=False)
class EndpointConfig(OptionGroup):
    """The parameters that acceptors and connectors share. `params` are all of them as written."""

    name: str
    host: str
    port: int
    tcp_no_delay: bool = option(True, "tcpNoDelay", "send small packets at once")
    tcp_send_buffer_bytes: int = option(
        1024 * 1024,
        "tcpSendBufferSize",
        "the socket's send buffer, -1 the system's",
        unit="bytes",
        minimum=-1,
        maximum=INT_MAX,
    )
    tcp_receive_buffer_bytes: int = option(
        1024 * 1024,
        "tcpReceiveBufferSize",
        "the socket's receive buffer, -1 the system's",
        unit="bytes",
        minimum=-1,
        maximum=INT_MAX,
    )
    tls: TlsConfig | None = None  # None: sslEnabled is not true
    params: dict[str, str] = field(default_factory=dict)
    unused: list[tuple[str, str]] = field(default_factory=list)  # (parameter, why): no client sees it
    named: list[tuple[str, str]] = field(default_factory=list)  # (parameter, what the file misses)


@dataclass(eq=False, repr=False)
class AcceptorConfig(EndpointConfig):
    """An acceptor for clients and nodes; `host`:`port` as written (0.0.0.0 is all interfaces)."""

    protocols: tuple[str, ...] = option((), "protocols", "empty: all that are served")
    cluster_connection: str | None = option(
        None, "clusterConnection", "the cluster connection whose topology clients of this acceptor get"
    )
    router: str | None = option(
        None, "router", "the connection router that chooses the node for clients of this acceptor"
    )
    security_domain: str = option(
        "",
        "securityDomain",
        "the entry of login.config with the users of this acceptor, instead of `activemq`",
    )
    connections_allowed: int = option(
        -1, "connectionsAllowed", "connections at once, -1 any", unit="count", minimum=-1
    )
    connection_ttl_ms: int = option(
        -1, "connectionTtl", "replaces the clients' own time to live, -1 not", unit="ms", minimum=-1
    )
    connection_ttl_min_ms: int = option(
        1000,
        "connectionTtlMin",
        "shortest time to live a client may ask for",
        unit="ms",
        minimum=0,
    )
    connection_ttl_max_ms: int | None = option(
        None,
        "connectionTtlMax",
        "longest time to live a client may ask for",
        unit="ms",
        minimum=0,
    )
    handshake_timeout_s: int = option(
        10,
        "handshake-timeout",
        "silence after connecting before the connection is closed, 0 for ever",
        unit="s",
        minimum=0,
    )
    backlog: int | None = option(
        None,
        "backlog",
        "connections that may wait in the operating system until they are accepted",
        unit="count",
        minimum=1,
        maximum=INT_MAX,
    )
    auto_start: bool = option(True, "autoStart", "false: not opened at start")
    http_upgrade_enabled: bool = option(
        False,
        "httpUpgradeEnabled",
        "clients may begin with an HTTP request that asks for CORE, as WildFly's http-connector does",
    )
    anycast_prefix: str = option(
        "", "anycastPrefix", "address prefixes that mean anycast, comma separated"
    )
    multicast_prefix: str = option(
        "", "multicastPrefix", "address prefixes that mean multicast, comma separated"
    )

    scheduler_support: bool = option(
        True,
        "schedulerSupport",
        "false: messages of OpenWire and STOMP clients with AMQ_SCHEDULED_… are delivered at once, as in Classic",
    )
    scheduler_period_min_ms: int = option(
        PERIOD_MS_MIN,
        "schedulerPeriodMin",
        "shortest AMQ_SCHEDULED_PERIOD: each delivery is a message of its own, on disk and in its queue",
        unit="ms",
        minimum=1,
    )
    options_by_protocol: dict[type[ProtocolOptions], ProtocolOptions] = field(default_factory=dict)

    def serves(self, protocol: str) -> bool:
        return not self.protocols or protocol in self.protocols

    def options(self, kind: type[Options]) -> Options:
        """Returns the options of one protocol, with its defaults if the acceptor was not read from a file."""
        found = self.options_by_protocol.get(kind)
        if found is None:
            found = self.options_by_protocol[kind] = kind()
        assert isinstance(found, kind)
        return found


@dataclass(eq=False, repr=False)
class ConnectorConfig(EndpointConfig):
    """A connector to a node; announced to clients and peers under `name`."""

    connect_timeout_ms: int = option(
        -1,
        "connect-timeout-millis",
        "longest wait for a connection between nodes, -1 is 30 s",
        unit="ms",
        minimum=-1,
    )
    http_upgrade_enabled: bool = option(
        False,
        "httpUpgradeEnabled",
        "connections begin with an HTTP request that asks for CORE, as WildFly's http-acceptor wants it",
    )
    http_upgrade_endpoint: str = option(
        "", "httpUpgradeEndpoint", "the http-acceptor that is asked for"
    )
    server_name: str = option("", "activemqServerName", "the broker in WildFly that is asked for")

    def transport_params(self) -> dict[str, str]:
        """Returns the parameters of the TransportConfiguration on the wire: all strings, `port` too.

        Every client and peer sees them, so the parameters of the node's own key store are left out.
        """
        shown = {key: value for key, value in self.params.items() if key not in TLS_PRIVATE}
        return {"port": str(self.port), "host": self.host, **shown}


class UnservedUri(UriError):
    """A parameter that changes the bytes on the wire to what is not served."""


def read_acceptor(name: str, text: str, kinds: Sequence[type[ProtocolOptions]]) -> AcceptorConfig:
    """Returns an acceptor with the options of the protocols in `kinds`. UriError names the wrong part of `text`."""
    uri = parse_uri(text, SCHEMES, True)
    if OLD_PROTOCOLS in uri.params:  # of HornetQ and the first versions of Artemis
        uri.params.setdefault("protocols", uri.params.pop(OLD_PROTOCOLS))
    config = AcceptorConfig(name, uri.host, _port_of(uri), params=dict(uri.params))
    groups = [config.options(kind) for kind in kinds]
    _fill(config, uri.params, groups)
    for group in groups:
        group.check()
    return config


def parse_connector(name: str, text: str) -> ConnectorConfig:
    """Parses a connector. UriError names the wrong part of `text`."""
    uri = parse_uri(text, SCHEMES, True)
    return make_connector(name, uri)


def make_connector(name: str, uri: Uri) -> ConnectorConfig:
    config = ConnectorConfig(name, uri.host, _port_of(uri), params=dict(uri.params))
    _fill(config, uri.params)
    return config


def _port_of(uri: Uri) -> int:
    return uri.port if uri.port is not None else DEFAULT_PORT


def _fill(config: EndpointConfig, params: dict[str, str], groups: Sequence[ProtocolOptions] = ()) -> None:
    targets: list[EndpointConfig | ProtocolOptions] = [config, *groups]
    known = {
        name: (target, entry)
        for target in targets
        for entry in fields(target)
        if entry.metadata
        for name in (entry.metadata["xml"], *entry.metadata["also"])
    }
    others: dict[str, str] = {}
    config.tls = read_tls(params)
    for name, text in params.items():
        if name in known:
            target, entry = known[name]
            if name in entry.metadata["also"] and entry.metadata["xml"] in params:
                continue
            setattr(target, entry.name, _convert(name, text, entry.default, entry.metadata))
        elif name not in TLS_FIELDS and name not in TLS_REFUSED:
            others[name] = text
    for name, text in others.items():
        if name in REFUSED and _boolean(name, text):
            raise UnservedUri(f"{name}: {REFUSED[name]}")
        if name not in REFUSED:
            _without_effect(config, groups, name, text, list(known))


def _without_effect(
    config: EndpointConfig, groups: Sequence[ProtocolOptions], name: str, text: str, known: list[str]
) -> None:
    """Puts a parameter that is not built into `unused` or `named`."""
    unused = dict(UNUSED)
    fixed: dict[str, FixedValue] = {}
    lost = dict(CONNECTOR_LOST) if isinstance(config, ConnectorConfig) else {}
    for group in groups:
        unused.update(group.UNUSED)
        fixed.update(group.FIXED)
        lost.update(group.LOST)
    if name in lost:
        config.named.append((name, lost[name]))
    elif name in fixed:
        if not fixed[name].holds(text):
            config.named.append((name, fixed[name].otherwise))
    elif name not in unused:
        names = [*known, *TLS_FIELDS, *TLS_REFUSED, *unused, *fixed, *lost, *REFUSED]
        config.named.append((name, _unknown(name, names)))
    elif unused[name] == UNSERVED and isinstance(config, AcceptorConfig) and not config.protocols:
        config.named.append((name, NOT_SPOKEN))
    else:
        config.unused.append((name, unused[name]))


def read_tls(params: dict[str, str]) -> TlsConfig | None:
    """Returns None unless `sslEnabled=true`; the other parameters are checked in any case. UriError."""
    tls = TlsConfig()
    for name, text in params.items():
        entry = TLS_FIELDS.get(name)
        if entry is not None:
            boolean = entry.metadata["kind"] == "bool"
            setattr(tls, entry.name, _boolean(name, text) if boolean else text)
    if not tls.enabled:
        return None
    for name, why in TLS_REFUSED.items():
        if name in params:
            raise UriError(f"{name}: {why}")
    return tls


def _unknown(name: str, names: list[str]) -> str:
    """Returns the note on an unknown parameter, with a similar name if there is one. Artemis hands unknown parameters
    to its protocols, so they are no error.
    """
    import difflib  # Imported here: nodes start without it.

    near = difflib.get_close_matches(name, names, 1)
    return f"{UNKNOWN}; did you mean '{near[0]}'?" if near else UNKNOWN


def _convert(
    name: str, text: str, default: Any, metadata: Any
) -> bool | int | float | str | tuple[str, ...]:
    if name == "protocols":
        return _protocols(text)
    if isinstance(default, bool):
        return _boolean(name, text)
    if isinstance(default, float):
        return _decimal(name, text, metadata["minimum"], metadata["maximum"])
    if not metadata["unit"]:
        return text
    try:
        value = int(text.strip())
    except ValueError:
        raise UriError(f"{name}: '{text}' is not a whole number") from None
    minimum = metadata["minimum"]
    if minimum is not None and value < minimum:
        raise UriError(f"{name}: {value} is less than {minimum}")
    maximum = metadata["maximum"] or LONG_MAX
    if value > maximum:
        raise UriError(f"{name}: {value} is more than {maximum}")
    return value


def _decimal(name: str, text: str, minimum: float, maximum: float) -> float:
    try:
        value = float(text.strip())
    except ValueError:
        raise UriError(f"{name}: '{text}' is not a number") from None
    if not minimum <= value <= maximum:
        raise UriError(f"{name}: {text} is not between {minimum} and {maximum}")
    return value


def _boolean(name: str, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise UriError(f"{name}: '{text}' is neither true nor false")
    return lowered == "true"


def _protocols(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for part in text.split(","):
        name = part.strip().upper()
        if name and name not in PROTOCOLS:
            raise UriError(f"protocols: '{part.strip()}' is none of {', '.join(PROTOCOLS)}")
        if name:
            found.append(name)
    return tuple(found)


def change_domains(
    trace: Trace,
    acceptors: dict[str, AcceptorConfig],
    fresh: list[AcceptorConfig],
    security: Security,
) -> None:
    """Changes the security domains of the acceptors in use to those that were read (`fresh`, `security`).

    Nothing else of an acceptor changes. Later connections ask the new domain. An open connection keeps its own, also
    for further sessions, and the users that `Security.replace` leaves it. None of its sessions is reattached to a new
    connection (wire/core/server/reattach.py: `_may`).
    """
    wanted = {acceptor.name: acceptor.security_domain for acceptor in fresh}
    for name, acceptor in list(acceptors.items()):
        domain = wanted.get(name, acceptor.security_domain)
        if domain != acceptor.security_domain:
            acceptors[name] = replace(acceptor, security_domain=domain)
            trace.event("security_domain_changed", {"acceptor": name, "domain": domain})
        elif domain and domain not in security.domains and security.enabled:
            trace.event("security_domain_without_users", {"acceptor": name, "domain": domain})
