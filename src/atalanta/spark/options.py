"""The options of the Spark source and sink, named after those of Spark's Kafka source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from atalanta.message import dataclass
from atalanta.message.encoding import all_digits
from atalanta.spark.errors import OptionError
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.gateway.node_servers import ALTERNATIVES
from atalanta.spark.kafka_names import kafka_option

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
# The log view of our nodes, or a write-ahead folder (spark/wal).
LOG_MODE: Final = "log"
WAL_MODE: Final = "wal"
# The values of earliest and latest in JSON, as in Kafka's source.
EARLIEST_SEQUENCE: Final = -2
LATEST_SEQUENCE: Final = -1

# Names of Artemis' URLs (wire/tls_config.py). The files are read on every machine that runs a task.
TLS: Final = (
    "sslEnabled", "trustStorePath", "trustStorePassword", "trustStoreType", "keyStorePath",
    "keyStorePassword", "keyStoreType", "keyStoreAlias", "crlPath", "verifyHost", "trustAll", "sniHost",
    "enabledProtocols", "enabledCipherSuites", "useDefaultSslContext",
)  # fmt: skip
READ: Final = (
    *TLS,
    "servers", "address", "queue", "group", "user", "password", "passwordFile", "startingOffsets",
    "startingTimestamp", "endingOffsets", "endingTimestamp", "maxOffsetsPerTrigger", "maxBytesPerTrigger",
    "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "selector",
    "failOnDataLoss", "unreachable", "nodeTimeout", "removedNodes",
    "includeHeaders", "columns", "leaseTimeout", "positionCache", "requestTimeout", "skipped",
    "maxBodyBytes", "undecodable", "includeExpired", "queuePattern", "removedQueues", "propertyTypes",
    "sourceMode", "walLocation", "retention",
)  # fmt: skip
WRITE: Final = (
    *TLS,
    "servers", "address", "routing", "user", "password", "passwordFile", "nodeTimeout",
    "requestTimeout", "blockTimeout", "propertyColumns", "keyColumns", "durable", "priority", "checkpointLocation",
    "queryName",
)  # fmt: skip
# Reserved properties of SQL tables (Spark's TableCatalog), which the source gets with its options.
TABLE: Final = (
    "provider", "path", "owner", "comment", "collation", "location", "external", "is_managed_location",
)  # fmt: skip
MAX_TRIGGER_DELAY_S: Final = 900.0  # as of Kafka's source

# The remedy where no option was given at all, as for a table of CREATE TABLE … USING atalanta.
OPTIONS_OF_A_TABLE: Final = (
    ". Spark does not give a Python source the options of a table: name them in the statement, "
    "SELECT … FROM orders WITH (servers = 'a:61616', queue = 'orders'), or with "
    'spark.read.options(…).table("orders")'
)

CONNECT_TIMEOUT_S: Final = 5.0
BLOCK_TIMEOUT_S: Final = 120.0  # a node rolls a branch back that is not prepared after 300 s
MAX_BODY_BYTES: Final = 256 << 20
# The values of `undecodable`.
ERROR: Final = "error"
FAIL: Final = "fail"
DEAD_LETTER: Final = "dead-letter"

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES: Final = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20,
                 "g": 1 << 30, "gb": 1 << 30}  # fmt: skip
# Of the option retention.
NONE: Final = "none"
UNITS_MS: Final = {"s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
SIZES: Final = {"mb": 1 << 20, "mib": 1 << 20, "gb": 1 << 30, "gib": 1 << 30, "tb": 1 << 40, "tib": 1 << 40}


@dataclass(frozen=True)
class Start:
    """The start (or end) of a read: `default` applies to nodes that `sequences` does not name.

    `sequences`: node id or host:port -> sequence, or one of the two above.
    """

    default: str = EARLIEST
    sequences: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Times:
    """The times (ms since the epoch) of a start or end: `default` is for nodes that `nodes` does not name.

    `nodes`: node id or host:port -> time. A node without any begins or ends as without the option.
    """

    default_ms: int | None = None
    nodes: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.default_ms is not None or bool(self.nodes)


@dataclass(frozen=True)
class LoginOptions:
    """The common options of reading and writing."""

    servers: tuple[str, ...]  # of all nodes
    user: str | None
    password: str | None = field(repr=False)
    password_file: str | None
    node_timeout_s: float
    request_timeout_s: float
    tls: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # name and value, as given
    groups: tuple[tuple[str, ...], ...] = ()  # servers of one node: the members of a pair or group
    block_timeout_s: float = BLOCK_TIMEOUT_S  # of the sink

    def quick_credentials(self) -> Credentials:
        """Returns the credentials of a connection that is tried again soon if the node is away."""
        return self.credentials(min(CONNECT_TIMEOUT_S, self.request_timeout_s))

    def credentials(self, connect_timeout_s: float) -> Credentials:
        return Credentials(
            self.user,
            self.secret(),
            connect_timeout_s,
            self.request_timeout_s,
            self.tls,
            block_timeout_s=self.block_timeout_s,
        )

    def secret(self) -> str | None:
        """Returns the password. A password file is read on demand, on every machine that runs a task."""
        if self.password_file is None:
            return self.password
        try:
            return Path(self.password_file).read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise OptionError(f"option passwordFile: {error}") from error


@dataclass(frozen=True)
class ReadOptions:
    """The options of the source. A limit of None is no limit. `queue` is "queue" or "address::queue"."""

    login: LoginOptions
    queue: str
    group: str
    starting: Start
    starting_times: Times
    discard_skipped: bool
    ending: Start
    max_messages: int | None
    max_bytes: int | None
    min_partitions: int
    selector: str | None
    fail_on_data_loss: bool
    wait_unreachable: bool
    removed_nodes: frozenset[str]
    include_headers: bool
    columns: tuple[str, ...]
    lease_timeout_s: float
    position_cache_s: float
    max_body_bytes: int = MAX_BODY_BYTES
    undecodable: str | None = None  # ERROR, FAIL or DEAD_LETTER
    typed_properties: bool = False
    source_mode: str | None = None  # LOG_MODE or WAL_MODE; None: as the nodes need it
    wal_location: str | None = None
    # Several queues: their names, or a pattern for names; `queue` is then a text for people.
    queues: tuple[str, ...] = ()
    queue_pattern: str | None = None
    removed_queues: frozenset[str] = frozenset()
    ending_times: Times = Times()
    min_messages: int | None = None  # of a batch, unless a message waits for max_delay_s
    max_delay_s: float = MAX_TRIGGER_DELAY_S
    max_partition_messages: int | None = None
    include_expired: bool = False
    retention: tuple[int, int] | None = None  # ms and bytes, 0 is no such limit; None: as the queue has it

    def receiving_credentials(self) -> Credentials:
        """Returns the credentials of a connection that receives messages: no larger body is kept in memory."""
        return replace(self.login.quick_credentials(), body_bytes_max=self.max_body_bytes)

    @property
    def several(self) -> bool:
        return bool(self.queues) or self.queue_pattern is not None


@dataclass(frozen=True)
class WriteOptions:
    """The options of the sink. Rows override the defaults; `property_columns` "*" means all other columns.

    `key_columns`: the key of a row in a last-value queue (see write/rows.py).
    """

    login: LoginOptions
    address: str | None
    routing: str | None
    durable: bool
    priority: int
    property_columns: tuple[str, ...]
    key_columns: tuple[str, ...]


class Values:
    """The given options, whose names ignore case. Every error names the option.

    A SQL table has the options of both directions; those of `other` alone are dropped.
    """

    def __init__(
        self, given: Mapping[str, str], known: tuple[str, ...], other: tuple[str, ...]
    ) -> None:
        self.given = {str(name).lower(): str(value) for name, value in given.items()}
        if "provider" in self.given:
            ignored = {name.lower() for name in (*other, *TABLE)} - {name.lower() for name in known}
            # Spark gives the options of a table with this prefix, also if it has just given them without it.
            plain = {name.removeprefix("option."): text for name, text in self.given.items()}
            self.given = {name: text for name, text in plain.items() if name not in ignored}
        by_lower = {name.lower(): name for name in known}
        for name in self.given:
            if name not in by_lower:
                raise OptionError(unknown(name, by_lower))

    def remedy_of_a_table(self) -> str:
        """Returns what to do if no option was given, which is what Spark does with a SQL table."""
        return "" if self.given else OPTIONS_OF_A_TABLE

    def text(self, name: str) -> str | None:
        value = self.given.get(name.lower())
        return None if value is None or value.strip() == "" else value.strip()

    def number(self, name: str, least: int) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            raise OptionError(f"option {name}: {text!r} is not a whole number") from None
        if value < least:
            raise OptionError(f"option {name}: {value} is less than {least}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        text = (self.text(name) or str(default)).lower()
        if text not in {"true", "false"}:
            raise OptionError(f"option {name}: {text!r} must be true or false")
        return text == "true"

    def choice(self, name: str, default: str | None, choices: tuple[str, ...]) -> str | None:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in choices:
            raise OptionError(f"option {name}: {text!r} is not one of {', '.join(choices)}")
        return text.lower()

    def duration_s(self, name: str, default_s: float) -> float:
        """Returns a duration in seconds: a number, or a number with a unit: 500ms, 120s, 2m, 1h."""
        text = self.text(name)
        if text is None:
            return default_s
        digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
        unit = text[len(digits) :].strip().lower() or "s"
        try:
            value = float(digits) * _UNITS_S[unit]
        except (ValueError, KeyError):
            raise OptionError(
                f"option {name}: {text!r} is not a duration such as 500ms, 120s or 2m"
            ) from None
        if not 0 <= value < 1e9:
            raise OptionError(f"option {name}: {text!r} is out of range")
        return value

    def size(self, name: str) -> int | None:
        """Returns a number of bytes; the text may have a unit: 64k, 10m, 1g."""
        text = self.text(name)
        if text is None:
            return None
        digits = text.rstrip("bkmgBKMG ")
        unit = text[len(digits) :].strip().lower()
        if not all_digits(digits, 18) or unit not in _SIZES or int(digits) == 0:
            raise OptionError(f"option {name}: {text!r} is not a size such as 500000, 64k or 10m")
        return int(digits) * _SIZES[unit]

    def names(self, name: str) -> tuple[str, ...]:
        """Returns a comma separated list."""
        return tuple(part.strip() for part in (self.text(name) or "").split(",") if part.strip())

    def start(self, name: str, default: str) -> Start:
        """Parses earliest, latest, or JSON {"node id or host:port": sequence}."""
        text = self.text(name)
        if text is None:
            return Start(default)
        if text.lower() in {EARLIEST, LATEST}:
            return Start(text.lower())
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            raise OptionError(
                f"option {name}: {text!r} is neither earliest nor latest nor JSON"
            ) from None
        if isinstance(value, dict) and isinstance(value.get("nodes"), dict):
            value = {
                node: entry.get("sequence") if isinstance(entry, dict) else entry
                for node, entry in value["nodes"].items()
            }
        if not isinstance(value, dict) or not all(
            isinstance(sequence, int) and sequence >= EARLIEST_SEQUENCE
            for sequence in value.values()
        ):
            raise OptionError(
                f'option {name}: JSON must be {{"node id or host:port": sequence, …}}, '
                "with -2 for earliest and -1 for latest"
            )
        return Start(default, value)

    def times(self, name: str) -> Times:
        """Parses ms since the epoch, or JSON {"node id or host:port": ms}."""
        text = self.text(name)
        if text is None:
            return Times()
        if not text.startswith("{"):
            return Times(self.number(name, 0))
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not all(type(time) is int and time >= 0 for time in value.values()):
            raise OptionError(
                f'option {name}: JSON must be {{"node id or host:port": milliseconds since the epoch, …}}'
            )
        return Times(None, value)


def unknown(name: str, by_lower: Mapping[str, str]) -> str:
    """Returns the error text for an unknown option, with the most similar name."""
    kafka = kafka_option(name)
    if kafka is not None:
        return f"unknown option {name}: {kafka}"
    import difflib  # only for an error

    near = difflib.get_close_matches(name, by_lower, n=1, cutoff=0.5)
    hint = f": did you mean {by_lower[near[0]]}?" if near else ""
    return f"unknown option {name}{hint} (known: {', '.join(sorted(by_lower.values()))})"


def groups_of(values: Values) -> tuple[tuple[str, ...], ...]:
    """Returns host:port of each node's members, in the given order, without repeats; a URL may add parameters."""
    seen: set[str] = set()
    groups: list[tuple[str, ...]] = []
    for text in values.names("servers"):
        members = [each.strip() for each in text.split(ALTERNATIVES)]
        new = tuple(each for each in dict.fromkeys(members) if each not in seen)
        if "" in members or (len(members) > 1 and len(new) < len(members)):
            raise OptionError(
                f"option servers: {text!r} is not a list of different servers of one node, such as a:61616|b:61616"
            )
        seen.update(new)
        groups += [new] if new else []
    servers = [each for group in groups for each in group]
    if not servers:
        raise OptionError(
            "option servers is missing: host:port of the nodes, comma separated "
            '(such as "a:61616,b:61616"; the members of a pair or group are one node: "a:61616|b:61616")'
            + values.remedy_of_a_table()
        )
    for server in servers:
        host, _, port = server.split("://")[-1].split("?")[0].rpartition(":")
        if not host or not all_digits(port, 5) or not 0 < int(port) < 65536:
            raise OptionError(f"option servers: {server!r} is not host:port")
    return tuple(groups)


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Parses the source's options. OptionError names an unknown, missing or invalid option."""
    values = Values(given, READ, WRITE)
    names = queues_of(values)
    pattern = values.text("queuePattern")
    removed = frozenset(values.names("removedQueues"))
    several = pattern is not None or len(names) > 1 or bool(removed)
    if several and any(values.start(one, EARLIEST).sequences for one in ("startingOffsets", "endingOffsets")):
        raise OptionError("startingOffsets and endingOffsets with sequences are for one queue, not for several")
    for offsets, timestamp in (("startingOffsets", "startingTimestamp"), ("endingOffsets", "endingTimestamp")):
        if values.text(offsets) is not None and values.text(timestamp) is not None:
            raise OptionError(f"options {offsets} and {timestamp} exclude each other")
    least, most = values.number("minOffsetsPerTrigger", 1), values.number("maxOffsetsPerTrigger", 1)
    if least is not None and most is not None and least > most:
        raise OptionError(f"option minOffsetsPerTrigger: {least} is more than maxOffsetsPerTrigger ({most})")
    if least is None and values.text("maxTriggerDelay") is not None:
        raise OptionError("option maxTriggerDelay needs minOffsetsPerTrigger: without it no batch waits")
    login = login_options(values)
    lease_timeout_s = max(1.0, values.duration_s("leaseTimeout", 300.0))
    if lease_timeout_s < login.request_timeout_s:
        raise OptionError(
            f"option leaseTimeout: {lease_timeout_s:g} s is less than requestTimeout "
            f"({login.request_timeout_s:g} s): the lease could end during one request that renews it"
        )
    return ReadOptions(
        login=login,
        queue=pattern or ", ".join(names),
        group=values.text("group") or "spark",
        starting=values.start("startingOffsets", EARLIEST),
        starting_times=values.times("startingTimestamp"),
        ending_times=values.times("endingTimestamp"),
        discard_skipped=values.choice("skipped", None, ("discard",)) is not None,
        ending=values.start("endingOffsets", LATEST),
        max_messages=most,
        min_messages=least,
        max_delay_s=values.duration_s("maxTriggerDelay", MAX_TRIGGER_DELAY_S),
        max_partition_messages=values.number("maxRecordsPerPartition", 1),
        include_expired=values.flag("includeExpired", False),
        max_bytes=values.size("maxBytesPerTrigger"),
        min_partitions=values.number("minPartitions", 1) or 1,
        selector=values.text("selector"),
        fail_on_data_loss=values.flag("failOnDataLoss", True),
        wait_unreachable=values.choice("unreachable", "wait", ("wait", "fail")) == "wait",
        removed_nodes=frozenset(values.names("removedNodes")),
        include_headers=values.flag("includeHeaders", True),
        columns=values.names("columns"),
        lease_timeout_s=lease_timeout_s,
        position_cache_s=values.duration_s("positionCache", 0.05),
        max_body_bytes=values.size("maxBodyBytes") or MAX_BODY_BYTES,
        undecodable=values.choice("undecodable", None, (ERROR, FAIL, DEAD_LETTER)),
        typed_properties=values.choice("propertyTypes", "text", ("text", "typed")) == "typed",
        queues=names if several else (),
        queue_pattern=pattern,
        removed_queues=removed,
        source_mode=values.choice("sourceMode", None, (LOG_MODE, WAL_MODE)),
        wal_location=values.text("walLocation"),
        retention=parse_retention(values.text("retention")),
    )


