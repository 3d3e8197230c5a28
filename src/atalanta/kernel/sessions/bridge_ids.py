"""The duplicate ids of bridges (`_AMQ_BRIDGE_DUP`) in messages of users who are not members of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.duplicate_spaces import user_bridge_id
from atalanta.kernel.security.security import MANAGE

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.services import SessionServices
    from atalanta.message.message import Message


def keep_apart(services: SessionServices, identity: Identity, message: Message) -> None:
    """Makes the bridge's id of a message one of its user, who may not manage the broker.

    Ids of members and bridges can be guessed: anybody who may send could make their messages repeats.
    """
    duplicate_id = message.property_value(BRIDGE_DUPLICATE)
    if not isinstance(duplicate_id, bytes):
        message.remove_property(BRIDGE_DUPLICATE)
    elif not services.permissions.allows(identity, MANAGE, services.config.management_address):
        message.put_property(BRIDGE_DUPLICATE, user_bridge_id(identity.user, duplicate_id))
