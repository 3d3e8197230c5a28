"""The captured conversations of real Artemis nodes, held with one of ours: nothing that they say is refused."""

from __future__ import annotations

from functools import cache

import pytest

from atalanta.cluster.config import ClusterConnectionConfig, DiscoveryGroupConfig, ScaleDownConfig
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.security.cluster_proof import CHALLENGE_USER
from atalanta.message.message import Message
from atalanta.node.node import Node
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.core.broadcast_datagram import Announcement, encode_announcement
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL, packet_name
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, ClusterConnectReply, NodeAnnounce
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.query import QueueQueryResponseV3
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse, CreateSessionV2
from atalanta.wire.core.packets.topology import (
    ClusterTopologyV2,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.endpoint import ConnectorConfig
from tests.cluster.cluster_rig import RawPeer, Rig, cluster_of, count, node_of, waiting
from tests.cluster.scale_down.scale_down_rig import begin, departure
from tests.golden.frames import GoldenFrame, golden_frames

CAPTURED_USER = "cuser"
CAPTURED_PASSWORD = "cpass"
BRIDGE = "core-cluster-of-3-forms.jsonl.gz connection 15"


@cache
def conversations() -> dict[str, list[GoldenFrame]]:
    """Those that begin with a handshake and log in as a node of a cluster, by file and connection."""
    found: dict[str, list[GoldenFrame]] = {}
    for frame in golden_frames():
        file = frame.place.split(":", 1)[0]
        found.setdefault(f"{file} connection {frame.connection}", []).append(frame)
    return {name: frames for name, frames in found.items() if is_a_node(frames)}


def is_a_node(frames: list[GoldenFrame]) -> bool:
    names = [packet_name(frame.type) for frame in frames if frame.sender == "client"]
    return names[:1] == ["PING"] and "CLUSTER_CONNECT" in names and "NODE_ANNOUNCE" in names


def captured_rig() -> tuple[Rig, Host]:
    """One node of ours that takes the captured credentials, with the queue of the captured clusters."""

    def credentials(node: Node) -> None:
        node.broker.security.cluster_user = CAPTURED_USER
        node.broker.security.cluster_password = CAPTURED_PASSWORD
        if node.cluster is not None:
            node.cluster.settings.cluster_user = CAPTURED_USER
            node.cluster.settings.cluster_password = CAPTURED_PASSWORD

    rig = Rig()
    host = rig.node(queues=[queue("orders", "orders", ANYCAST)])
    make = host.make_node

    def with_credentials(ports: object) -> Node:
        node = make(ports)  # type: ignore[arg-type]
        credentials(node)
        return node

    host.make_node = with_credentials
    return rig, host


def test_there_are_conversations_of_every_kind() -> None:
    assert len(conversations()) > 30
    kinds = {frame.type for frames in conversations().values() for frame in frames}
    assert {packet_name(kind) for kind in kinds} >= {
        "CLUSTER_CONNECT", "NODE_ANNOUNCE", "CREATESESSION", "CREATESESSION_V2", "CREATE_PRODUCER",
        "CREATE_QUEUE_V2", "SESS_CREATECONSUMER", "SESS_FLOWTOKEN", "SESS_START", "SESS_SEND",
        "SESS_PRODUCER_REQUEST_CREDITS", "REMOVE_PRODUCER", "PACKETS_CONFIRMED", "DISCONNECT_V3",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(conversations()))
def test_what_a_real_node_says_is_answered_and_not_refused(name: str) -> None:
    frames = conversations()[name]
    rig, host = captured_rig()
    host.start()
    peer = RawPeer(rig, "artemis")
    peer.dial(host)
    for frame in frames:
        if frame.sender == "client":
            peer.write(frame.data)
            rig.run(0.01)
    rig.run(0.5)
    assert not rig.events("protocol_error"), rig.events("protocol_error")
    refused = [packet for packet in peer.got(ExceptionResponse)]
    assert not refused, [vars(packet) for packet in refused]
    says_goodbye = any(
        f.type < 0 or packet_name(f.type).startswith("DISCONNECT")
        for f in frames
        if f.sender == "client"
    )
    assert not peer.closed or says_goodbye
    # Every kind of answer the real node gave comes from ours, too.
    expected = {frame.type for frame in frames if frame.sender == "server"}
    expected &= {packet.type for packet in ANSWERS}
    assert expected <= {packet.type for _, _, packet in peer.packets}


ANSWERS = (
    ClusterConnectReply,
    CreateSessionResponse,
    NullResponse,
    QueueQueryResponseV3,
    ProducerCredits,
    ClusterTopologyV4,
)


class FakeArtemis(RawPeer):
    """Answers as the real node of one captured bridge connection did, with the frames it sent."""

    def __init__(self, rig: Rig, frames: list[GoldenFrame]) -> None:
        super().__init__(rig, "artemis")
        self.of_server = [frame for frame in frames if frame.sender == "server"]
        self.sent: list[Message] = []
        self.announced: list[NodeAnnounce] = []
        self.refusing = False

    def replay(self, conn: int, kind: type[Packet], channel: int, most: int = 1_000) -> None:
        """Captured frames of one type on one channel."""
        chosen = [f for f in self.of_server if f.type == kind.type and f.channel == channel]
        for frame in chosen[:most]:
            self.write(frame.data, conn)

    def on_bytes(self, conn: int, data: bytes) -> None:
        before = len(self.packets)
        super().on_bytes(conn, data)
        for _, channel, packet in self.packets[before:]:
            self.answer(conn, channel, packet)

    def answer(self, conn: int, channel: int, packet: Packet) -> None:
        if isinstance(packet, ClusterConnect) and packet.user == CHALLENGE_USER:
            self.send(ClusterConnectReply(False), CLUSTER_CHANNEL, conn)
        elif isinstance(packet, ClusterConnect):
            assert (packet.user, packet.password) == (CAPTURED_USER, CAPTURED_PASSWORD)
            self.replay(conn, ClusterConnectReply, CLUSTER_CHANNEL)
        elif isinstance(packet, NodeAnnounce):
            self.announced.append(packet)
        elif isinstance(packet, SubscribeTopologyV2):
            self.replay(conn, ClusterTopologyV4, 0)
        elif isinstance(packet, CreateSession | CreateSessionV2):
            self.replay(conn, CreateSessionResponse, 1, 1)
        elif isinstance(packet, CreateQueueV2):
            self.send(NullResponse(-1), channel, conn)
        elif isinstance(packet, CreateConsumer):
            self.replay(conn, QueueQueryResponseV3, channel)
        elif isinstance(packet, RequestProducerCredits):
            self.send(ProducerCredits(packet.credits, packet.address), channel, conn)
        elif isinstance(packet, SendMessage) and self.refusing and channel == 10:
            self.send(ExceptionResponse(110, "address is full", packet.correlation), channel, conn)
        elif isinstance(packet, SendMessage):
            self.send(NullResponse(packet.correlation), channel, conn)
            if packet.message.address == "activemq.management":
                self.replay(conn, ReceiveMessage, channel)
            else:
                self.sent.append(packet.message)


def bindings_told(frames: list[GoldenFrame]) -> dict[str, int]:
    """Cluster name -> binding id of the queues that the captured node told of."""
    told: dict[str, int] = {}
    for frame in frames:
        packet = codec.decode(frame.type, frame.payload, 136)
        if isinstance(packet, ReceiveMessage):
            properties = packet.message.properties
            if properties.get("_AMQ_NotifType") == "BINDING_ADDED":
                binding_id = properties.get("_AMQ_Binding_ID")
                assert isinstance(binding_id, int)
                told[str(properties.get("_AMQ_ClusterName"))] = binding_id
    return told


def meet_artemis() -> tuple[Rig, Host, FakeArtemis, str]:
    """Our node with a static connector to the captured one; its node id. `group` is a discovery group of ours."""
    frames = conversations()[BRIDGE]
    node_id = next(iter(bindings_told(frames)))[-36:]
    rig, host = captured_rig()
    make = host.make_node

    def to_artemis(ports: object) -> Node:
        node = make(ports)  # type: ignore[arg-type]
        assert node.cluster is not None
        settings = node.cluster.settings
        settings.connectors["artemis"] = ConnectorConfig("artemis", "artemis", PORT)
        settings.discovery_groups["group"] = DiscoveryGroupConfig("group")
        config: ClusterConnectionConfig = settings.cluster_connections[0]
        config.static_connectors = ["artemis"]
        return node

    host.make_node = to_artemis
    fake = FakeArtemis(rig, frames)
    fake.listen()
    for frame in frames:
        packet = codec.decode(frame.type, frame.payload, 136)
        if isinstance(packet, ClusterTopologyV4) and packet.primary is not None:
            if packet.node_id == node_id:
                rig.network.listen(fake, packet.primary.host, packet.primary.port)
    host.start()
    rig.until(lambda: node_id in cluster_of(host).peers)
    rig.until(lambda: cluster_of(host).peers[node_id].bindings.complete)
    return rig, host, fake, node_id


def test_our_bridge_understands_all_that_a_real_node_answers() -> None:
    rig, host, fake, node_id = meet_artemis()
    rig.run(3)
    assert not rig.events("protocol_error"), rig.events("protocol_error")
    assert fake.announced and fake.announced[0].node_id == "node-0"
    record = cluster_of(host).peers[node_id]
    assert record.bridge is not None and not fake.closed
    found = {name: binding.remote_id for name, binding in record.bindings.bindings.items()}
    told = bindings_told(conversations()[BRIDGE])
    assert found == {name: told[name] for name in told if name.endswith(node_id)}


def test_our_bridge_asks_what_a_real_bridge_asks_in_the_same_order() -> None:
    """Without what is about credits: ours needs none for the management address."""
    rig, _, fake, _ = meet_artemis()
    rig.run(1)
    left_out = {"PING", "SESS_PRODUCER_REQUEST_CREDITS", "PACKETS_CONFIRMED", "REMOVE_PRODUCER"}

    def session_part(kinds: list[tuple[int, int]]) -> list[tuple[int, str]]:
        named = [(channel, packet_name(kind)) for channel, kind in kinds]
        return [each for each in named if each[1] not in left_out]

    real = session_part(
        [(f.channel, f.type) for f in conversations()[BRIDGE] if f.sender == "client"]
    )
    bridge = max(
        {conn for conn, _, _ in fake.packets},
        key=lambda conn: sum(1 for each in fake.packets if each[0] == conn),
    )
    ours = session_part(
        [
            (channel, packet.type)
            for conn, channel, packet in fake.packets
            if conn == bridge
            and not (isinstance(packet, ClusterConnect) and packet.user == CHALLENGE_USER)
        ]
    )
    real = [each for each in real if each != (11, "CREATE_PRODUCER")]
    # The real one opens its second session after the answer to the first; the order on a channel is what counts.
    for channel in (0, 1, 3, 10, 11):
        assert [n for c, n in ours if c == channel][:5] == [n for c, n in real if c == channel][:5]


def test_a_message_goes_to_the_binding_id_that_the_real_node_told() -> None:
    rig, host, fake, node_id = meet_artemis()
    record = cluster_of(host).peers[node_id]
    binding = record.bindings.bindings[f"orders{node_id}"]
    binding.add_consumer(None, None)  # In this capture nobody consumes yet.
    producer = rig.client(host)
    producer.publish("orders", b"across", ANYCAST, colour="red")
    rig.until(lambda: len(fake.sent) == 1)
    sent = fake.sent[0]
    told = bindings_told(conversations()[BRIDGE])[f"orders{node_id}"]
    assert sent.properties.get("_AMQ_ROUTE_TO") == told.to_bytes(8, "big")
    assert bytes(sent.body) == b"across" and sent.properties.get("colour") == "red"
    rig.until(lambda: waiting(host, node_id) == 0)
    assert count(host, "orders") == 0


def test_a_message_that_the_peer_refuses_is_kept_and_offered_again() -> None:
    rig, host, fake, node_id = meet_artemis()
    fake.refusing = True
    cluster_of(host).peers[node_id].bindings.bindings[f"orders{node_id}"].add_consumer(None, None)
    rig.client(host).publish("orders", b"across", ANYCAST)
    rig.until(lambda: rig.events("forward_refused"))
    rig.run(3)
    assert waiting(host, node_id) == 1 and not fake.sent
    fake.refusing = False
    rig.until(lambda: waiting(host, node_id) == 0)
    assert [bytes(message.body) for message in fake.sent] == [b"across"]


def test_with_a_dead_letter_address_it_goes_there_instead() -> None:
    rig, host, fake, node_id = meet_artemis()
    broker = node_of(host).broker
    broker.settings.add("#", {"dead_letter_address": "DLQ"})
    broker.queue_registry.create(rig.world.now, QueueSpec("DLQ", "DLQ", ANYCAST))
    fake.refusing = True
    cluster_of(host).peers[node_id].bindings.bindings[f"orders{node_id}"].add_consumer(None, None)
    rig.client(host).publish("orders", b"across", ANYCAST)
    rig.until(lambda: count(host, "DLQ") == 1)
    assert waiting(host, node_id) == 0 and not fake.closed


def test_a_refusal_of_what_is_gone_meanwhile_changes_nothing() -> None:
    rig, host, fake, node_id = meet_artemis()
    broker = node_of(host).broker
    broker.settings.add("#", {"dead_letter_address": "DLQ"})
    broker.queue_registry.create(rig.world.now, QueueSpec("DLQ", "DLQ", ANYCAST))
    fake.refusing = True
    record = cluster_of(host).peers[node_id]
    record.bindings.bindings[f"orders{node_id}"].add_consumer(None, None)
    used_bytes = broker.memory.used_bytes
    rig.client(host).publish("orders", b"across", ANYCAST)
    while record.forwarded == 0:
        assert rig.world.step()
    assert not rig.events("forward_refused")
    broker.queue_registry.delete(rig.world.now, record.forward.name, "an operator deletes it")
    rig.until(lambda: rig.events("forward_refused"))
    rig.run(1)
    assert count(host, "DLQ") == 0
    assert broker.memory.used_bytes == used_bytes


def test_what_a_real_node_says_of_a_member_that_it_has_lost_sight_of_is_not_passed_on() -> None:
    """It says the same of one that leaves (BridgeImpl.fail), so its word is no news for others."""
    rig, host, fake, node_id = meet_artemis()
    other = next(each for each in cluster_of(host).topology.members if each not in ("node-0", node_id))
    client = RawPeer(rig, "client")
    client.log_in(host)
    rig.until(lambda: client.got(ClusterTopologyV4))
    bridge = max(conn for conn, _, packet in fake.packets if isinstance(packet, CreateQueueV2))
    fake.send(ClusterTopologyV2(exit=True, node_id=other, event_id=1 << 62), 0, bridge)
    rig.until(lambda: other not in cluster_of(host).topology.members)
    rig.run(1)
    assert not client.got(ClusterTopologyV2)


@pytest.mark.parametrize("place", ["artemis", "stranger"])
def test_a_linked_artemis_that_discovery_names_is_the_target_of_a_scale_down_and_a_stranger_is_not(place: str) -> None:
    rig, host, fake, node_id = meet_artemis()
    departure(host).choice.config = ScaleDownConfig(discovery_group="group")
    target = cluster_of(host).peers[node_id].target
    assert target is not None
    stranger = RawPeer(rig, "stranger")
    stranger.listen()
    if place == "stranger":
        target = TransportConfiguration.tcp("netty", "stranger", PORT)

    def sessions() -> list[str]:
        names = [each.name for each in fake.got(CreateSession) if isinstance(each, CreateSession)]
        return [name for name in names if name.startswith("scaledown.")]

    part = begin(rig, host)
    data = encode_announcement(Announcement(node_id, "unique", [target]))
    node_of(host).on_datagram(rig.world.now, "discovery/group", data)
    rig.until(lambda: sessions() or stranger.got(ClusterConnect))
    if place == "stranger":
        stranger.send(ClusterConnectReply(False), CLUSTER_CHANNEL)
        rig.run(1)
        assert "does not prove the cluster-password" in part.why
    assert len(sessions()) == (3 if place == "artemis" else 0)
    logins = [each.user for each in stranger.got(ClusterConnect) if isinstance(each, ClusterConnect)]
    assert set(logins) == ({CHALLENGE_USER} if place == "stranger" else set())
