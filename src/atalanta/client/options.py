"""The URL of a client: `tcp://host:port?options` or `(tcp://a:1,tcp://b:2)?options`. With `udp://group:port?options`
and `jgroups://channel?file=stack.xml` the servers are discovered. Classic's forms are in client/classic_url.py.

Options have the names of Artemis' client, times in milliseconds, sizes in bytes (client/url_options.py).
TLS is `sslEnabled=true` with the parameters of a connector (wire/tls_config.py). Atalanta's own options are `stay`,
`zone`, `sendWindow`, `largeMessageMaxBytes`, `largeMessagesFolder`. `user`, `password` and `clientID` may be in the URL
or be given as arguments.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from atalanta.client.discovery.load_balancing import Balancing
from atalanta.client.url_options import (
    ACCEPTED,
    CLASSIC_OPTIONS,
    CLASSIC_SCHEMES,
    READERS,
    REFUSED,
    refusal,
)
from atalanta.message.quick_dataclass import dataclass
from atalanta.wire.uri import DEFAULT_PORT, Uri, UriError, parse_uri, parse_uri_list

if TYPE_CHECKING:
    from atalanta.client.discovery.udp import Finder
    from atalanta.tls.context import ClientTls
    from atalanta.wire.tls_config import TlsConfig

SCHEMES: Final = ("tcp",)
UDP: Final = "udp"
JGROUPS: Final = "jgroups"


@dataclass(frozen=True)
class Server:
    """An address of the URL or of the topology."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"


@dataclasses.dataclass
class ClientOptions:
    """The options of a URL. Times in ms, sizes in bytes; -1 means no limit where noted."""

    servers: list[Server] = field(default_factory=list)
    user: str | None = None
    password: str | None = None
    client_id: str | None = None
    shared_client_id: bool = False  # several connections may have the client id
    reconnect_attempts: int = 0  # -1: no limit; one attempt is one pass over the servers
    failover_attempts: int = 0  # after those: passes over the other members of the topology
    initial_connect_attempts: int = 1  # -1: no limit
    retry_interval_ms: int = 2_000
    retry_interval_multiplier: float = 1.0
    max_retry_interval_ms: int = 2_000
    call_timeout_ms: int = 30_000
    call_failover_timeout_ms: int = -1  # wait of a call while the connection is lost; -1: no limit
    limits_first_login: bool = False  # that time counts before the first login, too (Classic's timeout)
    connection_timeout_ms: int = 10_000  # of one TCP connection
    local_address: str = ""  # that this end is bound to
    local_port: int = 0
    connection_ttl_ms: int = 60_000
    client_failure_check_period_ms: int = 30_000
    producer_window_size: int = 1 << 20  # -1: no credits are requested
    producer_max_rate: int = -1  # messages a second of a producer; -1: no limit
    consumer_window_size: int = 1 << 20  # -1: no limit; 0: one message at a time
    consumer_max_rate: int = -1  # messages a second of a consumer; -1: no limit
    pre_acknowledge: bool = False  # the broker counts a message as acknowledged when it sends it
    group_id: str | None = None  # of all messages
    auto_group: bool = False  # each producer is a group
    ack_batch_size: int = 0  # bytes of cumulative acknowledgements that are sent together
    min_large_message_size: int = 100 * 1024
    large_message_max_bytes: int = 256 << 20
    large_messages_folder: str = ""  # folder for bodies of large messages; "": in memory
    send_window: int = 1_000  # unconfirmed messages of a producer
    block_on_durable_send: bool = True  # request a confirmation of each durable message
    block_on_non_durable_send: bool = True
    block_on_acknowledge: bool = False
    use_topology_for_load_balancing: bool | None = None  # None: for new connections; True: also after a loss
    balancing: Balancing | None = None  # None: the servers in the order of the URL
    members: list[Server] = field(default_factory=list)  # chosen from the topology; tried before the servers
    priority: list[Server] = field(default_factory=list)  # of Classic's priorityBackup: tried first, and returned to
    shuffled: bool = False  # after a loss the other servers are tried in a random order
    warn_attempts: int = 0  # so many failed passes are a warning in the log; 0: none is
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

    @property
    def local_end(self) -> tuple[str, int] | None:
        """Returns address and port that this end of a connection is bound to; None: the system's choice."""
        return (self.local_address, self.local_port) if self.local_address else None

    @property
    def reconnects(self) -> bool:
        """Returns True if the connection goes on after a loss."""
        return self.reconnect_attempts != 0 or self.failover_attempts != 0


