"""The files in which FILE_PING's members write who is there: `*.list`, a line for each member.

A line has name, UUID, host:port, and T or F for the coordinator.
"""

from __future__ import annotations

from typing import Final

from atalanta.wire.jgroups.address import Place, place_of

LIST_SUFFIX: Final = ".list"
MEMBERS_MAX: Final = 1_000


def decode_member_list(data: bytes) -> list[Place]:
    """Returns the physical addresses of a file's members, each once; lines of another form are left out."""
    found: dict[Place, None] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        words = line.split()
        place = place_of(words[2]) if len(words) >= 4 else None
        if place is not None and len(found) < MEMBERS_MAX:
            found[place] = None
    return list(found)
