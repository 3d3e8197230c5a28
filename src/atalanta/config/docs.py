"""Prints docs/reference/config.md from the descriptions beside the code.

    python -m atalanta.config.docs > docs/reference/config.md
"""

from __future__ import annotations

import sys
from dataclasses import Field, fields
from typing import Any, Final

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    DiscoveryGroupConfig,
    ScaleDownConfig,
)
from atalanta.cluster.connection_routers.config import CacheConfig, PoolConfig, RouterConfig
from atalanta.cluster.core_bridges.config import CoreBridgeConfig
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.native_config import OwnBridge, OwnConsole, OwnSettings, OwnZone
from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkRetry
from atalanta.config.sections import known_elements
from atalanta.ha.manager_config import (
    EtcdManagerConfig,
    FileManagerConfig,
    QuorumManagerConfig,
    ZooKeeperManagerConfig,
)
from atalanta.ha.policy import HaPolicy
from atalanta.ha.policy_elements import (
    ColocationConfig,
    ReplicationBackup,
    ReplicationPrimary,
    SharedStoreBackup,
    SharedStorePrimary,
)
from atalanta.kernel.routing.divert_config import ADD_HEADERS, DivertConfig
from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.security.resource_limits import ResourceLimit
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.kernel.settings.broker_config import BrokerConfig, QueueConfig
from atalanta.kernel.settings.repository import AddressSettings
from atalanta.kernel.unseen_options import FixedValue
from atalanta.runtime.network_check.config import NetworkCheckConfig
from atalanta.store.config import JournalOptions
from atalanta.wire.endpoint import CONNECTOR_LOST, REFUSED, UNUSED, AcceptorConfig, ConnectorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.tls_config import TLS_REFUSED, TlsConfig

