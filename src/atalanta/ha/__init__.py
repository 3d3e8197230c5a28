"""High availability: the epochs of a shared folder; the register, lease and replication of a group."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.ha.folder_lease import (
        RELEASED,
        STOPPED,
        EpochView,
        FolderCandidate,
        FolderHolder,
        FolderRecord,
    )
    from atalanta.ha.guard_port import GuardPort
    from atalanta.ha.last_instant import NO_INSTANT, LastInstant
    from atalanta.ha.lease import LeaseTerms
    from atalanta.ha.register import CompareAndSet, Register, decode_register, encode_register
    from atalanta.ha.register_port import RegisterPort
    from atalanta.ha.replication.copy_replay import CopyReplay
    from atalanta.ha.replication.follower import Follower
else:
    __getattr__ = face(__name__)

__all__ = [
    "NO_INSTANT", "RELEASED", "STOPPED", "CompareAndSet", "CopyReplay", "EpochView",
    "FolderCandidate", "FolderHolder", "FolderRecord", "Follower", "GuardPort", "LastInstant",
    "LeaseTerms", "Register", "RegisterPort", "decode_register", "encode_register",
]
