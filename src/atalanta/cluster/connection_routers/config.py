"""`<connection-router>` of broker.xml.

Defaults are those of Artemis' code (ConnectionRouterConfiguration, PoolConfiguration, CacheConfiguration).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.cluster.config import ClusterSettings
from atalanta.kernel.option import OptionGroup, option

CLIENT_ID: Final = "CLIENT_ID"
SNI_HOST: Final = "SNI_HOST"
SOURCE_IP: Final = "SOURCE_IP"
USER_NAME: Final = "USER_NAME"
ROLE_NAME: Final = "ROLE_NAME"
KEY_TYPES: Final = {
    name: name for name in (CLIENT_ID, SNI_HOST, SOURCE_IP, USER_NAME, ROLE_NAME)
}
CONSISTENT_HASH: Final = "CONSISTENT_HASH"
CONSISTENT_HASH_MODULO: Final = "CONSISTENT_HASH_MODULO"
FIRST_ELEMENT: Final = "FIRST_ELEMENT"
LEAST_CONNECTIONS: Final = "LEAST_CONNECTIONS"
ROUND_ROBIN: Final = "ROUND_ROBIN"
# Policy -> its property, and whether it must be given.
POLICIES: Final[dict[str, tuple[str, bool]]] = {
    CONSISTENT_HASH: ("", False),
    CONSISTENT_HASH_MODULO: ("MODULO", True),
    FIRST_ELEMENT: ("", False),
    LEAST_CONNECTIONS: ("CONNECTION_COUNT_THRESHOLD", False),
    ROUND_ROBIN: ("", False),
}


@dataclass(eq=False, repr=False)
class CacheConfig(OptionGroup):
    """`<cache>`: a key keeps its target as long as the target is ready."""

    persisted: bool = option(False, "persisted", "kept over restarts")
    timeout_ms: int = option(
        0, "timeout", "a key that was not used for that long is forgotten, 0 never", unit="ms", minimum=0
    )


@dataclass(eq=False, repr=False)
class PoolConfig(OptionGroup):
    """`<pool>`: the targets, from a cluster connection, a discovery group, or static connectors."""

    user: str | None = option(
        None, "username", "user that checks whether the targets are ready; the cluster user if absent"
    )
    password: str | None = option(None, "password", "password of that user")
    check_period_ms: int = option(
        5_000, "check-period", "how often each target is asked", unit="ms", minimum=1
    )
    quorum_size: int = option(
        1, "quorum-size", "with fewer ready targets none is chosen", unit="count", minimum=1
    )
    quorum_timeout_ms: int = option(
        3_000, "quorum-timeout", "how long a client waits for that number", unit="ms", minimum=0
    )
    local_target_enabled: bool = option(
        False, "local-target-enabled", "this node is one of the targets"
    )
    cluster_connection: str | None = option(
        None, "cluster-connection", "its other members are the targets"
    )
    discovery_group: str | None = None
    static_connectors: list[str] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class RouterConfig(OptionGroup):
    """A `<connection-router>`, used by the acceptors that name it (`router=`)."""

    name: str = option("", "name", "unique", attribute=True)
    key_type: str = option(
        SOURCE_IP, "key-type", "the property of a client that selects its target", choices=KEY_TYPES
    )
    key_filter: str | None = option(
        None, "key-filter", "regular expression: the part of the key that counts; without a match NULL"
    )
    local_target_filter: str | None = option(
        None, "local-target-filter", "regular expression of the whole key: such clients stay here"
    )
    policy: str | None = None
    policy_number: int = 0  # value of the policy's property
    pool: PoolConfig | None = None
    cache: CacheConfig | None = None


@dataclass(eq=False, repr=False)
class RoutersConfig(OptionGroup):
    """The routers of a node. `settings` holds the connectors and groups that they name.

    `plain_password`: targets that discovery finds may get the cluster's password in plain text.
    """

    routers: list[RouterConfig]
    settings: ClusterSettings
    plain_password: bool = False
