"""The broker's rules, without protocols, sockets, files, clocks or randomness."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.broker.recovery import Recovery
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.errors import ADDRESS_FULL, RANGE_LOST, SECURITY
    from atalanta.kernel.observer import Observer
    from atalanta.kernel.ports import Disk, Ids, LargeFiles, Links, Passwords, Timers, Trace, Wire
    from atalanta.kernel.security.password import StoredPassword
    from atalanta.kernel.security.security import Security
    from atalanta.kernel.settings.broker_config import (
        STEP_WORK_MAX,
        AddressConfig,
        BrokerConfig,
        QueueConfig,
    )
    from atalanta.kernel.settings.repository import AddressSettingsRepository
    from atalanta.kernel.unseen_options import IN_PROCESS, STORE_LAYOUT
else:
    __getattr__ = face(__name__)

__all__ = [
    "ADDRESS_FULL", "IN_PROCESS", "RANGE_LOST", "SECURITY", "STEP_WORK_MAX", "STORE_LAYOUT", "AddressConfig",
    "AddressSettingsRepository", "Broker", "BrokerConfig", "CurrentCommand", "Disk", "Ids",
    "LargeFiles", "Links", "Observer", "Passwords", "QueueConfig", "Recovery", "Security",
    "StoredPassword", "Timers", "Trace", "Wire",
]
