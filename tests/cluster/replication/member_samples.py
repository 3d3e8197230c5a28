"""One message of each kind between the members of a group."""

from __future__ import annotations

from atalanta.cluster.replication.member_codec import (
    LARGE_FILE,
    PAGE_FILE,
    FileDeletion,
    FromActive,
    FromFollower,
    Guard,
    JournalBlock,
    KeptFiles,
    LargeData,
    LargeEnd,
    PageFile,
    ServiceRequest,
    SettingsFile,
    StoredFiles,
)
from atalanta.cluster.replication.member_handshake import Hello
from atalanta.ha.register import Register
from atalanta.ha.replication.block_stream import BlockItem, DropItem, JumpItem, SegmentItem
from atalanta.ha.replication.messages import (
    Answer,
    Block,
    Ended,
    HandOver,
    Heartbeat,
    Offer,
    Refusal,
)
from atalanta.wire.core.transport import TransportConfiguration

NODE_ID = bytes(range(16))
REGISTER = Register(7, "B", ("A", "B"), 0, bytes(16))

FROM_ACTIVE: tuple[FromActive, ...] = (
    Offer(7, ((3, 1), (7, 90)), 120, 100, 3, 2_000_000_000),
    Offer(1, (), 0, 0, 0, 1),
    JournalBlock(Block(7, 101, 104, 100), BlockItem(2, 64, b"a block", 104)),
    SegmentItem(2, 10485760, bytes(64)),
    DropItem(2),
    JumpItem(),
    Heartbeat(7, 123456789, 100, 1_700_000_000_000_000_000),
    HandOver(7, 104, 9, REGISTER, 1_700_000_000_000_000_001),
    Ended(7, 1_700_000_000_000_000_002),
    PageFile(4, b"a page file"),
    LargeData(5, 262144, b"a part of a body"),
    LargeEnd(5, 262160),
    FileDeletion(PAGE_FILE, 3, 104),
    FileDeletion(LARGE_FILE, 5, 104),
    KeptFiles(104, (1, 4), (5,)),
    SettingsFile(b"<settings/>"),
    Guard(7, 61617, b"salt of 16 bytes"),
)

FROM_FOLLOWER: tuple[FromFollower, ...] = (
    Answer(7, 104, 101, -1),
    Answer(7, 104, 104, 123456789),
    Refusal(8),
    ServiceRequest(7),
    StoredFiles(((1, 5000, 77), (4, 11, 78)), ((5, 262160),)),
    StoredFiles((), ()),
)

HELLO = Hello(
    "Zürich-0a1b2c3d", NODE_ID, "group", 8, {"cluster": TransportConfiguration.tcp("own", "b", 61616)}, True
)
