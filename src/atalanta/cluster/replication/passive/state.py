"""The states of a passive member.

`Backup.state` is read off what the member has, so no state is kept beside that. tests/cluster/replication/conftest.py
holds the table to every input. What follows an outcome is in docs/internals/high-availability.md.
"""

from __future__ import annotations

from typing import Final

NAMELESS: Final = "nameless"  # its folder has no node id
DAMAGED: Final = "damaged"  # its journal cannot be read: it waits for an active node, which has what is lost
ALONE: Final = "alone"  # it looks for the active node, and reads the register
FOLLOWING: Final = "following"  # the active node sends it the journal
ASKING: Final = "asking"  # a write to the register has no outcome yet; it follows nobody
TAKING_OVER: Final = "taking over"  # the write has succeeded, jobs of the disk are left
ENDED: Final = "ended"  # it has an outcome: the shell goes on
FAILED: Final = "failed"  # the process ends, as after an error of the disk
OVER: Final = (TAKING_OVER, ENDED, FAILED)

# The states that may follow each one, and when. Any of them fails with its disk.
TRANSITIONS: Final[dict[str, tuple[str, ...]]] = {
    # the journal is read; it is damaged; an active node says the node id, or there is none, and this is the primary
    NAMELESS: (ALONE, DAMAGED, ENDED, FAILED),
    DAMAGED: (ENDED, FAILED),  # an active node is there: the shell repairs the journal
    # an offer is accepted; it may take over, or found the group; damage is found; clients have waited for too long
    ALONE: (FOLLOWING, ASKING, DAMAGED, ENDED, FAILED),
    # the connection is lost; the active node hands over; an operator's order; damage is found: the active node is there
    FOLLOWING: (ALONE, ASKING, DAMAGED, ENDED, FAILED),
    # the write has failed, another member was faster; it is the active member; damage is found
    ASKING: (ALONE, TAKING_OVER, DAMAGED, ENDED, FAILED),
    TAKING_OVER: (ENDED, FAILED),  # nothing waits for the disk
    ENDED: (FAILED,),  # before the shell has looked
    FAILED: (),
}
