"""The comparison of the files of two members of a simulated group."""

from __future__ import annotations

from atalanta.sim.host import Host
from atalanta.store.pages import page_number
from atalanta.store.segment import SEGMENT_HEAD_SIZE, segment_number


def different_files(active: Host, follower: Host) -> list[str]:
    """Returns the names of files that are not equal, once nothing is being written.

    Segments are compared up to the end of their blocks.
    """
    assert active.node is not None
    found = []
    for segment in active.node.journal.segments:
        mine, other = (each.disk.files.get(segment.name, bytearray()) for each in (active, follower))
        if segment.end > SEGMENT_HEAD_SIZE and mine[: segment.end] != other[: segment.end]:
            found.append(segment.name)
    for name, content in active.disk.files.items():
        if page_number(name) and follower.disk.files.get(name) != content:
            found.append(name)
    first = active.node.journal.segments[0].number
    for name in follower.disk.files:
        if 0 < segment_number(name) < first or (page_number(name) and name not in active.disk.files):
            found.append(f"{name} (left)")
    for file, body in active.large.contents.items():
        if follower.large.contents.get(file) != body:
            found.append(f"large body {file}")
    for file in follower.large.contents:
        if file not in active.large.contents:
            found.append(f"large body {file} (left)")
    return found
