"""All targets by name."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.management_target import ManagementTarget
from tests.fuzz.meeting_targets import MeetingTarget, StackTarget
from tests.fuzz.node_targets import ClientTarget, NodeTarget
from tests.fuzz.store_targets import JournalTarget, PageTarget, RecordTarget
from tests.fuzz.target import Target
from tests.fuzz.text_targets import PropertiesTarget, SelectorTarget, UsersTarget, XmlTarget
from tests.fuzz.wire_targets import (
    DatagramTarget,
    FramerTarget,
    MessageTarget,
    PacketTarget,
    UriTarget,
)

TARGETS: dict[str, Callable[[], Target]] = {
    made.name: made
    for made in (
        FramerTarget, PacketTarget, MessageTarget, DatagramTarget, UriTarget,
        SelectorTarget, XmlTarget, PropertiesTarget, UsersTarget,
        JournalTarget, RecordTarget, PageTarget, ManagementTarget,
        NodeTarget, ClientTarget, MeetingTarget, StackTarget,
    )
}  # fmt: skip
