"""Notifications that are sent only if the configuration enables them.

In Artemis a broker plugin sends them (NotificationActiveMQServerPlugin, section `<broker-plugins>`). The plugin's
class name and properties enable the same notifications here.
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
    """Switches of CONNECTION_CREATED/_DESTROYED, ADDRESS_ADDED/_REMOVED, MESSAGE_EXPIRED and MESSAGE_DELIVERED."""

    connections: bool = False
    addresses: bool = False
    expired: bool = False
    delivered: bool = False

    def switch(self, key: str, on: bool) -> bool:
        """Sets one property of the plugin; returns False for an unknown one."""
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
