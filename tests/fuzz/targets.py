"""All targets by name."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.amqp_targets import AmqpTarget, EmbeddedTarget, LargeEmbeddedTarget
from tests.fuzz.answer_targets import (
    AnswerTarget,
    DnsTarget,
    ReceivedTarget,
    UpgradeTarget,
    UrlTarget,
)
from tests.fuzz.config_targets import LoadTarget, LoginTarget, MaskTarget, StoreTarget, TomlTarget
from tests.fuzz.damage_target import DamageTarget
from tests.fuzz.ha_targets import MemberTarget, RegisterTarget
from tests.fuzz.jgroups_targets import JgroupsTarget, MembersTarget, StackTarget
from tests.fuzz.management_target import ManagementTarget
from tests.fuzz.node_targets import ClientTarget, MistakenNodeTarget, NodeTarget
from tests.fuzz.openwire_targets import (
    OpenWireBodyTarget,
    OpenWireHelloTarget,
    OpenWireServerTarget,
    OpenWireTarget,
)
from tests.fuzz.ordered_targets import (
    CoreOrderedTarget,
    OpenWireOrderedTarget,
    StompOrderedTarget,
)
from tests.fuzz.spark_targets import LineTarget, OffsetTarget, OptionTarget
from tests.fuzz.stomp_targets import StompFrameTarget, StompTarget, WebSocketTarget
from tests.fuzz.store_targets import JournalTarget, PageTarget, RecordTarget
from tests.fuzz.target import Target
from tests.fuzz.text_targets import PropertiesTarget, SelectorTarget, UsersTarget
from tests.fuzz.wire_targets import (
    DatagramTarget,
    FramerTarget,
    MessageTarget,
    PacketTarget,
    UriTarget,
)
from tests.fuzz.xml_targets import ClassicTarget, WildFlyTarget, XmlTarget

TARGETS: dict[str, Callable[[], Target]] = {
    made.name: made
    for made in (
        FramerTarget, PacketTarget, MessageTarget, ReceivedTarget, DatagramTarget, JgroupsTarget, MembersTarget,
        UpgradeTarget,
        AmqpTarget, EmbeddedTarget, LargeEmbeddedTarget, OpenWireTarget, OpenWireHelloTarget, OpenWireBodyTarget,
        OpenWireServerTarget, StompFrameTarget, StompTarget, WebSocketTarget,
        CoreOrderedTarget, OpenWireOrderedTarget, StompOrderedTarget,
        DnsTarget, NodeTarget, MistakenNodeTarget, ClientTarget, ManagementTarget, AnswerTarget,
        JournalTarget, RecordTarget, PageTarget, DamageTarget, RegisterTarget, MemberTarget,
        SelectorTarget, UriTarget, UrlTarget, PropertiesTarget, UsersTarget, MaskTarget, StoreTarget, LoginTarget,
        XmlTarget, WildFlyTarget, ClassicTarget, StackTarget, TomlTarget,
        OffsetTarget, OptionTarget, LineTarget, LoadTarget,
    )
}  # fmt: skip

# Whose decoders mypyc compiles: the others are the same code in both builds.
COMPILED = (
    "framer", "packets", "messages", "received", "datagrams", "node", "client", "management", "journal", "records",
    "pages", "selectors", "openwire", "openwire hello", "openwire bodies", "openwire server",
    "stomp frames", "stomp", "core in order", "openwire in order", "stomp in order",
)  # fmt: skip