SECTIONS: Final[tuple[tuple[str, str, type[Any]], ...]] = (
    ("`<core>`: the broker", "Elements directly below `<core>`.", BrokerConfig),
    ("`<core>`: the journal", "Elements directly below `<core>`.", JournalOptions),
    (
        "`<core>`: the check of the network",
        "Elements directly below `<core>`; see [network check](../guide/network-check.md).",
        NetworkCheckConfig,
    ),
    ("`<acceptor>`", "Parameters of `tcp://host:port?key=value;key=value`.", AcceptorConfig),
    ("`<acceptor>` for STOMP", "Parameters as above.", StompAcceptor),
    ("`<acceptor>` for OpenWire", "Parameters as above.", OpenWireAcceptor),
    ("`<connector>`", "Parameters of `tcp://host:port?key=value;key=value`.", ConnectorConfig),
    (
        "TLS of `<acceptor>` and `<connector>`",
        "Parameters as above; the client's URL takes those of a connector. Relative paths lie below"
        " `etc`, the instance folder or the working folder. What a connector says of its own key"
        " store is not announced to clients and peers; everything else is.",
        TlsConfig,
    ),
    (
        "`<broadcast-group>`",
        "With `<connector-ref>` for every connector that is announced.",
        BroadcastGroupConfig,
    ),
    ("`<discovery-group>`", "", DiscoveryGroupConfig),
    (
        "`<cluster-connection>`",
        "With either `<static-connectors>` or `<discovery-group-ref discovery-group-name=…/>`;"
        " also as"
        ' `<cluster-connection-uri name=… address="static://(connector,connector)?maxHops=1"/>`.',
        ClusterConnectionConfig,
    ),
    (
        "`<grouping-handler name=…>`",
        "One on each node: groups of messages stay together across the cluster"
        " ([message groups](../guide/message-groups.md)).",
        GroupingHandlerConfig,
    ),
    (
        "`<ha-policy><shared-store><primary>`",
        "Also `<master>`. The node's data folders are those of its backups, on a file system that all of them have.",
        SharedStorePrimary,
    ),
    (
        "`<ha-policy><shared-store><backup>`",
        "Also `<slave>`. The data folders are those of the primary.",
        SharedStoreBackup,
    ),
    (
        "`<ha-policy><replication><primary>`",
        "Also `<master>`. With `<manager>` or `[ha.manager]`. Without one a node that names one other has its only"
        " voter in its guard, and any other one serves alone."
        " See [high availability](../guide/high-availability.md).",
        ReplicationPrimary,
    ),
    (
        "`<ha-policy><replication><backup>`",
        "Also `<slave>`. With `<manager>` or `[ha.manager]`. Without one a node that names one other asks the voter"
        " beside that one, and any other one does not start.",
        ReplicationBackup,
    ),
    (
        "`<colocated>`",
        "Below `<shared-store>` or `<replication>`, with `<primary>`, `<backup>` (that of the hosted backups) and"
        " `<excludes>` of `<connector-ref>` (replication). See"
        " [high availability](../guide/high-availability.md#colocated-backups).",
        ColocationConfig,
    ),
    (
        "`<scale-down>`",
        "Below `<ha-policy><primary-only>` (or `<live-only>`), with `<connectors>` of `<connector-ref>` or"
        ' `<discovery-group-ref discovery-group-name=…/>`; else any member is the target. See'
        " [scale-down](../guide/scale-down.md).",
        ScaleDownConfig,
    ),
    (
        "`<connection-router name=…>`",
        "Below `<connection-routers>`; used by acceptors with `router=`. With `<policy name=…>` (CONSISTENT_HASH,"
        " CONSISTENT_HASH_MODULO with `<property key=\"MODULO\" value=…/>`, FIRST_ELEMENT, LEAST_CONNECTIONS,"
        " ROUND_ROBIN), `<pool>` and `<cache>` ([connection routers](../guide/connection-routers.md)).",
        RouterConfig,
    ),
    (
        "`<pool>` of a connection-router",
        "With one of `<cluster-connection>`, `<discovery-group-ref discovery-group-name=…/>` and"
        " `<static-connectors>`.",
        PoolConfig,
    ),
    ("`<cache>` of a connection-router", "", CacheConfig),
    (
        "`<address-setting match=…>`",
        "All matches of an address are merged: for each element the most specific one that has it.",
        AddressSettings,
    ),
    ("`<queue>`", "Below `<anycast>` or `<multicast>` of an `<address>`.", QueueConfig),
    (
        "`<resource-limit-setting match=…>`",
        "Below `<resource-limit-settings>`: what a single user may have at once.",
        ResourceLimit,
    ),
    (
        "`<divert name=…>`",
        'Below `<diverts>`; also `<filter string="…"/>`, and `<transformer>` with the class '
        f"`{ADD_HEADERS}` and its `<property key=… value=…/>`: other classes keep the node from "
        "starting.",
        DivertConfig,
    ),
    (
        "`<bridge name=…>`",
        'Below `<bridges>`; also `<filter string="…"/>`, `<transformer>` with the class '
        f"`{ADD_HEADERS}` and its `<property key=… value=…/>` (or a function named in"
        " `atalanta.toml`), and either `<static-connectors>` or `<discovery-group-ref"
        " discovery-group-name=…/>`.",
        CoreBridgeConfig,
    ),
    ("`[ha]` of `atalanta.toml`", "The high availability of this node.", HaPolicy),
    (
        "`[ha.manager]` with `kind = \"zookeeper\"`",
        "Instead of `<manager>` in `broker.xml`, which is read with the classes CuratorDistributedLockManager"
        " (`zookeeper`) and FileBasedLockManager (`file`). The manager says which node of a replication is active;"
        " all members have the same. Relative paths are below the instance folder.",
        ZooKeeperManagerConfig,
    ),
    ("`[ha.manager]` with `kind = \"file\"`", "", FileManagerConfig),
    ("`[ha.manager]` with `kind = \"etcd\"`", "", EtcdManagerConfig),
    ("`[ha.manager]` with `kind = \"quorum\"`", "", QuorumManagerConfig),
    (
        "`[bridges.NAME]` of `atalanta.toml`",
        "What Atalanta does besides with the messages of that bridge.",
        OwnBridge,
    ),
    (
        "`[networks.NAME]` of `atalanta.toml`",
        "A `<networkConnector>` of ActiveMQ Classic, by its name; also `excludedDestinations`,"
        " `dynamicallyIncludedDestinations`, `staticallyIncludedDestinations` and `durableDestinations`"
        " (`queue://a.>,topic://b`).",
        NetworkConnectorConfig,
    ),
    (
        "The uri of a network",
        "Options behind `static:(…)` and `masterslave:(…)`.",
        NetworkRetry,
    ),
    (
        "`[zones.NAME]` of `atalanta.toml`",
        "The clients of a zone; the first table that matches decides. Each value is a string, a list with commas.",
        OwnZone,
    ),
    (
        "`[console]` of `atalanta.toml`",
        "The [console](../guide/console.md) that is started beside the node, as by `atalanta run --console`. Files are"
        " beside `atalanta.toml`.",
        OwnConsole,
    ),
    (
        "`atalanta.toml`",
        "What only Atalanta has stands in this file beside `broker.xml` (or in `NAME.atalanta.toml` beside `NAME.xml`);"
        " one `name = value` a line. Artemis does not look at it.",
        OwnSettings,
    ),
    (
        "`<wildcard-addresses>`",
        "Also the old `<wild-card-routing-enabled>` below `<core>`.",
        WildcardConfiguration,
    ),
)

