"""The complete configuration of one node, as read from its files."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    ClusterSettings,
    DiscoveryGroupConfig,
    ScaleDownConfig,
)
from atalanta.cluster.connection_routers.config import RouterConfig
from atalanta.cluster.core_bridges.config import CoreBridgeConfig, CoreBridgeSettings
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.config.problems import ClosedAcceptor, Unsupported
from atalanta.ha.policy import BACKUP, NONE, REPLICATION, HaPolicy
from atalanta.kernel.option import OptionGroup
from atalanta.kernel.security.security import is_public_password
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.runtime.network_check.config import NetworkCheckConfig
from atalanta.store.config import JournalOptions
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig

if TYPE_CHECKING:
    from atalanta.config.users.logins import LoginSource

WILDCARD_HOSTS: Final = ("0.0.0.0", "::")


def instance_folder(path: Path) -> Path:
    """Returns the parent of `etc/` for a file in a folder of that name, else the file's own folder."""
    folder = Path(realpath(path)).parent
    return folder.parent if folder.name == "etc" else folder


def dialable(connector: ConnectorConfig) -> ConnectorConfig:
    """Returns the connector with this machine's name instead of a wildcard host, as Artemis does: no client can
    connect to "every address of this machine"."""
    if connector.host not in WILDCARD_HOSTS:
        return connector
    return replace(connector, host=socket.gethostname())


@dataclass(eq=False, repr=False)
class Configuration(OptionGroup):
    """The configuration of one node. `unsupported` and `warnings` are shown once at start."""

    path: Path
    instance: Path
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    journal: JournalOptions = field(default_factory=JournalOptions)
    acceptors: list[AcceptorConfig] = field(default_factory=list)
    closed_acceptors: list[ClosedAcceptor] = field(default_factory=list)
    connectors: dict[str, ConnectorConfig] = field(default_factory=dict)
    broadcast_groups: list[BroadcastGroupConfig] = field(default_factory=list)
    discovery_groups: dict[str, DiscoveryGroupConfig] = field(default_factory=dict)
    cluster_connections: list[ClusterConnectionConfig] = field(default_factory=list)
    grouping: GroupingHandlerConfig | None = None
    ha: HaPolicy = field(default_factory=HaPolicy)
    scale_down: ScaleDownConfig | None = None
    in_vm_connectors: list[str] = field(
        default_factory=list
    )  # names; these connectors are not opened
    bridges: list[CoreBridgeConfig] = field(default_factory=list)
    routers: list[RouterConfig] = field(default_factory=list)
    networks: NetworkSettings = field(default_factory=NetworkSettings)
    logins: LoginSource | None = None  # None: the files of users and roles
    own: OwnSettings = field(default_factory=OwnSettings)
    network_check: NetworkCheckConfig = field(default_factory=NetworkCheckConfig)
    stacks: dict[str, str] = field(
        default_factory=dict
    )  # JGroups stacks that are not files, by name
    # Positions for messages about named elements: ("acceptor", name) -> file, line. ("role", name) is the first
    # permission of a role that is in no role-mapping.
    positions: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    files: list[Path] = field(
        default_factory=list
    )  # a change in one of them changes the configuration
    unsupported: list[Unsupported] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    values: Mapping[str, str] = field(default_factory=dict)  # of `${name}`: system properties, environment
    classic: bool = False  # it is an activemq.xml
    told_alone: bool = False  # the command line says that there are no other brokers
    delete_messages_at_start: bool = False
    # The name of this broker, if its journal folder is one that an earlier version gave to every broker with the same
    # data directory, and no broker has claimed it; else "".
    shared_data_owner: str = ""

    def take_classic(self, base: Path, logins: LoginSource | None, networks: NetworkSettings) -> None:
        """Records what an activemq.xml has besides the tree of a broker.xml; `base` is the folder of relative paths."""
        self.instance = base
        self.logins = logins
        self.networks = networks

    def position(self, kind: str, name: str) -> tuple[str, int]:
        """Returns file and line of a named element; the file and 0 for an element without a line of its own."""
        return self.positions.get((kind, name), (str(self.path), 0))

    def manager_position(self) -> tuple[str, int]:
        """Returns file and line of the manager of a replication: in atalanta.toml, or the policy in broker.xml."""
        own = self.positions.get(("[ha]", "manager"))
        return self.position("ha-policy", "") if own is None else own

    @property
    def journal_folder(self) -> Path:
        """Returns the absolute folder of the journal; relative folders are below the instance folder."""
        return self.instance / self.journal.directory

    @property
    def paging_folder(self) -> Path:
        """Returns the absolute folder of page files; each node has its own folder in it."""
        return self.instance / self.journal.paging_directory

    @property
    def large_messages_folder(self) -> Path:
        """Returns the absolute folder of large messages; each node has its own folder in it."""
        return self.instance / self.journal.large_messages_directory

    @property
    def users_folder(self) -> Path:
        """Returns the folder of artemis-users.properties and artemis-roles.properties."""
        return Path(realpath(self.path)).parent

    @property
    def store_folders(self) -> list[Path]:
        """Returns the folders for relative paths of key stores. Artemis looks in the working folder and in `etc`."""
        return [self.users_folder, self.instance, Path.cwd()]

    def bridge_settings(self) -> CoreBridgeSettings:
        """Returns the settings of the node's bridges, without the functions of their transformers."""
        return CoreBridgeSettings(
            self.bridges,
            {name: dialable(connector) for name, connector in self.connectors.items()},
            self.discovery_groups,
            self.own.bridges,
            broadcast_groups=self.broadcast_groups,
        )

    def group_connection(self) -> ClusterConnectionConfig | None:
        """Returns the cluster connection whose static connectors name the members of a replication; None without it."""
        for each in self.cluster_connections:
            if self.ha.cluster_name in (None, each.name):
                return each
        return None

    @property
    def empties_itself(self) -> bool:
        """Returns whether this node is a backup that gives its messages to another member when it has taken over."""
        wanted = self.scale_down is not None and self.scale_down.enabled and bool(self.cluster_connections)
        return wanted and self.ha.role == BACKUP and not self.ha.asynchronous

    @property
    def accepted_cluster_password(self) -> str | None:
        """Returns the password with which the cluster user can log in here; None: nobody can.

        A node without a cluster connection needs no cluster user, so there a password that everybody knows lets in
        nobody, unlike in Artemis.
        """
        password = self.broker.cluster_password
        return None if is_public_password(password) and not self.cluster_connections else password

    def cluster_settings(self) -> ClusterSettings | None:
        """Returns the settings of the node's cluster connections; None without one."""
        if not self.cluster_connections:
            return None
        group = self.group_connection() if self.ha.form == REPLICATION else None
        return ClusterSettings(
            self.cluster_connections,
            {name: dialable(connector) for name, connector in self.connectors.items()},
            self.broadcast_groups,
            self.discovery_groups,
            self.broker.cluster_user,
            self.broker.cluster_password,
            self.broker.internal_naming_prefix,
            self.scale_down,
            backed_up=self.ha.form != NONE,
            replicated=self.ha.form == REPLICATION,
            group_connectors=[] if group is None else group.static_connectors,
        )
