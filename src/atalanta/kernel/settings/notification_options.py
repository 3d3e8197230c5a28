"""Which notifications are sent that nobody gets unless they are asked for.

In Artemis a broker plugin of its own sends them (NotificationActiveMQServerPlugin, section `<broker-plugins>`); its
class name and properties switch the same ones on here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PLUGIN: Final = (
    "org.apache.activemq.artemis.core.server.plugin.impl.NotificationActiveMQServerPlugin"
)
CONNECTIONS: Final = "SEND_CONNECTION_NOTIFICATIONS"
ADDRESSES: Final = "SEND_ADDRESS_NOTIFICATIONS"
EXPIRED: Final = "SEND_EXPIRED_NOTIFICATIONS"
DELIVERED: Final = "SEND_DELIVERED_NOTIFICATIONS"


@dataclass
class NotificationOptions:
    """CONNECTION_CREATED and _DESTROYED, ADDRESS_ADDED and _REMOVED, MESSAGE_EXPIRED, MESSAGE_DELIVERED."""

    connections: bool = False
    addresses: bool = False
    expired: bool = False
    delivered: bool = False

    def switch(self, key: str, on: bool) -> bool:
        """One property of the plugin; False if it is none."""
        if key == CONNECTIONS:
            self.connections = on
        elif key == ADDRESSES:
            self.addresses = on
        elif key == EXPIRED:
            self.expired = on
        elif key == DELIVERED:
            self.delivered = on
        else:
            return False
        return True
