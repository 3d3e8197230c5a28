"""How many clients every member has, told to each other as a notification of our own.

The way is the one the members' other news go: a message on the notification address, read by each peer's bridge. A real
Artemis has its type in no filter and never sends one: it does not notice, and nobody is sent to it.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.message import Message
from atalanta.kernel.notifications import Notifications

KIND: Final = "ATALANTA_CLIENTS"
NODE: Final = "_ATALANTA_Node"
CLIENTS: Final = "_ATALANTA_Clients"
ZONE: Final = "_ATALANTA_Zone"
ACCEPTS: Final = "_ATALANTA_Accepts"


class ClientCount:
    """What a member said last, at `heard_at` of this node's clock. `accepts`: it takes clients of others."""

    def __init__(self, clients: int, zone: str | None, accepts: bool, heard_at: int) -> None:
        self.clients = clients
        self.zone = zone
        self.accepts = accepts
        self.heard_at = heard_at


def read_count(now: int, message: Message, node_id: str) -> ClientCount | None:
    """None if the message is no such news of that node."""
    properties = message.properties
    if properties.get("_AMQ_NotifType") != KIND or properties.get(NODE) != node_id:
        return None
    clients = properties.get(CLIENTS)
    zone = properties.get(ZONE)
    if isinstance(clients, bool) or not isinstance(clients, int) or clients < 0:
        return None
    accepts = properties.get(ACCEPTS) is not False
    return ClientCount(clients, zone if isinstance(zone, str) and zone else None, accepts, now)


def tell_count(
    notifications: Notifications,
    now: int,
    node_id: str,
    clients: int,
    zone: str | None,
    accepts: bool,
) -> None:
    """To all peers that listen."""
    notifications.publish(
        now, KIND, {NODE: node_id, CLIENTS: clients, ZONE: zone, ACCEPTS: accepts}
    )
