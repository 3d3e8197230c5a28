"""Packets between the nodes of a cluster, channel 3."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from atalanta.message.quick_dataclass import mutable_dataclass
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.base import (
    BOOL,
    INT32,
    INT64,
    NULLABLE_SIMPLE_STRING,
    NULLABLE_STRING,
    NULLABLE_TRANSPORT,
    REST,
    SIMPLE_STRING,
    STRING,
    Packet,
    numbered,
    wire,
)
from atalanta.wire.core.transport import TransportConfiguration


@mutable_dataclass(eq=False, repr=False)
class ClusterConnect(Packet):
    """CLUSTER_CONNECT: the first packet on channel 3.

    Until it is accepted all other packets on that channel are ignored.
    """

    user: str = field(metadata=wire(STRING))
    password: str = field(metadata=wire(STRING))


@mutable_dataclass(eq=False, repr=False)
class ClusterConnectReply(Packet):
    """CLUSTER_CONNECT_REPLY."""

    authorized: bool = field(metadata=wire(BOOL))


@mutable_dataclass(eq=False, repr=False)
class ClusterChallenge(Packet):
    """CLUSTER_CHALLENGE (ours): the answer to a nonce in CLUSTER_CONNECT (kernel/security/cluster_proof.py)."""

    node_id: str = field(metadata=wire(STRING))
    nonce: str = field(metadata=wire(STRING))
    proof: str = field(metadata=wire(STRING))


@mutable_dataclass(eq=False, repr=False)
class ClusterProof(Packet):
    """CLUSTER_PROOF (ours): the proof of the node that dialed `target`; CLUSTER_CONNECT_REPLY follows."""

    node_id: str = field(metadata=wire(STRING))
    target: str = field(metadata=wire(STRING))
    proof: str = field(metadata=wire(STRING))


@mutable_dataclass(eq=False, repr=False)
class NodeAnnounce(Packet):
    """NODE_ANNOUNCE: adds the sender to the receiver's topology. No answer."""

    node_id: str = field(metadata=wire(STRING))
    backup_group: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    is_backup: bool = field(default=False, metadata=wire(BOOL))
    event_id: int = field(default=0, metadata=wire(INT64))
    connector: TransportConfiguration | None = field(
        default=None, metadata=wire(NULLABLE_TRANSPORT)
    )
    backup_connector: TransportConfiguration | None = field(
        default=None, metadata=wire(NULLABLE_TRANSPORT)
    )
    scale_down_group: str | None = field(default=None, metadata=wire(NULLABLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class ScaleDownAnnouncement(Packet):
    """SCALEDOWN_ANNOUNCEMENT: all messages of the node have moved to the target."""

    target_node_id: str = field(metadata=wire(SIMPLE_STRING))
    scaled_down_node_id: str = field(metadata=wire(SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class QuorumVote(Packet):
    """QUORUM_VOTE: `vote` is in the handler's own encoding."""

    handler: str = field(metadata=wire(SIMPLE_STRING))
    vote: bytes = field(metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class QuorumVoteReply(Packet):
    """QUORUM_VOTE_REPLY."""

    handler: str = field(metadata=wire(SIMPLE_STRING))
    vote: bytes = field(metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class BackupRegistration(Packet):
    """BACKUP_REGISTRATION: a real Artemis backup offers to replicate this node (refused)."""

    user: str = field(metadata=wire(STRING))
    password: str = field(metadata=wire(STRING))
    wants_failback: bool = field(metadata=wire(BOOL))
    connector: bytes = field(metadata=wire(REST))


@mutable_dataclass(eq=False, repr=False)
class BackupRegistrationFailed(Packet):
    """BACKUP_REGISTRATION_FAILED: `problem` is 0 exception, 1 authentication, 2 already replicating."""

    problem: int = field(metadata=wire(INT32))


@mutable_dataclass(eq=False, repr=False)
class BackupRequest(Packet):
    """BACKUP_REQUEST: the request for a colocated backup (not served)."""

    size: int = field(metadata=wire(INT32))
    journal_directory: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    bindings_directory: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    large_messages_directory: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    paging_directory: str | None = field(default=None, metadata=wire(NULLABLE_STRING))
    node_id: str | None = field(default=None, metadata=wire(NULLABLE_SIMPLE_STRING))


@mutable_dataclass(eq=False, repr=False)
class BackupRequestResponse(Packet):
    """BACKUP_REQUEST_RESPONSE."""

    started: bool = field(metadata=wire(BOOL))


PACKETS: Final = numbered(
    {
        packet_types.CLUSTER_CONNECT: ClusterConnect,
        packet_types.CLUSTER_CONNECT_REPLY: ClusterConnectReply,
        packet_types.CLUSTER_CHALLENGE: ClusterChallenge,
        packet_types.CLUSTER_PROOF: ClusterProof,
        packet_types.NODE_ANNOUNCE: NodeAnnounce,
        packet_types.SCALEDOWN_ANNOUNCEMENT: ScaleDownAnnouncement,
        packet_types.QUORUM_VOTE: QuorumVote,
        packet_types.QUORUM_VOTE_REPLY: QuorumVoteReply,
        packet_types.BACKUP_REGISTRATION: BackupRegistration,
        packet_types.BACKUP_REGISTRATION_FAILED: BackupRegistrationFailed,
        packet_types.BACKUP_REQUEST: BackupRequest,
        packet_types.BACKUP_REQUEST_RESPONSE: BackupRequestResponse,
    }
)
