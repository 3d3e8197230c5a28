"""Replication between the members of a group: the stream of journal, page files and large bodies, and its two ends."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.cluster.replication.active.file_changes import FileChanges
    from atalanta.cluster.replication.active.seat import ReplicationSeat
    from atalanta.cluster.replication.member_codec import SALT_SIZE, Guard
    from atalanta.cluster.replication.member_handshake import member_key
    from atalanta.cluster.replication.passive.active_search import Candidate
    from atalanta.cluster.replication.passive.backup import Backup
    from atalanta.cluster.replication.passive.backup_config import (
        BackupConfig,
        BackupPorts,
        MemberIdentity,
        NotTakenOver,
        TakenOver,
    )
else:
    __getattr__ = face(__name__)

__all__ = [
    "SALT_SIZE", "Backup", "BackupConfig", "BackupPorts", "Candidate", "FileChanges", "Guard",
    "MemberIdentity", "NotTakenOver", "ReplicationSeat", "TakenOver", "member_key",
]
