"""Classic's forms of a client's URL: `failover:(tcp://a:61616,tcp://b:61616)?options`, `static:(…)`, `discovery:(…)`.

They are read in the terms of this client, which speaks CORE: no OpenWire is spoken. Defaults and meanings are those of
ActiveMQ's FailoverTransport 5.18: the client goes on for ever, and takes the servers in a random order. After a loss it
tries the lost server, or the pair of it, before all others (client/shells/reconnect.py): duplicate ids hold only there.
`discovery:` has the agents static (simple), masterslave and multicast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from atalanta.client.discovery.load_balancing import FirstElement, RoundRobin
from atalanta.client.options import ClientOptions, Server, add_server, set_option, set_options
from atalanta.client.url_options import (
    CLASSIC_ACCEPTED,
    CLASSIC_READERS,
    CLASSIC_REFUSED,
    FOREVER,
    refusal,
)
from atalanta.wire.openwire.multicast_discovery import MulticastGroup, parse_group
from atalanta.wire.uri import (
    DEFAULT_PORT,
    MEMBERS_MAX,
    UriError,
    parse_params,
    parse_uri,
    split_composite,
)

FAILOVER: Final = "failover"
DISCOVERY: Final = "discovery"
FANOUT: Final = "fanout"
STATIC: Final = ("static", "simple")
MASTERSLAVE: Final = "masterslave"
MULTICAST: Final = "multicast"
TLS_SCHEMES: Final = ("ssl", "nio+ssl", "auto+ssl", "auto+nio+ssl")
SCHEMES: Final = ("tcp", "nio", "auto", "auto+nio", *TLS_SCHEMES)
# Prefixes of options for each server of the list.
FOR_SERVERS: Final = ("nested.", "discovered.")
JMS: Final = {"jms.userName": "user", "jms.password": "password", "jms.clientID": "clientID"}
REFUSED_AGENTS: Final = ("zeroconf", "ldap", "http", "https")
STATIC_DELAY_MS: Final = 1_000  # of SimpleDiscoveryAgent


@dataclass
class ClassicOptions:
    """The options of a FailoverTransport, with its defaults. -1: no limit, or never."""

    initial_delay_ms: int = 10
    delay_max_ms: int = 30_000
    exponential: bool = True
    growth: float = 2.0
    attempts: int = FOREVER
    startup_attempts: int = FOREVER
    warn_attempts: int = 10
    timeout_ms: int = -1
    randomize: bool = True
    priority_backup: bool = False
    priority_uris: str = ""
    updates: bool = True
    nested: str = ""


def read_classic_url(options: ClientOptions, url: str) -> None:
    """Reads a URL that begins with failover:, discovery:, static: or fanout:. UriError names what is wrong."""
    scheme, _, rest = url.partition(":")
    if scheme == FANOUT:
        raise UriError(
            "fanout: a message for all brokers at once is not built; open a connection to each broker and send to all"
        )
    classic = ClassicOptions()
    core: dict[str, str] = {}
    group: MulticastGroup | None = None
    if scheme == DISCOVERY:
        agents, query = split_composite(rest)
        if len(agents) != 1:
            raise UriError(f"'{url}' names {len(agents)} agents: write one, as discovery:(static:(tcp://a,tcp://b))")
        group = _read_agent(options, classic, core, agents[0])
    else:
        query = _read_servers(options, classic, core, rest, scheme in STATIC)
    _sort(classic, core, parse_params(query))
    _sort(classic, core, parse_params(classic.nested))
    _apply(classic, options)
    set_options(options, core)
    _set_priority(classic, options)
    if group is not None:
        # The import is local: only such a URL needs a finder.
        from atalanta.client.discovery.classic_multicast import ClassicFinder

        options.finder = ClassicFinder(group, options, Server)


def _read_servers(
    options: ClientOptions, classic: ClassicOptions, core: dict[str, str], text: str, agent: bool
) -> str:
    """Reads `(a,b)?query` or `a,b`. Returns the query, of an `agent` in the words of a FailoverTransport."""
    text = text.strip()
    members, query = split_composite(text)
    if not text.removeprefix("//").startswith("("):
        parts = members[0].split(",")
        members = parts if all("://" in each for each in parts) else members
        if len(members) > MEMBERS_MAX:
            raise UriError(f"more than {MEMBERS_MAX} addresses in one list")
    encrypted: set[bool] = set()
    for each in members:
        uri = parse_uri(each, SCHEMES)
        add_server(options, uri)
        encrypted.add(uri.scheme in TLS_SCHEMES)
        _sort(classic, core, uri.params)
    if len(encrypted) > 1:
        raise UriError(f"'{text}': tcp:// and ssl:// in one list; all servers are dialled with TLS, or none")
    if True in encrypted:
        core.setdefault("sslEnabled", "true")
    if not agent:
        return query
    classic.initial_delay_ms = STATIC_DELAY_MS
    _sort(classic, core, _of_agent(parse_params(query)))
    return ""


def _read_agent(
    options: ClientOptions, classic: ClassicOptions, core: dict[str, str], text: str
) -> MulticastGroup | None:
    """Reads the agent of `discovery:`, which names the servers, or the group in which they are found."""
    scheme, _, rest = text.partition(":")
    if scheme in STATIC or scheme == MASTERSLAVE:
        _read_servers(options, classic, core, rest, True)
        classic.randomize = scheme != MASTERSLAVE
        return None
    if scheme in REFUSED_AGENTS:
        raise UriError(
            f"discovery: the agent {scheme}: is not built; write failover:(tcp://HOST:PORT,…), or multicast://GROUP"
        )
    if scheme != MULTICAST:
        raise UriError(f"discovery: '{text}' is no agent; write (multicast://GROUP) or (static:(…))")
    group = parse_group(text)
    params = parse_params(text.partition("?")[2])
    _sort(classic, core, _of_agent({name: params[name] for name in params if name in CLASSIC_READERS}))
    return group


def _of_agent(params: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of an agent: its maxReconnectAttempts=0 means any number."""
    attempts = "maxReconnectAttempts"
    return {name: str(FOREVER) if name == attempts and text == "0" else text for name, text in params.items()}


