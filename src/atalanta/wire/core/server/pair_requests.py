"""Requests of real Artemis nodes about pairs: votes are answered, offers of and requests for a backup are refused.

A real node waits for each answer, up to its call-timeout (30 s). It never forms a pair with a node of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import (
    BackupRegistration,
    BackupRegistrationFailed,
    BackupRequest,
    BackupRequestResponse,
    QuorumVote,
    QuorumVoteReply,
)

if TYPE_CHECKING:
    from atalanta.wire.core.server.connection import CoreConnection
    from atalanta.wire.core.transport import TransportConfiguration

# Both names of QuorumVoteServerConnect: before Artemis 2.37, and since.
FAILOVER_VOTES: Final = ("LiveFailoverQuorumVote", "PrimaryFailoverQuorumVote")
BACKUP_VOTE: Final = "RequestBackupQuorumVote"
# Ours, for colocated backups among our own nodes (cluster/connection/colocation.py).
HOSTED_BACKUP: Final = "AtalantaHostedBackup"
EXCEPTION: Final = 0  # BackupRegistrationProblem
WHAT_TO_DO: Final = (
    "a node of Artemis cannot be the backup of this node, nor this node its backup: give it another group-name, or stop"
    " it, and use Atalanta for both nodes of the pair"
)


def answer_pair_request(connection: CoreConnection, now: int, packet: Packet) -> None:
    """Answers a request of another node about pairs. DecodeError if a vote cannot be read."""
    if isinstance(packet, BackupRegistration):
        _refuse(connection, now, "it offers to be the backup of this node")
        connection.send(BackupRegistrationFailed(EXCEPTION), CLUSTER_CHANNEL)
    elif isinstance(packet, BackupRequest):
        _refuse(connection, now, "it asks for a backup in this process")
        connection.send(BackupRequestResponse(False), CLUSTER_CHANNEL)
    elif isinstance(packet, QuorumVote):
        answer = vote_on(connection, packet)
        if answer:
            connection.send(QuorumVoteReply(packet.handler, answer), CLUSTER_CHANNEL)


def _refuse(connection: CoreConnection, now: int, why: str) -> None:
    remote = connection.client.remote
    host = connection.host
    if host.refusals.admits(now, remote, why):
        host.broker.trace.event(
            "backup_refused", {"remote": remote, "why": why, "what_to_do": WHAT_TO_DO}
        )


def vote_on(connection: CoreConnection, packet: QuorumVote) -> bytes:
    """Returns this node's vote in the handler's encoding, empty for an unknown handler.

    A failover vote names the node that may be away. The answer repeats the vote if that node is a member here, else it
    is the opposite (ServerConnectVoteHandler). For a colocated backup of a real node this one has no room.
    """
    writer = Writer()
    if packet.handler in FAILOVER_VOTES:
        reader = Reader(packet.vote)
        vote = reader.boolean("vote")
        node_id = reader.string("node id")
        primary = connection.host.cluster.primary_of(connection, node_id)
        writer.boolean(vote if primary is not None else not vote)
        writer.string(node_id)
        writer.nullable_string(None if primary is None else java_text(primary))
    elif packet.handler == BACKUP_VOTE:
        writer.int32(0)
        writer.nullable_string(None)
        writer.boolean(False)
    elif packet.handler == HOSTED_BACKUP:
        return connection.host.cluster.backup_call(packet.vote)
    return writer.getvalue()


def java_text(transport: TransportConfiguration) -> str:
    """Returns the text of TransportConfiguration.toString. A primary looks for its own in the votes."""
    made = f"TransportConfiguration(name={transport.name}, factory={dashed(transport.factory)})"
    pairs: list[str] = []
    for key, value in transport.parameters.items():
        shown = "****" if "password" in key.lower() else value
        pairs.append(f"{dashed(key)}={dashed(shown)}")
    return made + ("?" + "&".join(pairs) if pairs else "")


def dashed(text: str) -> str:
    return text.replace(".", "-")
