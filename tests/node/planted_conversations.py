"""Conversations with an unexpected exception at every place that a command passes (test_planted_exceptions.py)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from atalanta.message.message import Message
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import Acknowledge, CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.packets.session import CreateSessionV2, SessionStart
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.commands.connections import ConnectionInfo, KeepAliveInfo
from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.options import HANDSHAKE as OPENWIRE_HANDSHAKE
from atalanta.wire.openwire.options import info_of
from atalanta.wire.openwire.server.connection import OpenWireConnection
from atalanta.wire.openwire.server.held_client_ids import IDS_TIMER
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.stomp.acceptor import StompAcceptor
from tests.fuzz.node_rig import NodeRig
from tests.fuzz.openwire_targets import PLAIN, commands_of_a_client
from tests.fuzz.stomp_targets import CONNECT, FRAMES
from tests.kernel.broker_rig import SECOND, RecordingTrace
from tests.node.kernel_state import state_lines
from tests.node.planted import Outcome, Place, Planted, calls_of, in_a_copy, plant
from tests.wire.core.server.random_client import Chaos
from tests.wire.core.server.server_rig import queue_request, text_message

PROBLEMS_SHOWN = 30
DIFFERENCES_SHOWN = 3
DIFFERENCE_CHARACTERS_MAX = 120
SOAK = bool(os.environ.get("ATALANTA_SOAK"))
THE_SEAM = "kernel/command.py"
# What only reads, decodes and checks: an exception there never ends the node.
OUTSIDE = (
    "wire/core/server/requests/queries.py", "wire/openwire/frame_decoder.py",
    "wire/stomp/decoder.py", "wire/openwire/conversion/sent_message.py", "wire/stomp/sent_message.py",
    "kernel/security/permissions.py", "wire/core/packets/", "wire/openwire/wire_format.py", "wire/stomp/frame.py",
    "wire/stomp/delivered_message.py", "wire/stomp/body_text.py",
    "wire/openwire/bodies.py", "wire/openwire/encoding/writer.py", "wire/openwire/encoding/primitives.py",
    "wire/openwire/encoding/modified_utf8.py", "wire/openwire/conversion/delivered_message.py",
    "wire/openwire/conversion/sent_pattern.py",
)  # fmt: skip


@dataclass
class Expected:
    """The kernel's states after the connection was closed before a command, or behind it: made when they are asked for.

    Behind the command the next one is decoded: then the connection closes behind the command.
    """

    make_before: Callable[[], list[str]]
    make_behind: Callable[[], list[str]]

    @cached_property
    def before(self) -> list[str]:
        return in_a_copy(self.make_before)

    @cached_property
    def behind(self) -> list[str]:
        return in_a_copy(self.make_behind)

    def has(self, state: list[str]) -> bool:
        """Returns whether it is one of them."""
        return state == self.before or state == self.behind


@dataclass
class Conversation:
    """What a client sends, one command after the other, and what became of the exceptions in them."""

    rig: NodeRig
    conn: int
    commands: Sequence[tuple[str, bytes | Callable[[], None]]]
    tried: dict[tuple[str, ...], bool] = field(default_factory=dict)
    closed: int = 0
    ended: dict[Place, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def hold(self) -> None:
        """Plants exceptions in each command, and then lets it pass."""
        for acceptor in self.rig.node.acceptors.values():  # made when they are asked for, which changes nothing else
            acceptor.options(StompAcceptor)
            acceptor.options(OpenWireAcceptor)
        for name, data in self.commands:
            if self.conn not in self.rig.node.connections:
                break
            calls = in_a_copy(partial(calls_of, self.work(data)))
            places = [each for each in calls if each[0] != THE_SEAM and self._is_new(each)]
            expected = Expected(partial(self._closed, b""), partial(self._closed, data))
            for place in places:
                self._check(name, place, in_a_copy(partial(self._planted, place, data)), expected)
            self.work(data)()
            self.rig.settle()

    def _is_new(self, place: Place) -> bool:
        """Returns whether the call was not tried before. In short, each function is tried once, whoever calls it."""
        key = place if SOAK else place[:2]
        if key in self.tried:
            return False
        self.tried[key] = True
        return True

    def work(self, data: bytes | Callable[[], None]) -> Callable[[], None]:
        """Returns the input: bytes of the client, or another one that processes its command."""
        if callable(data):
            return data
        return partial(self.rig.node.on_data, self.rig.now, self.conn, data)

    def _closed(self, data: bytes | Callable[[], None]) -> list[str]:
        rig = self.rig
        self.work(data)()
        rig.node.open_connections.close(rig.now, self.conn, "closed")
        rig.settle()
        return state_lines(rig.node.broker)

    def _planted(self, place: Place, data: bytes | Callable[[], None]) -> Outcome:
        rig = self.rig
        trace = rig.node.ports.trace
        assert isinstance(trace, RecordingTrace)
        trace.expects_failures = True
        try:
            plant(place, self.work(data))
        except Planted as error:
            assert rig.node.command.changing, str(error)
            return Outcome(str(error))
        rig.settle()
        rig.check()
        failures = [fields for name, fields in trace.events if name == "command_failed"]
        served = self.conn in rig.node.connections
        lines = [] if served else state_lines(rig.node.broker)
        if failures and not served:
            serve_another(rig)
        return Outcome("", len(failures), lines)

    def _check(self, name: str, place: Place, found: Outcome, expected: Expected) -> None:
        where = f"{name}, {place[0]}:{place[1]} called by {place[2]}"
        if found.error:
            self.ended[place] = name
        elif found.failures and found.state and not expected.has(found.state):
            only = sorted(set(found.state) ^ set(expected.before))
            shown = [each[-DIFFERENCE_CHARACTERS_MAX:] for each in only[:DIFFERENCES_SHOWN]]
            self.problems.append(f"{where}: the kernel was changed: {shown}")
        else:
            self.closed += bool(found.failures)


def serves(rig: NodeRig, conn: int) -> bool:
    connection = rig.node.connections.get(conn)
    return isinstance(connection, OpenWireConnection) and connection.authenticated


def serve_another(rig: NodeRig) -> None:
    """Another client sends a message to a queue of its own, and gets it."""
    conn = rig.login("admin", "admin")
    rig.send(conn, queue_request("another"))
    rig.send(conn, CreateConsumer(consumer_id=1, queue="another", priority=4))
    rig.send(conn, FlowToken(1, 10_000))
    rig.settle()
    rig.wire.written.pop(conn, None)
    rig.send(conn, SendMessage(text_message("another", "served"), requires_response=True, correlation=-7, sender_id=0))
    rig.settle()
    assert "served".encode("utf-16-le") in b"".join(rig.wire.written[conn])


def assert_held(*conversations: Conversation, closed_min: int = 51) -> None:
    problems = [each for one in conversations for each in one.problems]
    assert not problems, "\n".join([f"{len(problems)} problems", *problems[:PROBLEMS_SHOWN]])
    ended = [place for one in conversations for place in one.ended if place[0].startswith(OUTSIDE)]
    assert not ended, "\n".join(str(each) for each in ended)
    assert sum(one.closed for one in conversations) >= closed_min


def packet_name(packet: Packet) -> str:
    return type(packet).__name__


def request(resource: str, operation: str, *given: object) -> SendMessage:
    message = text_message("activemq.management", json.dumps(list(given)))
    message.put_property("_AMQ_ResourceName", resource)
    message.put_property("_AMQ_OperationName", operation)
    message.put_property("JMSReplyTo", "a")
    return SendMessage(message, requires_response=True, correlation=-7, sender_id=0)


def sent(message: Message) -> SendMessage:
    return SendMessage(message, requires_response=True, correlation=-7, sender_id=0)


def encoded(packets: list[Packet], channel: int = 10) -> list[tuple[str, bytes]]:
    return [(packet_name(each), codec.encode(each, channel, 136)) for each in packets]


def core(xa: bool = False) -> tuple[NodeRig, int]:
    rig = NodeRig()
    conn = rig.login("admin", "admin", xa)
    rig.consuming(conn)
    return rig, conn


def core_login() -> None:
    rig = NodeRig()
    conn = rig.accept()
    login = CreateSessionV2(name="s", session_channel=10, version=136, user="admin", password="admin")
    commands = [("handshake", HANDSHAKE), *encoded([login], 1), *encoded([SessionStart()])]
    conversation = Conversation(rig, conn, commands)
    conversation.hold()
    assert_held(conversation)


def core_commands() -> None:
    rig, conn = core()
    rig.send(conn, queue_request("wild", "a.#", 0))
    rig.send(conn, sent(text_message("a", "once", _AMQ_DUPL_ID="0")))  # the cache of ids is there
    large = SendLargeMessage(text_message("a", ""))
    more = SendContinuation(b"x" * 300, continues=True, body_size=600)
    last = SendContinuation(
        b"x" * 300, continues=False, body_size=600, requires_response=True, correlation=-9, sender_id=0
    )
    packets: list[Packet] = [
        sent(text_message("a", "text")),
        sent(text_message("a.b", "text", x=7)),
        sent(text_message("new", "text", routing_type=1)),
        sent(text_message("a", "later", _AMQ_SCHED_DELIVERY=(rig.now // 1_000_000) + 1_000)),
        sent(text_message("a", "once", _AMQ_DUPL_ID="1")),
        sent(text_message("a", "once", _AMQ_DUPL_ID="2")),
        Acknowledge(0, 1_700_000_000_000_000, True),
        large,
        more,
        last,
    ]
    for seed in range(2):
        chaos = Chaos(seed)
        packets += [chaos.packet() for _ in range(80)]
    conversation = Conversation(rig, conn, encoded(packets))
    conversation.hold()
    branches = Chaos(9)
    rig, conn = core(xa=True)
    distributed = Conversation(rig, conn, encoded([branches.xa_packet() for _ in range(60)]), conversation.tried)
    distributed.hold()
    assert_held(conversation, distributed)


MANAGED = [
    request("broker", "getVersion"),
    request("broker", "getQueueNames"),
    request("broker", "listConnectionsAsJSON"),
    request("broker", "listConnections", "", 1, 10),
    request("broker", "listQueues", "", 1, 10),
    request("queue.a", "countMessages", "x = 1"),
    request("queue.a", "listMessagesAsJSON", "x = 1"),
    request("queue.a", "browse"),
    request("address.a", "getQueueNames"),
]
CHANGED = [
    request("broker", "createQueue", '{"name": "made", "address": "made", "routing-type": "ANYCAST"}'),
    request("queue.made", "pause", True),
    request("queue.made", "resume"),
    request("queue.a", "moveMessages", "", "made"),
    request("queue.made", "removeAllMessages"),
    request("address.a", "block"),
    request("address.a", "unblock"),
    request("broker", "updateDuplicateIdCache", "a", ["x"]),
    request("address.a", "clearDuplicateIdCache"),
    request("broker", "createDivert", '{"name": "d", "address": "a", "forwarding-address": "made"}'),
    request("broker", "destroyDivert", "d"),
    request("broker", "destroyQueue", "made"),
]


def management() -> None:
    """What only reads answers an error, so that the connection stays; nothing of it ends the node."""
    rig, conn = core()
    reading = Conversation(rig, conn, encoded(list(MANAGED)))
    reading.hold()
    assert not [place for place in reading.ended if place[0].startswith("management/controls")]
    changing = Conversation(rig, conn, encoded(list(CHANGED)), reading.tried)
    changing.hold()
    assert_held(reading, changing)


def stomp_commands() -> None:
    rig = NodeRig()
    conn = rig.accept()
    commands = [(each.split(b"\n")[0].decode() or "heart-beat", each) for each in (CONNECT, *FRAMES)]
    conversation = Conversation(rig, conn, commands)
    conversation.hold()
    assert_held(conversation)


def openwire_commands() -> None:
    rig = NodeRig()
    conn = rig.accept()
    form = WireFormat(PLAIN)
    login = ConnectionInfo(ConnectionId("ID:x"), "c", "admin", "admin")
    login.command_id, login.response_required = 1, True
    commands = [("WireFormatInfo", WireFormat(OPENWIRE_HANDSHAKE).encode(info_of(PLAIN)))]
    commands += [(type(each).__name__, form.encode(each)) for each in (login, *commands_of_a_client())]
    conversation = Conversation(rig, conn, commands)
    conversation.hold()
    assert_held(conversation)



def a_large_message_whose_file_is_synced() -> None:
    """It is published in an input that is not of its connection; the rest of that one waits."""
    rig, conn = core()
    last = SendContinuation(
        b"x" * 300, continues=False, body_size=300, requires_response=True, correlation=-9, sender_id=0
    )
    rig.send(conn, SendLargeMessage(text_message("a", "", True)))
    rig.send(conn, last)
    rig.node.flush(rig.now)
    while True:
        synced = rig.calls.pop(0)
        calls = in_a_copy(partial(calls_of, synced))
        names = [each[1] for each in calls]
        if "LargeReceiver._publish" in names:
            break
        synced()
    conversation = Conversation(rig, conn, [("synced", synced)])
    begin = names.index("LargeReceiver._publish")
    inputs = ("node/node.py", "wire/open_connections.py")
    for place in calls[:begin] + [each for each in calls if each[2].startswith(inputs)]:
        conversation._is_new(place)
    conversation.hold()
    assert_held(conversation, closed_min=10)
    rig.check()
    assert rig.node.broker.queues["a"].message_count == 4


def a_login_that_waited_for_a_client_id() -> None:
    """It goes on in a timer."""
    rig = NodeRig()
    form = WireFormat(PLAIN)
    conns = [rig.accept(), rig.accept()]
    for number, conn in enumerate(conns):
        rig.node.on_data(rig.now, conn, WireFormat(OPENWIRE_HANDSHAKE).encode(info_of(PLAIN)))
        login = ConnectionInfo(ConnectionId(f"ID:{number}"), "c", "admin", "admin", failover_reconnect=number > 0)
        login.command_id, login.response_required = 1, True
        rig.node.on_data(rig.now, conn, form.encode(login))
        rig.settle()
        connection = rig.node.connections[conn]
        assert isinstance(connection, OpenWireConnection)
        if number == 0:
            assert connection.authenticated
            connection.waiting = KeepAliveInfo()  # as a message without room
            connection.hold_input()
    assert not serves(rig, conns[1])
    work = partial(rig.node.on_timer, rig.now + SECOND, IDS_TIMER)
    calls = in_a_copy(partial(calls_of, work))
    names = [each[1] for each in calls]
    begin = names.index("LoginConnection._continue_routed")
    conversation = Conversation(rig, conns[1], [("login", work)])
    for place in calls[:begin] + [each for each in calls if each[1] == "HeldClientIds._arm"]:  # the timer itself
        conversation._is_new(place)
    conversation.hold()  # its entry in the list of logins that wait is gone, unlike that of a closed connection
    assert conversation.closed + len(conversation.problems) > 10
    assert conns[0] not in rig.node.connections
    assert serves(rig, conns[1])