def _sort(classic: ClassicOptions, core: dict[str, str], params: Mapping[str, str]) -> None:
    """Reads Classic's options, and puts those of this client into `core`."""
    for given, value in params.items():
        name = given
        for prefix in FOR_SERVERS:
            name = name.removeprefix(prefix)
        name = JMS.get(name, name)
        if name == "connectionTimeout":
            name = "connect-timeout-millis"
        why = refusal(name, value, CLASSIC_REFUSED)
        if why:
            raise UriError(why)
        if name in CLASSIC_READERS:
            field, read = CLASSIC_READERS[name]
            set_option(classic, field, read, name, value)
        elif why is None and name not in CLASSIC_ACCEPTED:
            core[name] = value


def _apply(classic: ClassicOptions, options: ClientOptions) -> None:
    """Translates Classic's options into those of this client."""
    options.reconnect_attempts = classic.attempts
    first = classic.attempts if classic.startup_attempts == FOREVER else classic.startup_attempts
    options.initial_connect_attempts = first if first == FOREVER else max(1, first)
    options.retry_interval_ms = classic.initial_delay_ms
    options.retry_interval_multiplier = classic.growth if classic.exponential else 1.0
    options.max_retry_interval_ms = classic.delay_max_ms
    options.call_failover_timeout_ms = classic.timeout_ms or FOREVER
    options.limits_first_login = True
    options.warn_attempts = max(0, classic.warn_attempts)
    options.use_topology_for_load_balancing = classic.updates
    options.shuffled = classic.randomize
    options.balancing = RoundRobin() if classic.randomize else FirstElement()


def _set_priority(classic: ClassicOptions, options: ClientOptions) -> None:
    """Sets the servers of priorityBackup: those of priorityURIs, or the first of the list."""
    if not classic.priority_backup:
        return
    if options.stay or not options.servers:
        raise UriError("option priorityBackup: needs a list of servers, and not stay=true")
    for text in classic.priority_uris.split(",") if classic.priority_uris else []:
        uri = parse_uri(text, SCHEMES)
        server = Server(uri.host, DEFAULT_PORT if uri.port is None else uri.port)
        if server not in options.servers:
            raise UriError(f"option priorityURIs: {server} is none of the servers of the list")
        options.priority.append(server)
    options.priority = options.priority or options.servers[:1]
