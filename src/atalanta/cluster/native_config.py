"""Atalanta's own settings that broker.xml cannot hold: `atalanta.toml` beside it, one key for each option.

A real Artemis does not read this file, so the same broker.xml still starts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.kernel.option import OptionGroup, option


@dataclass(eq=False, repr=False)
class OwnSettings(OptionGroup):
    """Settings of `atalanta.toml`. The defaults are those of a node without this file."""

    alone: bool = option(
        False,
        "alone",
        "there are no other brokers, though this activemq.xml says so in a way that is not known here: it starts",
    )
    configuration_changes: bool = option(
        False,
        "configuration-changes",
        "management may change groups, cluster connections, bridges, acceptors, connectors, diverts, routers, networks"
        " and settings in the files of this node; `atalanta create` allows it",
    )
    zone: str | None = option(
        None, "zone", "the location of this node; members of the same zone are preferred"
    )
    zone_stability_ms: int = option(
        30_000,
        "zone-stability-time",
        "how long a zone that was away has members again before its clients are sent back; and up to a quarter more",
        unit="ms",
        minimum=0,
    )
    rebalance: bool = option(
        True, "rebalance", "redirect clients to members with fewer clients, while they are idle"
    )
    rebalance_any_client: bool = option(
        False,
        "rebalance-any-client",
        "also redirect clients that have not reconnected before: true if all clients are configured to reconnect",
    )
    rebalance_across_zones: bool = option(
        True, "rebalance-across-zones", "clients may leave their zone if it has too many as a whole"
    )
    rebalance_tolerance_percent: int = option(
        10,
        "rebalance-tolerance",
        "percent above the mean that a member may have",
        unit="count",
        minimum=0,
        maximum=1_000,
    )
    rebalance_rate: int = option(
        5,
        "rebalance-rate",
        "clients that a node redirects each second",
        unit="count",
        minimum=1,
        maximum=10_000,
    )
    rebalance_settle_ms: int = option(
        5_000,
        "rebalance-settle-time",
        "time without redirects after a member came or went",
        unit="ms",
        minimum=0,
    )
    rebalance_patience_ms: int = option(
        3_000,
        "rebalance-patience",
        "how long a client that is to be redirected gets no messages; it stays if it is not idle by then",
        unit="ms",
        minimum=0,
        maximum=60_000,
    )
    dns_discovery: str | None = option(
        None,
        "dns-discovery",
        "names whose addresses are members, with commas: tcp://headless-service:61616 (A, AAAA) or"
        " srv://_core._tcp.headless-service (SRV); for the first cluster connection, or a table of them by the"
        " names of cluster connections",
    )
    dns_by_cluster: dict[str, str] = field(default_factory=dict)  # dns-discovery as a table
    cluster_plain_password: bool = option(
        False,
        "cluster-plain-password",
        "send the cluster-password in plain text also to real Artemis nodes that discovery finds (any host can send"
        " such an announcement); static connectors, and nodes that have logged in here, need no permission",
    )
    cluster_remember_logins: bool = option(
        True,
        "cluster-remember-logins",
        "a real Artemis that discovery finds gets the cluster-password in plain text also after a restart of this node,"
        " for 30 days since it has logged in here with it, at the same address; false: it has to log in here first",
    )
    dns_discovery_period_ms: int = option(
        10_000,
        "dns-discovery-period",
        "period of the lookup of these names",
        unit="ms",
        minimum=100,
    )
    jgroups_version: str | None = option(
        None,
        "jgroups-version",
        "JGroups stacks: the version of JGroups of the real members, as 5.3 or 3.6, for the first word to them; without"
        " it a node listens for 3 s before it speaks by UDP, and tries the likeliest versions by TCP. What they send"
        " tells it from then on",
    )
    parked_message_timeout_ms: int = option(
        10_000,
        "parked-message-timeout",
        "absence of a member after which messages parked for it go to consumers elsewhere; -1 never",
        unit="ms",
        minimum=-1,
    )
    scale_down_timeout_ms: int = option(
        600_000,
        "scale-down-timeout",
        "how long a node may take to give its messages to another when it leaves",
        unit="ms",
        minimum=1,
    )
    scale_down_reader_timeout_ms: int = option(
        120_000,
        "scale-down-reader-timeout",
        "how long a leaving node waits for readers of the log (Spark) to acknowledge what they were shown",
        unit="ms",
        minimum=0,
    )
    scale_down_full_timeout_ms: int = option(
        120_000,
        "scale-down-full-timeout",
        "how long a leaving node waits for room at full addresses of its target while nothing more is taken; then their"
        " messages stay",
        unit="ms",
        minimum=1_000,
    )
    producer_window_bytes: int = option(
        1 << 20,
        "producer-window",
        "bytes that a client with Artemis' usual producerWindowSize (64 KiB) may have on their way while memory is far"
        " from full; 64K: no more than it asks for",
        unit="bytes",
        minimum=64 << 10,
        maximum=1 << 30,
    )
    unfinished_messages_bytes: int = option(
        256 << 20,
        "unfinished-messages-max",
        "memory of one user's messages that have arrived in part or wait for room, over all of its connections and"
        " protocols; above it they are completed one after the other",
        unit="bytes",
        minimum=1 << 20,
    )
    commits_in_loop: bool = option(
        True,
        "commits-in-loop",
        "short commits of a fast disk are done by the node's own thread; false where a disk may hang (over a network):"
        " a hanging commit then never holds up connections, and a durable message costs more",
    )
    scale_down_resume: bool = option(
        True,
        "scale-down-resume",
        "a node that crashed while it left goes on leaving when it is started; false: it serves clients again, and what"
        " was under way may be at both nodes",
    )
    bridges: dict[str, OwnBridge] = field(default_factory=dict)  # tables [bridges.NAME]
    zones: dict[str, OwnZone] = field(default_factory=dict)  # tables [zones.NAME], in the order of the file
    console: OwnConsole | None = None  # the table [console]

    def dns_texts(self) -> list[str]:
        """Returns the values of dns-discovery of all cluster connections."""
        first = [] if self.dns_discovery is None else [self.dns_discovery]
        return [*first, *self.dns_by_cluster.values()]

    def dns_text(self, name: str, number: int) -> str | None:
        """Returns dns-discovery of the cluster connection `name`, the `number`-th of the node; None if not set."""
        text = self.dns_by_cluster.get(name)
        return self.dns_discovery if text is None and number == 0 else text


@dataclass(eq=False, repr=False)
class OwnBridge(OptionGroup):
    """Settings of a bridge that broker.xml cannot hold: table `[bridges.NAME]` of atalanta.toml."""

    address_prefix: str = option("", "address-prefix", "put before the forwarding address")
    address_suffix: str = option("", "address-suffix", "put behind it")
    transformer: str | None = option(
        None,
        "transformer",
        "`module:function`, called with a copy of each message, instead of the transformer in broker.xml; modules are"
        " looked for beside broker.xml first",
    )


@dataclass(eq=False, repr=False)
class OwnZone(OptionGroup):
    """The clients and members of a zone: table `[zones.NAME]` of atalanta.toml. Each value is a list with commas."""

    client_ids: str = option("", "client-ids", "client ids of its clients; `*` is any text")
    users: str = option("", "users", "users of its clients")
    networks: str = option("", "networks", "addresses of its clients: 10.1.0.0/16, 2001:db8::/32")
    fallback: str = option("", "fallback", "zones for its clients while it is away, the first that has members")
    members: str = option("", "members", "host:port of real Artemis members in it, as their connectors announce them")


@dataclass(eq=False, repr=False)
class OwnConsole(OptionGroup):
    """The console that is started beside the node: table `[console]` of atalanta.toml."""

    listen: str = option("127.0.0.1:8161", "listen", "where browsers find it")
    nodes: str = option(
        "", "nodes", "host:port or URLs of the nodes that it asks, with commas; without it this node, and those of its"
        " static connectors",
    )  # fmt: skip
    path: str = option("", "path", "the path below which a reverse proxy serves it")
    origin: str = option("", "origin", "addresses that browsers have for it behind a reverse proxy, with commas")
    tls_certificate: str = option("", "tls-certificate", "TLS: the certificate and those above it, in PEM form")
    tls_key: str = option("", "tls-key", "TLS: the certificate's key, in PEM form")
    plain: bool = option(False, "plain", "no TLS though it listens on other addresses than those of this machine")
    read_only: bool = option(False, "read-only", "nothing can be changed, whoever logs in")


def names_of(text: str) -> tuple[str, ...]:
    """Returns the names in a list with commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))
