"""Configuration and ports of a node."""

from __future__ import annotations

from dataclasses import dataclass, field

from atalanta.cluster.config import ClusterSettings
from atalanta.cluster.connection.colocation_seat import ColocationSeat
from atalanta.cluster.connection_routers.config import RoutersConfig
from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.cluster.replication.active.seat import ReplicationSeat
from atalanta.kernel.command import CurrentCommand
from atalanta.kernel.ports import (
    Directories,
    Disk,
    Ids,
    LargeFiles,
    Links,
    Passwords,
    Process,
    Timers,
    Trace,
    Wire,
)
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.store.config import JournalConfig
from atalanta.wire.endpoint import AcceptorConfig


@dataclass(eq=False, repr=False)
class NodeConfig:
    """The whole configuration of a node, made by `app` from broker.xml, and by the simulator."""

    node_id: str
    broker: BrokerConfig
    settings: AddressSettingsRepository
    security: Security
    journal: JournalConfig
    acceptors: list[AcceptorConfig] = field(default_factory=list)
    cluster: ClusterSettings | None = None
    own: OwnSettings = field(default_factory=OwnSettings)
    grouping: GroupingHandlerConfig | None = None
    bridges: CoreBridgeSettings = field(default_factory=CoreBridgeSettings)
    routers: RoutersConfig | None = None
    networks: NetworkSettings = field(default_factory=NetworkSettings)


@dataclass(eq=False, repr=False)
class Ports:
    """The ports of a node: its only access to the outside. `command`: tests give one that raises exceptions."""

    wire: Wire
    disk: Disk
    timers: Timers
    links: Links
    ids: Ids
    trace: Trace
    passwords: Passwords = field(default_factory=Passwords)
    directories: Directories = field(default_factory=Directories)
    large: LargeFiles | None = None
    process: Process = field(default_factory=Process)
    replication: ReplicationSeat | None = None
    colocation: ColocationSeat | None = None
    command: CurrentCommand = field(default_factory=CurrentCommand)
