"""The status of a member, as its process says it in the file `member-status.json` of its journal folder.

It is for `atalanta ha status`, and written again and again while the process lives. Not synced: it is of no use
after the end of the machine.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from atalanta.files.regular import NotRegular, read_regular

STATUS_NAME: Final = "member-status.json"
FILE_BYTES_MAX: Final = 1 << 16


@dataclass(frozen=True)
class FollowerStatus:
    """A follower as its active node sees it: the number of records that it has not confirmed, and the seconds since it
    had everything, or since its connection was lost."""

    member: str
    in_sync: bool
    behind: int
    asynchronous: bool = False
    behind_s: float = 0.0
    connected: bool = True


@dataclass(frozen=True)
class MemberStatus:
    """The state of a member's process.

    `active` is the name of the active node that it follows, or its own. `durable` is the lsn up to which everything is
    on its disk, `behind` the number of records that it lacks as far as it knows, `beat` a count that changes.
    """

    member: str
    role: str  # as configured, "primary" or "backup"
    state: str  # "active" or "passive"
    epoch: int
    active: str
    durable: int
    behind: int
    followers: list[FollowerStatus]
    beat: int
    waits: str = ""  # what a passive member without an active one waits for


def write_status(journal: Path, status: MemberStatus) -> None:
    """Replaces the file. Raises OSError."""
    part = journal / f"{STATUS_NAME}.part"
    part.write_bytes(json.dumps(asdict(status)).encode("utf-8"))
    part.replace(journal / STATUS_NAME)


def read_status(journal: Path) -> MemberStatus | None:
    """Returns the content of the file; None if there is none that this program understands. Raises OSError."""
    try:
        values = json.loads(read_regular(journal / STATUS_NAME, FILE_BYTES_MAX))
        followers = [FollowerStatus(**each) for each in values.pop("followers")]
        return MemberStatus(followers=followers, **values)
    except (FileNotFoundError, NotRegular, ValueError, TypeError, KeyError, AttributeError):
        return None


def remove_status(journal: Path) -> None:
    """Removes the file: the process ends. Raises OSError."""
    (journal / STATUS_NAME).unlink(missing_ok=True)
