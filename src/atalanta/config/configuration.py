"""The whole of one node's configuration, as read from its files."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import Final

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    ClusterSettings,
    DiscoveryGroupConfig,
)
from atalanta.cluster.connection_routers.config import RouterConfig
from atalanta.cluster.core_bridges.config import BridgeConfig, BridgeSettings
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.scale_down_config import ScaleDownConfig
from atalanta.config.problems import Unsupported
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.runtime.network_check.config import NetworkCheckConfig
from atalanta.store.config import JournalOptions
from atalanta.wire.core.config import AcceptorConfig, ConnectorConfig

WILDCARD_HOSTS: Final = ("0.0.0.0", "::")


def instance_folder(path: Path) -> Path:
    """The parent of `etc/` when the file lies in a folder of that name, else the file's own
    folder.
    """
    folder = Path(realpath(path)).parent
    return folder.parent if folder.name == "etc" else folder


def dialable(connector: ConnectorConfig) -> ConnectorConfig:
    """Nobody can dial "every address of this machine": as Artemis does, its name is announced instead."""
    if connector.host not in WILDCARD_HOSTS:
        return connector
    return replace(connector, host=socket.gethostname())


@dataclass
class Configuration:
    """`unsupported` and `warnings` are for the user to see once at start."""

    path: Path
    instance: Path
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    journal: JournalOptions = field(default_factory=JournalOptions)
    acceptors: list[AcceptorConfig] = field(default_factory=list)
    connectors: dict[str, ConnectorConfig] = field(default_factory=dict)
    broadcast_groups: list[BroadcastGroupConfig] = field(default_factory=list)
    discovery_groups: dict[str, DiscoveryGroupConfig] = field(default_factory=dict)
    cluster_connections: list[ClusterConnectionConfig] = field(default_factory=list)
    grouping: GroupingHandlerConfig | None = None
    scale_down: ScaleDownConfig | None = None
    in_vm_connectors: list[str] = field(default_factory=list)  # names; they are not opened
    bridges: list[BridgeConfig] = field(default_factory=list)
    routers: list[RouterConfig] = field(default_factory=list)
    own: OwnSettings = field(default_factory=OwnSettings)
    network_check: NetworkCheckConfig = field(default_factory=NetworkCheckConfig)
    stacks: dict[str, str] = field(default_factory=dict)  # JGroups stacks that are no files, by name
    # Where things stand, for whoever has something to say of them: ("acceptor", name) -> file, line.
    places: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)  # whose change changes the configuration
    unsupported: list[Unsupported] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def place(self, kind: str, name: str) -> tuple[str, int]:
        """File and line of something with a name; the file and 0 for what has no line of its own."""
        return self.places.get((kind, name), (str(self.path), 0))

    @property
    def journal_folder(self) -> Path:
        """Absolute: relative folders lie under the instance folder."""
        return self.instance / self.journal.directory

    @property
    def paging_folder(self) -> Path:
        """Absolute, as journal_folder; nodes have folders of their own below it."""
        return self.instance / self.journal.paging_directory

    @property
    def large_messages_folder(self) -> Path:
        """Absolute, as journal_folder; nodes have folders of their own below it."""
        return self.instance / self.journal.large_messages_directory

    @property
    def users_folder(self) -> Path:
        """Where artemis-users.properties and artemis-roles.properties are looked for."""
        return Path(realpath(self.path)).parent

    @property
    def store_folders(self) -> list[Path]:
        """Where relative paths of key stores may lead: Artemis finds them in the working folder and in `etc`."""
        return [self.users_folder, self.instance, Path.cwd()]

    def address_settings(self) -> AddressSettingsRepository:
        """The address settings, ready to be asked."""
        repository = AddressSettingsRepository(
            self.broker.wildcard,
            self.broker.literal_match_markers,
            self.broker.uuid_namespace or self.broker.temporary_queue_namespace,
        )
        for setting in self.broker.address_settings:
            repository.add(setting.match, setting.values)
        return repository

    def bridge_settings(self) -> BridgeSettings:
        """What the bridges of the node need, without the functions of their transformers."""
        return BridgeSettings(
            self.bridges,
            {name: dialable(connector) for name, connector in self.connectors.items()},
            self.discovery_groups,
            self.own.bridges,
        )

    def cluster_settings(self) -> ClusterSettings | None:
        """What the cluster part of the node needs; None without a cluster connection."""
        if not self.cluster_connections:
            return None
        return ClusterSettings(
            self.cluster_connections,
            {name: dialable(connector) for name, connector in self.connectors.items()},
            self.broadcast_groups,
            self.discovery_groups,
            self.broker.cluster_user,
            self.broker.cluster_password,
            self.broker.internal_naming_prefix,
            self.scale_down,
        )