HEAD: Final = """# Configuration

Atalanta reads Artemis' `broker.xml` (also WildFly's `standalone.xml` and ActiveMQ Classic's `activemq.xml`:
[migration](../guide/migration.md)). This page is generated from the code
(`python -m atalanta.config.docs`).

- Unknown elements and attributes, and bad values, are errors: the node does not start. All errors
  are reported at once, with file and line.
- Options that Artemis has and Atalanta does not implement are logged at start: one warning (`option_without_effect`)
  that names what a client or an operator misses, one line for those that no client can see. They are marked
  "no effect" below; "named" are those of the warning, for each value but the default. All of them in one table:
  [migration](../guide/migration.md#options-without-effect).
- `${name}` and `${name:default}` are replaced from the environment. `artemis.instance` and
  `artemis.instance.etc` are known, too. A name without a value and without a default is an error.
- Sizes take `K`, `M`, `G` (also `KB`, `KiB` …), all powers of 1024.
- Relative data folders are below the instance folder. This is the parent of `etc/` when the file is
  in a folder of that name, else the file's own folder.
- `<xi:include href="…"/>` takes local files below the folder of the `broker.xml`.
- Users are read from `artemis-users.properties` (`user = password`, or `ENC(…)` as
  `artemis mask --hash` prints it and `atalanta user add` writes it) and `artemis-roles.properties`
  (`role = user1,user2`) beside the `broker.xml`. A `login.config` there may name other files and
  other login modules, a `bootstrap.xml` the security manager ([security](../guide/security.md#login-modules)).
"""


def page() -> str:
    """Returns the text of docs/reference/config.md."""
    parts = [HEAD]
    for title, text, described in SECTIONS:
        parts.append(_section(title, text, described))
    parts.append(_security())
    parts.append(_list("`<core>`: no effect, seen by no client", known_elements.CORE))
    parts.append(_list("`<core>`: no effect, named", {**known_elements.CORE_LOST, **_fixed(known_elements.CORE_FIXED)}))
    unused = {**UNUSED, **StompAcceptor.UNUSED, **OpenWireAcceptor.UNUSED}
    parts.append(_list("Acceptor and connector parameters: no effect, seen by no client", unused))
    named = {**StompAcceptor.LOST, **_fixed(StompAcceptor.FIXED), **_fixed(OpenWireAcceptor.FIXED)}
    parts.append(_list("Acceptor parameters: no effect, named", named))
    parts.append(_list("Connector parameters: no effect, named", CONNECTOR_LOST))
    parts.append(_list("Acceptor and connector parameters: refused when true", REFUSED))
    parts.append(_list("TLS parameters: refused with `sslEnabled=true`", TLS_REFUSED))
    return "\n".join(parts)


def _section(title: str, text: str, described: type[Any]) -> str:
    lines = [f"## {title}", ""]
    if text:
        lines += [text, ""]
    lines += ["| name | default | unit | meaning |", "|---|---|---|---|"]
    entries = [entry for entry in fields(described) if entry.metadata]
    for entry in entries:
        lines.append(_row(entry))
    return "\n".join(lines) + "\n"


def _row(entry: Field[Any]) -> str:
    metadata = entry.metadata
    name = f"`{metadata['xml']}`"
    if metadata["also"]:
        name += " (" + ", ".join(f"`{old}`" for old in metadata["also"]) + ")"
    why = metadata["why"]
    if metadata["choices"]:
        why += ": " + ", ".join(metadata["choices"])
    if not metadata["supported"]:
        why = f"*no effect{', named' if metadata['named'] else ''}* – {why}"
    return f"| {name} | {_default(entry)} | {metadata['unit']} | {why.replace('|', '/')} |"


def _default(entry: Field[Any]) -> str:
    value: Any = entry.default
    choices = entry.metadata["choices"]
    if choices is not None:
        for text, meant in choices.items():
            if meant == value:
                return str(text)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or value == "" or value == ():
        return ""
    if entry.metadata["unit"] == "bytes" and value > 0 and value % 1024 == 0:
        mebibytes, rest = divmod(value, 1024 * 1024)
        return f"{value // 1024}K" if rest else f"{mebibytes}M"
    return f"`{value}`" if isinstance(value, str) else str(value)


def _security() -> str:
    return (
        "## `<security-setting match=…>`\n\n"
        'Holds `<permission type="…" roles="role,role"/>`. Of all matches the most specific one '
        "decides alone; without a match no user is allowed; the cluster user has all permissions. "
        "`<role-mapping from=\"x\" to=\"a,b\"/>`: a user with role x has the permissions of roles a and b.\n\n"
        f"Types: {', '.join(f'`{name}`' for name in PERMISSIONS)}.\n"
    )


def _fixed(values: dict[str, FixedValue]) -> dict[str, str]:
    return {name: f"unless `{value.here[0]}`: {value.otherwise}" for name, value in values.items()}


def plain(why: str) -> str:
    """Returns a reason in which names of elements are no HTML."""
    return why.replace("<", "\\<")


def _list(title: str, entries: dict[str, str]) -> str:
    lines = [f"## {title}", "", "| name | reason |", "|---|---|"]
    lines += [f"| `{name}` | {plain(why)} |" for name, why in entries.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
