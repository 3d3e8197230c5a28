"""Management requests: any resource, operation or attribute, and any parameters."""

from __future__ import annotations

import json

from atalanta.cluster.core_bridges.bridges import CoreBridges
from atalanta.cluster.core_bridges.config import BridgeSettings
from atalanta.cluster.core_bridges.definition import config_of, definition_of
from atalanta.cluster.core_bridges.management import BridgeControl
from atalanta.cluster.discovery.discovery import Discovery
from atalanta.kernel.broker import invariants
from atalanta.kernel.ports import Links, Wire
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.management.request.jobs import MANAGEMENT_TIMER
from atalanta.management.resources.acceptor import ListedAcceptor
from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import Message
from atalanta.wire.host import Host
from tests.fuzz.target import Target
from tests.kernel.broker_rig import SECOND, consume
from tests.management.management_rig import REPLIES, Desk
from tests.wire.core.server.server_rig import text_message

INPUTS_OF_A_DESK = 40
# A parameter of each type that an operation may want.
SAMPLES = {"s": '"work"', "i": "1", "l": "2", "d": "1.5", "b": "true", "S": '"a=1"', "a": '["x"]', "m": '{"a":1}'}


# What the operations take that make something, as JSON.
DEFINITIONS = {
    "createQueue": {"name": "q", "address": "a", "routing-type": "ANYCAST", "filter-string": "x = 1", "ring-size": 5,
                    "durable": True, "last-value-key": "k", "consumers-before-dispatch": 1, "auto-delete-delay": 5},
    "updateQueue": {"name": "work", "max-consumers": 3, "group-rebalance": True, "group-buckets": 2, "exclusive": True},
    "createDivert": {"name": "e", "address": "work", "forwarding-address": "f", "routing-type": "STRIP",
                     "filter-string": "x = 1", "exclusive": True},
    "updateDivert": {"name": "d", "forwarding-address": "topic", "filter-string": "y = 1"},
    "createBridge": {"name": "b", "queue-name": "work", "forwarding-address": "f", "filter-string": "x = 1",
                     "static-connectors": ["c"], "retry-interval": 5, "retry-interval-multiplier": 1.5,
                     "concurrency": 2, "routing-type": "PASS", "transformer-configuration": {
                         "class-name": "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer",
                         "properties": {"a": "b"}}},
}  # fmt: skip


class Described(BridgeControl):
    """Bridges are read and written down, and none is made."""

    def create(self, now: int, definition: dict[str, object]) -> None:
        config = config_of(definition)
        assert definition_of(config_of(definition_of(config))) == definition_of(config)


def described(desk: Desk) -> Described:
    """The control of a node that dials nobody."""
    links = Links()
    host = Host(desk.broker, Wire(), {})
    settings = BridgeSettings()
    broker = desk.broker
    discovery = Discovery(
        settings.listening(), links, broker.node_id, broker.ids, broker.timers, broker.trace, host.wire, host.close
    )
    notifications = desk.management.notifications
    return Described(CoreBridges(settings, notifications, desk.resources, host, links, discovery))


class ManagementTarget(Target):
    """resource NUL operation NUL JSON; an empty operation and text behind it: an attribute."""

    name = "management"
    base_bytes = 3 << 20
    bytes_per_byte = 2048
    words = (
        b"null", b"true", b"NaN", b"Infinity", b"-1", b"1e999", b"[", b"]", b"{", b"}", b'"', b"\\ud800", b",",
        b'"work"', b'"topic"', b"9223372036854775808", b"[" * 2000, b'{"name":"n","address":"a"}', b"\0",
        b'"{\\"field\\":\\"NAME\\",\\"operation\\":\\"CONTAINS\\",\\"value\\":\\"a\\"}"',
    )  # fmt: skip

    def __init__(self) -> None:
        self.fresh()

    def seeds(self) -> list[bytes]:
        made = []
        controls = self.desk.management.controls
        for resource in ("broker", "queue.work", "address.topic", "acceptor.a", "divert.d"):
            control = controls[resource.partition(".")[0]]
            made += [f"{resource}\0\0{name}" for name in control.attributes]
            for name, overloads in control.operations.items():
                for kinds, _ in overloads:
                    given = ",".join(SAMPLES.get(kind, SAMPLES.get(kind.lower(), "1")) for kind in kinds)
                    made.append(f"{resource}\0{name}\0[{given}]")
        for name, definition in DEFINITIONS.items():
            made.append(f"broker\0{name}\0{json.dumps([json.dumps(definition)])}")
        return [text.encode() for text in made]

    def fresh(self) -> None:
        self.inputs = 0
        self.desk = desk = Desk()
        desk.resources.register_acceptor(ListedAcceptor("a", {"host": "h", "port": 1}))
        desk.management.controls["broker"].operations |= described(desk).broker_operations
        desk.queue("work")
        divert = DivertConfig()
        divert.name = "d"
        divert.address = "work"
        divert.forwarding_address = "topic"
        desk.broker.diverts.create(divert, False)
        desk.queue("sub", "topic", 0)
        desk.fill("work", 30)
        session = desk.session()
        for body in (b"no text", b"", b"\x01\xff\xff\xff\xff"):
            message = text_message("work", "x")
            message.body = body
            session.send(desk.now, message, 0)
        consume(session, desk, "work", credits=200)
        desk.settle()

    def stale(self) -> bool:
        return self.inputs >= INPUTS_OF_A_DESK

    def run(self, data: bytes) -> None:
        self.inputs += 1
        desk = self.desk
        resource, _, rest = data.decode("utf-8", "replace").partition("\0")
        operation, _, given = rest.partition("\0")
        writer = Writer()
        writer.nullable_simple_string(given)
        request = Message.create("activemq.management", writer.getvalue(), 0, False, 0, 4)
        request.properties.put("_AMQ_ResourceName", resource)
        if operation:
            request.properties.put("_AMQ_OperationName", operation)
        else:
            request.properties.put("_AMQ_Attribute", given)
        request.properties.put("JMSReplyTo", REPLIES)
        request.properties_changed()
        desk.management.handle(desk.now, request)
        for _ in range(200):
            desk.settle()
            if desk.timers.due.pop(MANAGEMENT_TIMER, None) is None:
                break
            desk.management.on_timer(desk.now)
        desk.now += SECOND
        invariants.validate(desk.broker)
