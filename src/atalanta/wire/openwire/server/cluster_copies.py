"""Messages of topics that a network brings to a member of a CORE cluster, although the cluster has done so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.conversion.destination import is_queue

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.messages import OpenWireMessage
    from atalanta.wire.openwire.server.peer_brokers import PeerBrokers


def comes_again(message: OpenWireMessage, peers: PeerBrokers) -> bool:
    """Returns True for a message of a topic that has passed another member: it sends such a message to all members.

    A message of a queue is at one place only, wherever it comes from.
    """
    destination, path = message.destination, message.broker_path
    if not path or destination is None or is_queue(destination):
        return False
    members = peers.members
    return any(passed.value is not None and members.is_member(passed.value) for passed in path)
