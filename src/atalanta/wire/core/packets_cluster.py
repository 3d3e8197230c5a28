"""Packets between the nodes of a cluster, channel 3 (fact sheet A1.b)."""

from __future__ import annotations

from typing import ClassVar, Final

from atalanta.wire.core.packets_base import Packet
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.core.types import (
    BACKUP_REQUEST,
    BACKUP_REQUEST_RESPONSE,
    CLUSTER_CONNECT,
    CLUSTER_CONNECT_REPLY,
    NODE_ANNOUNCE,
    QUORUM_VOTE,
    QUORUM_VOTE_REPLY,
    SCALEDOWN_ANNOUNCEMENT,
)


class ClusterConnect(Packet):
    """CLUSTER_CONNECT.

    First on channel 3; until it was accepted everything else there is ignored.
    """

    type: ClassVar[int] = CLUSTER_CONNECT
    layout: ClassVar[str] = "user str, password str"

    def __init__(
        self,
        user: str,
        password: str,
    ) -> None:
        self.user: str = user
        self.password: str = password


class ClusterConnectReply(Packet):
    """CLUSTER_CONNECT_REPLY."""

    type: ClassVar[int] = CLUSTER_CONNECT_REPLY
    layout: ClassVar[str] = "authorized bool"

    def __init__(
        self,
        authorized: bool,
    ) -> None:
        self.authorized: bool = authorized


class NodeAnnounce(Packet):
    """NODE_ANNOUNCE. Puts the sender into the receiver's topology. No answer."""

    type: ClassVar[int] = NODE_ANNOUNCE
    layout: ClassVar[str] = (
        "node_id str, backup_group str?, is_backup bool, event_id i64, connector tc?, "
        "backup_connector tc?, scale_down_group str?"
    )

    def __init__(
        self,
        node_id: str,
        backup_group: str | None = None,
        is_backup: bool = False,
        event_id: int = 0,
        connector: TransportConfiguration | None = None,
        backup_connector: TransportConfiguration | None = None,
        scale_down_group: str | None = None,
    ) -> None:
        self.node_id: str = node_id
        self.backup_group: str | None = backup_group
        self.is_backup: bool = is_backup
        self.event_id: int = event_id
        self.connector: TransportConfiguration | None = connector
        self.backup_connector: TransportConfiguration | None = backup_connector
        self.scale_down_group: str | None = scale_down_group


class ScaleDownAnnouncement(Packet):
    """SCALEDOWN_ANNOUNCEMENT. All messages of the node have moved to the target."""

    type: ClassVar[int] = SCALEDOWN_ANNOUNCEMENT
    layout: ClassVar[str] = "target_node_id ss, scaled_down_node_id ss"

    def __init__(
        self,
        target_node_id: str,
        scaled_down_node_id: str,
    ) -> None:
        self.target_node_id: str = target_node_id
        self.scaled_down_node_id: str = scaled_down_node_id


class QuorumVote(Packet):
    """QUORUM_VOTE. `vote` is in the handler's own encoding."""

    type: ClassVar[int] = QUORUM_VOTE
    layout: ClassVar[str] = "handler ss, vote rest"

    def __init__(
        self,
        handler: str,
        vote: bytes,
    ) -> None:
        self.handler: str = handler
        self.vote: bytes = vote


class QuorumVoteReply(Packet):
    """QUORUM_VOTE_REPLY."""

    type: ClassVar[int] = QUORUM_VOTE_REPLY
    layout: ClassVar[str] = "handler ss, vote rest"

    def __init__(
        self,
        handler: str,
        vote: bytes,
    ) -> None:
        self.handler: str = handler
        self.vote: bytes = vote


class BackupRequest(Packet):
    """BACKUP_REQUEST. Colocated backups (not served)."""

    type: ClassVar[int] = BACKUP_REQUEST
    layout: ClassVar[str] = (
        "size i32, journal_directory str?, bindings_directory str?, large_messages_directory "
        "str?, paging_directory str?, node_id ss?"
    )

    def __init__(
        self,
        size: int,
        journal_directory: str | None = None,
        bindings_directory: str | None = None,
        large_messages_directory: str | None = None,
        paging_directory: str | None = None,
        node_id: str | None = None,
    ) -> None:
        self.size: int = size
        self.journal_directory: str | None = journal_directory
        self.bindings_directory: str | None = bindings_directory
        self.large_messages_directory: str | None = large_messages_directory
        self.paging_directory: str | None = paging_directory
        self.node_id: str | None = node_id


class BackupRequestResponse(Packet):
    """BACKUP_REQUEST_RESPONSE."""

    type: ClassVar[int] = BACKUP_REQUEST_RESPONSE
    layout: ClassVar[str] = "started bool"

    def __init__(
        self,
        started: bool,
    ) -> None:
        self.started: bool = started


PACKETS: Final[list[type[Packet]]] = [
    ClusterConnect,
    ClusterConnectReply,
    NodeAnnounce,
    ScaleDownAnnouncement,
    QuorumVote,
    QuorumVoteReply,
    BackupRequest,
    BackupRequestResponse,
]