def parse_url(url: str, user: str | None = None, password: str | None = None) -> ClientOptions:
    """Parses a URL. Arguments override its options. Raises ValueError, which names the invalid part."""
    if not isinstance(url, str):
        raise TypeError(f"a URL must be str, not {type(url).__name__}")
    options = ClientOptions()
    text = url.strip()
    if text.startswith(f"{UDP}://"):
        _udp(options, text)
    elif text.startswith(f"{JGROUPS}://"):
        _jgroups(options, text)
    elif text.partition(":")[0] in CLASSIC_SCHEMES:
        # The import is local: such a URL is rare, and each module delays the start of every client.
        from atalanta.client.classic_url import read_classic_url

        read_classic_url(options, text)
    else:
        _listed(options, text)
    if options.tls_params:
        from atalanta.wire.endpoint import read_tls

        options.tls = read_tls(options.tls_params)
    if options.zone and (options.stay or not options.reconnects):
        raise UriError("option zone: needs reconnectAttempts other than 0, and not stay=true")
    if options.local_port and not options.local_address:
        raise UriError("option localPort: needs localAddress, the address of this host to bind")
    if user is not None:
        options.user = user
    if password is not None:
        options.password = password
    return options


def _listed(options: ClientOptions, url: str) -> None:
    found = parse_uri_list(url, SCHEMES)
    for member in found.members:
        add_server(options, member)
        set_options(options, member.params)
    set_options(options, found.params)


def add_server(options: ClientOptions, uri: Uri) -> Server:
    """Adds the server of an address, unless it is there, and returns it."""
    server = Server(uri.host, DEFAULT_PORT if uri.port is None else uri.port)
    if server not in options.servers:
        options.servers.append(server)
    return server


def _udp(options: ClientOptions, url: str) -> None:
    """Applies the options first, since the group needs them."""
    found = parse_uri(url, (UDP,))
    set_options(options, found.params)
    try:
        multicast = ipaddress.ip_address(found.host).is_multicast
    except ValueError:
        multicast = False
    if not multicast or not found.port:
        raise UriError(f"'{url}' names no group such as udp://231.7.7.7:9876 or udp://[ff02::77]:9876")
    from atalanta.client.discovery.udp import UdpFinder, UdpGroup

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
    version = found.params.pop("jgroupsVersion", "")
    set_options(options, found.params)
    if not file:
        raise UriError(f"'{url}' names no stack file: jgroups://channel?file=stack.xml")
    # The imports are local: an XML parser and a DNS library would delay the start of every client.
    from atalanta.client.discovery.jgroups import finder_for
    from atalanta.files.jgroups_stack import StackError, read_stack
    from atalanta.wire.jgroups.version import VersionError, version_of

    try:
        stack = read_stack(Path(file), found.host, os.environ)
    except StackError as error:
        place = f"{file}:{error.line}" if error.line else file
        raise UriError(f"{place}: {error.text}") from error
    if options.local_bind_address:
        stack.interface = stack.group_interface = options.local_bind_address
    if version:
        try:
            stack.version = version_of(version)
        except VersionError as wrong:
            raise UriError(f"option jgroupsVersion: {wrong}") from wrong
    refresh_ms, wait_ms = options.refresh_timeout_ms, options.initial_wait_timeout_ms
    options.finder = finder_for(stack, refresh_ms, wait_ms, Server)


def set_options(options: ClientOptions, params: Mapping[str, str]) -> None:
    """Sets the options of a URL. UriError names one that is unknown, refused, or has a value that cannot be used."""
    for name, value in params.items():
        _set(options, name, value)


def _set(options: ClientOptions, name: str, value: str) -> None:
    why = refusal(name, value, REFUSED)
    if why:
        raise UriError(why)
    if why is not None:
        return
    if name in READERS:
        field_name, read = READERS[name]
        set_option(options, field_name, read, name, value)
    elif name not in ACCEPTED:
        _set_tls(options, name, value)


def _set_tls(options: ClientOptions, name: str, value: str) -> None:
    """Sets an option of TLS. UriError for a name that is not known."""
    # The imports are local: most programs have no TLS, and start faster without its options.
    from atalanta.wire.endpoint import TLS_FIELDS
    from atalanta.wire.tls_config import TLS_REFUSED, TLS_UNUSED

    if name in TLS_FIELDS or name in TLS_REFUSED or name in TLS_UNUSED:
        options.tls_params[name] = value
        return
    if name in CLASSIC_OPTIONS:
        raise UriError(f"option {name}: belongs to Classic's forms: failover:(tcp://a:61616,tcp://b:61616)?{name}=…")
    import difflib

    near = difflib.get_close_matches(name, [*READERS, *TLS_FIELDS, *REFUSED, *ACCEPTED], 1)
    raise UriError(f"unknown option {name}" + (f"; is {near[0]} meant?" if near else ""))


def set_option(
    options: object, field_name: str, read: Callable[[str], Any], name: str, value: str
) -> None:
    """Sets a field to the value that `read` makes of the text. UriError names the option."""
    try:
        setattr(options, field_name, read(value))
    except ValueError as error:
        raise UriError(f"option {name}: '{value}' {error}") from None
