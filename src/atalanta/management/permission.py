"""Permissions for management requests (ManagementServiceImpl.securityCheck, management-message-rbac).

The permission `manage` on the management address allows requests. With management-message-rbac every call needs
`view` or `edit` on an address of its own, PREFIX.RESOURCE.METHOD, such as `mops.queue.orders.removeAllMessages`. The
method's name decides which of the two (view-permission-method-match-pattern).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from atalanta.kernel.security.security import EDIT, MANAGE, VIEW

if TYPE_CHECKING:
    from atalanta.kernel.sessions.session import Session
    from atalanta.kernel.settings.broker_config import BrokerConfig


# Attributes whose getter in Artemis begins with "is".
BOOLEANS: Final = (
    "Active", "AutoCreated", "AutoDelete", "Backup", "Clustered", "ConfigurationManaged", "Durable",
    "EmbeddedWebServerStarted", "Enabled", "Exclusive", "GroupRebalance",
    "GroupRebalancePauseDispatch", "Internal", "InternalQueue", "LastValue",
    "MessageCounterEnabled", "NonDestructive", "Paging", "Paused", "PersistIDCache",
    "PersistedPause", "PersistenceEnabled", "PurgeOnNoConsumers", "ReplicaSync",
    "RetroactiveResource", "SecurityEnabled", "SharedStore", "Started", "Temporary",
    "WildcardRoutingEnabled",
)  # fmt: skip


def getter_name(attribute: str) -> str:
    """Returns the getter of an attribute: messageCount -> getMessageCount, Paused -> isPaused."""
    name = attribute[0].upper() + attribute[1:]
    return f"is{name}" if name in BOOLEANS else f"get{name}"


class ManagementPermission:
    """The permission checks of management. Raises BrokerError SECURITY if a permission is missing."""

    def __init__(self, config: BrokerConfig) -> None:
        self.address = config.management_address
        self.each_call = config.management_message_rbac
        self.prefix = config.management_rbac_prefix
        self.viewing = re.compile(config.view_permission_pattern)

    def check_request(self, session: Session | None) -> None:
        """Checks `manage`. A session of None is the node itself, which may do everything."""
        if session is not None:
            session.check(MANAGE, self.address)

    def check_call(self, session: Session | None, resource: str, method: str) -> None:
        if session is None or not self.each_call or session.identity.cluster:
            return
        permission = VIEW if self.viewing.fullmatch(method) else EDIT
        session.check(permission, f"{self.prefix}.{resource}.{method}")