def queues_of(values: Values) -> tuple[str, ...]:
    """Returns the queues to read, each as "queue" or "address::queue"; none with queuePattern."""
    address, names = values.text("address"), values.names("queue")
    if values.text("queuePattern") is not None:
        if names or address is not None:
            raise OptionError("option queuePattern excludes queue and address: it names the queues")
        return ()
    if not names and address is None:
        raise OptionError(
            "option queue is missing: the queue to read (or address::queue)" + values.remedy_of_a_table()
        )
    if not names:
        return (str(address),)
    bare = [name.rpartition("::")[2] for name in names]
    twice = sorted({name for name in bare if bare.count(name) > 1})
    if twice:
        raise OptionError(f"option queue: {', '.join(twice)} is named more than once")
    return tuple(
        name if address is None or "::" in name else f"{address}::{name}" for name in names
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parses the sink's options. OptionError names an unknown, missing or invalid option."""
    values = Values(given, WRITE, READ)
    priority = values.number("priority", 0)
    if priority is not None and priority > 9:
        raise OptionError(f"option priority: {priority} is more than 9")
    return WriteOptions(
        login=login_options(values),
        address=values.text("address"),
        routing=values.choice("routing", None, ("anycast", "multicast")),
        durable=values.flag("durable", True),
        priority=4 if priority is None else priority,
        property_columns=values.names("propertyColumns"),
        key_columns=values.names("keyColumns"),
    )


def login_options(values: Values) -> LoginOptions:
    """Parses the login's options. OptionError names an invalid option."""
    if values.text("password") is not None and values.text("passwordFile") is not None:
        raise OptionError("options password and passwordFile exclude each other")
    groups = groups_of(values)
    return LoginOptions(
        servers=tuple(each for group in groups for each in group),
        groups=groups,
        user=values.text("user"),
        password=values.given.get("password"),
        password_file=values.text("passwordFile"),
        node_timeout_s=values.duration_s("nodeTimeout", 120.0),
        request_timeout_s=max(0.1, values.duration_s("requestTimeout", 30.0)),
        tls=tls_options(values),
        block_timeout_s=values.duration_s("blockTimeout", BLOCK_TIMEOUT_S),
    )


def tls_options(values: Values) -> tuple[tuple[str, str], ...]:
    """Returns the given TLS options. Raises OptionError if sslEnabled is not true: data would not be encrypted."""
    given = [(name, values.given[name.lower()]) for name in TLS if name.lower() in values.given]
    if not values.flag("sslEnabled", False):
        for name, _ in given:
            if name != "sslEnabled":
                raise OptionError(f"option {name} needs sslEnabled=true")
        return ()
    for name in ("verifyHost", "trustAll", "useDefaultSslContext"):
        values.flag(name, False)
    return tuple(given)


def parse_retention(text: str | None) -> tuple[int, int] | None:
    """Returns (ms, bytes), 0 for no such limit; None without a text. OptionError for anything else than time and size.
    """
    if text is None:
        return None
    limits = [0, 0]
    for part in [] if text.lower() == NONE else text.lower().split(","):
        digits = part.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = part.strip()[len(digits) :].strip()
        place = 0 if unit in UNITS_MS else 1
        factor = UNITS_MS.get(unit) or SIZES.get(unit)
        if factor is None or not all_digits(digits, 6) or int(digits) == 0 or limits[place] != 0:
            raise OptionError(
                f"option retention: {text!r} is not a time (7d, 12h, 30min), a size (500mb, 10gb), "
                "both (7d,10gb), or none"
            )
        limits[place] = int(digits) * factor
    return limits[0], limits[1]
