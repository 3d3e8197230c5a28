"""Management requests at a node with clients of every protocol: any operation or attribute, any parameters."""

from __future__ import annotations

import json

from atalanta.cluster.core_bridges.definition import config_of, definition_of
from atalanta.cluster.core_bridges.management import BridgeControl
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.management.request.jobs import MANAGEMENT_TIMER
from atalanta.message.encoding.buffer import Writer
from atalanta.message.message import Message
from atalanta.wire.core.packets.message import SendMessage
from tests.fuzz.connected_clients import connect_all
from tests.fuzz.node_rig import DOOR, NodeRig
from tests.fuzz.target import Target
from tests.kernel.broker_rig import SECOND, RecordingTrace
from tests.management.management_rig import REPLIES
from tests.wire.core.server.server_rig import queue_request, text_message

INPUTS_OF_A_NODE = 100
RESOURCES = (
    "broker", "queue.work", "address.topic", f"acceptor.{DOOR}", "divert.d", "clusterconnection.link", "bridge.x",
)  # fmt: skip
# Operations that change nothing: each has one answer, and no client loses its connection.
READING = ("list", "get", "is", "count", "browse", "show")
# What the node reports when an exception has been caught.
FAILURES = ("command_failed", "command_left_out", "node_bug")
# A parameter of each type that an operation may want.
SAMPLES = {"s": '"work"', "i": "1", "l": "2", "d": "1.5", "b": "true", "S": '"a=1"', "a": '["x"]', "m": '{"a":1}'}
HOSTILE = (
    {"s": '""', "i": "2147483647", "l": "9223372036854775807", "d": "1e308", "b": "false", "S": '""', "a": "[]",
     "m": "{}"},
    {"s": "null", "i": "-2147483648", "l": "-9223372036854775808", "d": "-0.0", "b": "null", "S": "null", "a": "null",
     "m": "null"},
    {"s": '"#"', "i": "9223372036854775807", "l": "1e999", "d": "NaN", "b": "1", "S": '"a = "', "a": "[null]",
     "m": '{"a":null}'},
    {"s": f'"{"x" * 2_000}"', "i": "1.5", "l": "99999999999999999999", "d": "1", "b": '"true"', "S": f'"{"(" * 2_000}"',
     "a": "[[[[]]]]", "m": '{"":{"":[]}}'},
    {"s": '"{\\"field\\":\\"\\",\\"sortField\\":\\"protocol\\",\\"sortOrder\\":\\"desc\\"}"', "i": "1", "l": "10",
     "S": '"AMQPriority = 9"', "a": '["work","work"]', "m": '{"_AMQ_SCHED_DELIVERY":9223372036854775807}'},
)  # fmt: skip


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
        """Every attribute and operation of every kind of resource, with usual and with hostile parameters."""
        made = []
        controls = self.rig.node.management.controls
        for resource in RESOURCES:
            control = controls[resource.partition(".")[0]]
            made += [f"{resource}\0\0{name}" for name in control.attributes]
            for name, overloads in control.operations.items():
                for kinds, _ in overloads:
                    for samples in (SAMPLES, *HOSTILE):
                        given = ",".join(samples.get(kind, samples.get(kind.lower(), "1")) for kind in kinds)
                        made.append(f"{resource}\0{name}\0[{given}]")
        for name, definition in DEFINITIONS.items():
            made.append(f"broker\0{name}\0{json.dumps([json.dumps(definition)])}")
        return [text.encode() for text in made]

    def fresh(self) -> None:
        """A new node with a client of every protocol."""
        self.inputs = 0
        self.rig = rig = NodeRig()
        node = rig.node
        node.management.controls["broker"].operations |= Described(node.bridges).broker_operations
        admin = rig.login("admin", "admin")
        for name, address, routing_type in (("work", "work", 1), ("sub", "topic", 0), (REPLIES, REPLIES, 1)):
            rig.send(admin, queue_request(name, address, routing_type))
        divert = DivertConfig()
        divert.name = "d"
        divert.address = "work"
        divert.forwarding_address = "topic"
        node.broker.diverts.create(divert, False)
        for number in range(30):
            message = text_message("work", f"{number}")
            message.body = (b"no text", b"", b"\x01\xff\xff\xff\xff")[number] if number < 3 else message.body
            rig.send(admin, SendMessage(message, requires_response=False, correlation=-1, sender_id=0))
        rig.settle()
        self.connected = connect_all(rig)
        trace = node.ports.trace
        assert isinstance(trace, RecordingTrace)
        self.trace: RecordingTrace = trace

    def stale(self) -> bool:
        return self.inputs >= INPUTS_OF_A_NODE

    def run(self, data: bytes) -> None:
        self.inputs += 1
        rig = self.rig
        node = rig.node
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
        answers = self._answers()
        reads = not operation or operation.startswith(READING)
        connected = [conn for conn in self.connected if conn in node.connections]
        node.management.handle(rig.now, request)
        for _ in range(200):
            rig.settle()
            if rig.timers.due.pop(MANAGEMENT_TIMER, None) is None:
                break
            node.on_timer(rig.now, MANAGEMENT_TIMER)
        if reads and answers >= 0:
            assert self._answers() == answers + 1, f"{self._answers() - answers} answers"
            assert all(conn in node.connections for conn in connected), rig.wire.closed
        failures = [fields for name, fields in self.trace.events if name in FAILURES]
        assert not failures, failures
        self.trace.events.clear()
        rig.wire.written.clear()
        rig.pass_time(SECOND)
        rig.check()

    def _answers(self) -> int:
        """How many answers there are; -1 if an operation has removed their queue."""
        queue = self.rig.node.broker.queues.get(REPLIES)
        return -1 if queue is None else queue.message_count
