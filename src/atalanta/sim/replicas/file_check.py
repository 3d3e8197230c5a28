"""The comparison of the files of two members of a simulated group."""

from __future__ import annotations

from atalanta.sim.host import Host
from atalanta.store import SEGMENT_HEAD_SIZE, page_number, segment_number


def content_of(host: Host, name: str) -> bytearray:
    """Returns the content of a file, nothing without one."""
    return host.disk.files.get(name, bytearray())


def different_files(active: Host, follower: Host) -> list[str]:
    """Returns the names of files that are not equal, once nothing is being written.

    Segments are compared up to the end of their blocks.
    """
    assert active.node is not None
    found = []
    segments = active.node.journal.segments
    for segment in segments:
        mine, other = content_of(active, segment.name), content_of(follower, segment.name)
        if segment.end > SEGMENT_HEAD_SIZE and mine[: segment.end] != other[: segment.end]:
            found.append(segment.name)
    for name in active.disk.names():
        if page_number(name) and content_of(follower, name) != content_of(active, name):
            found.append(name)
    for name in follower.disk.names():
        if 0 < segment_number(name) < segments[0].number or (page_number(name) and not content_of(active, name)):
            found.append(f"{name} (left)")
    bodies, copies = active.large.contents, follower.large.contents
    for file in sorted({**bodies, **copies}):
        if bodies.get(file) != copies.get(file):
            found.append(f"large body {file}")
    return found
