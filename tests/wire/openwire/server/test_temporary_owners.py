"""Whose a temporary destination is: of the connection whose id its name has, over each door and after a failover."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import QUEUE_EXISTS, SECURITY
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.queue import CreateAddress, CreateSharedQueueV2, DeleteQueue
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ConsumerId, SessionId
from atalanta.wire.openwire.commands.producers import DestinationInfo, SessionInfo
from tests.wire.classic_server import ThreeProtocols
from tests.wire.core.server.server_rig import queue_request
from tests.wire.openwire.server.bridge_rig import advise, duplex, taken
from tests.wire.openwire.server.openwire_rig import OpenWireClient

VICTIM = "ID:victim"
OWN = ActiveMQTempQueue(f"{VICTIM}:1")
NAME = f"{VICTIM}:1"
UUID = "0b8d4a5e-c5a1-11f0-9d3e-0242ac110002"
SECURITY_EXCEPTION = "java.lang.SecurityException"


class World(ThreeProtocols):
    """All users may do all but manage the node, as in many files; `low` has no right on advisories."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("anna", "bob", "low", "anna2", "anna3"):
            self.security.add_user(name, name, [name])
        rights: dict[str, list[str]] = dict.fromkeys(PERMISSIONS, ["admin", "anna", "bob", "low", "anna2", "anna3"])
        rights["manage"] = ["admin"]
        self.security.add_rule("#", rights)
        bridges = ["admin", "bob", "anna2", "anna3"]
        self.security.add_rule("ActiveMQ.Advisory.#", {**rights, "consume": bridges})

    def victim(self, comes_back: bool = True) -> OpenWireClient:
        return self.openwire_client(
            "victim", "anna", connection_id="victim", fault_tolerant=True, failover_reconnect=comes_back
        )

    def count(self, queue: str = NAME) -> int:
        self.settle()
        return self.broker.queues[queue].message_count


@pytest.fixture
def world() -> World:
    return World()


def made(destination: ActiveMQDestination = OWN, operation: int = 0) -> DestinationInfo:
    return DestinationInfo(ConnectionId(VICTIM), destination, operation)


def demand(destination: ActiveMQDestination = OWN) -> ConsumerInfo:
    return ConsumerInfo(ConsumerId(VICTIM, 1, 1), destination=destination, prefetch_size=10)


def brought(world: World, user: str = "admin", destination: ActiveMQDestination = OWN) -> OpenWireClient:
    """The bridge of the broker where the client is, which has brought its destination and its consumer."""
    other, _ = duplex(world, "", user)
    advise(other, made(destination), "TempQueue")
    advise(other, demand(destination))
    return other


# -- a failover to a node that a bridge has told of the destination -------------------------------
@pytest.mark.parametrize("topic", [False, True])
def test_the_creator_takes_its_destination_from_a_bridge(world: World, topic: bool) -> None:
    own = ActiveMQTempTopic(NAME) if topic else OWN
    other, replier = brought(world, "bob", own), world.openwire_client("r", "bob")
    replier.publish("there", own)
    assert taken(other) == ["there"]
    client = world.victim()
    client.succeeds(made(own))
    client.consume(own)
    replier.publish("here", own)
    assert client.texts() == ["here"]
    advise(other, demand(own))  # of its former connection
    assert taken(other) == []
    advise(other, made(own, 1), "TempQueue")  # the other broker has seen its end
    replier.publish("again", own)
    assert client.texts() == ["again"]
    world.lost(other.conn)
    replier.publish("and again", own)
    assert client.texts() == ["and again"]
    world.lost(client.conn)
    assert NAME not in world.broker.addresses and not world.broker.address_registry.temporaries.owners
    validate(world.broker)


def test_replies_that_wait_for_a_bridge_come_to_the_creator(world: World) -> None:
    """Also one that was sent over the bridge, and not answered."""
    other, replier = brought(world), world.openwire_client("r", "bob")
    replier.publish("1", OWN)
    assert len(other.output()) == 1
    client = world.victim()
    client.succeeds(made())
    replier.publish("2", OWN)
    assert world.count() == 2
    client.consume(OWN)
    assert client.texts() == ["1", "2"]
    world.lost(other.conn)
    assert world.count() == 2
    validate(world.broker)


def test_a_creator_without_the_permission_takes_nothing(world: World) -> None:
    other = brought(world)
    rights: dict[str, list[str]] = dict.fromkeys(PERMISSIONS, ["admin", "bob"])
    world.security.add_rule("#", rights)
    kind, why = world.victim().fails(made())
    assert kind == SECURITY_EXCEPTION and "CREATE_NON_DURABLE_QUEUE" in why
    world.openwire_client("r", "bob").publish("1", OWN)
    assert taken(other) == ["1"]


def test_a_bridge_takes_nothing_of_a_client(world: World) -> None:
    client = world.victim()
    client.succeeds(made())
    client.consume(OWN)
    other = brought(world)
    world.openwire_client("r", "bob").publish("1", OWN)
    assert taken(other) == [] and client.texts() == ["1"]
    world.lost(other.conn)
    assert NAME in world.broker.queues


def test_only_who_may_see_the_demand_brings_destinations_as_a_bridge(world: World) -> None:
    """Any client can say that it is a bridge, and name the next destination of another one."""
    other = brought(world, "low")
    assert NAME not in world.broker.queues
    whys = [str(fields["why"]) for name, fields in world.trace.events if name == "network_demand_refused"]
    assert any("CONSUME" in why and "ActiveMQ.Advisory.Consumer" in why for why in whys), whys
    client = world.victim()
    client.succeeds(made())
    assert taken(other) == []


# -- strangers ------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["nobody", "bridge", "owner"])
@pytest.mark.parametrize("user", ["bob", "admin", "anna"])
def test_a_name_with_the_id_of_another_connection_is_refused(world: World, way: str, user: str) -> None:
    if way == "bridge":
        brought(world)
    elif way == "owner":
        world.victim().succeeds(made())
    stranger = world.openwire_client("s", user)
    for destination in (OWN, ActiveMQTempTopic(NAME), ActiveMQTempQueue(f"{stranger.id}:1:1")):
        kind, why = stranger.fails(made(destination))
        assert kind == SECURITY_EXCEPTION and (destination.physical_name or "") in why
        kind, why = stranger.fails(stranger.consumer_info(destination))
        assert "connection" in why
    if way != "owner":
        client = world.victim()
        client.succeeds(made())
        client.consume(OWN)
        stranger.publish("1", OWN)
        assert client.texts() == ["1"]


def test_a_client_that_tells_the_id_of_another_one_gets_no_names(world: World) -> None:
    """Until the other one is gone: of two connections with one id the node does not know more than who came first."""
    client = world.victim()
    thief = world.openwire_client("thief", "bob", connection_id="victim")
    for destination in (OWN, ActiveMQTempQueue(f"{VICTIM}:2")):
        kind, why = thief.fails(made(destination))
        assert kind == SECURITY_EXCEPTION and "another client" in why
    client.succeeds(made())
    world.lost(client.conn)
    thief.succeeds(made())


def test_a_failover_client_whose_former_connection_is_still_there_has_its_names(world: World) -> None:
    world.victim(False).succeeds(made())
    again = world.victim()
    again.succeeds(made())
    again.consume(OWN)
    again.publish("1", OWN)
    assert again.texts() == ["1"]


class BusyWorld(World):
    """Its node is busy with what the end of another connection has caused."""

    def back(self) -> OpenWireClient:
        """The victim's next connection, which has not logged in."""
        again = OpenWireClient(self, "victim")
        again.greet()
        return again

    def lose(self, conn: int, name: str = NAME) -> None:
        """The connection with that queue is lost while the messages of another one return to theirs."""
        self.broker.store.tasks.most = 5
        reader = self.openwire_client("reader")
        for number in range(100):
            reader.publish(str(number), "busy")
        reader.consume("busy")
        assert len(reader.texts()) == 100
        self.lost(reader.conn)
        self.lost(conn)
        assert name in self.broker.queues

    def restore(self, client: OpenWireClient, own: ActiveMQDestination = OWN) -> None:
        """The client sends at once what FailoverTransport does, with a temporary destination and its consumer."""
        data = b""
        login = client.login_info("victim", "anna", "anna", fault_tolerant=True, failover_reconnect=True)
        for command in (login, SessionInfo(SessionId(client.id, 1)), made(own), demand(own)):
            client.commands += 1
            command.command_id, command.response_required = client.commands, True
            data += client.decoder.format.encode(command)
        client.feed(data)
        self.verify()
        answers = client.output()
        assert [each.__class__.__name__ for each in answers] == ["Response"] * 4, answers
        self.start_returned()


@pytest.mark.parametrize("kind", [ActiveMQTempQueue, ActiveMQTempTopic])
def test_a_failover_client_has_its_names_before_its_former_ones_are_deleted(kind: type[ActiveMQDestination]) -> None:
    world = BusyWorld()
    former = world.victim()
    former.succeeds(made(kind(NAME)))
    former.consume(kind(NAME))
    client = world.back()
    world.lose(former.conn)
    world.restore(client, kind(NAME))
    world.openwire_client("r", "bob").publish("1", kind(NAME))
    assert client.texts() == ["1"]
    world.lost(client.conn)
    world.settle()
    assert NAME not in world.broker.addresses and not world.broker.address_registry.temporaries.owners
    validate(world.broker)


def test_a_creator_has_the_destination_of_a_bridge_that_is_lost() -> None:
    world = BusyWorld()
    other, client = brought(world), world.back()
    world.lose(other.conn)
    world.restore(client)
    world.openwire_client("r", "bob").publish("1", OWN)
    assert client.texts() == ["1"]


@pytest.mark.parametrize("request_again", [
    queue_request(UUID, routing_type=1, temporary=True, durable=False),
    CreateSharedQueueV2(UUID, UUID, durable=False, routing_type=1),
])  # fmt: skip
def test_a_core_client_creates_a_queue_before_the_former_one_is_deleted(request_again: Packet) -> None:
    """A Java client does so behind each failover, for the consumers of queues that are not durable."""
    world = BusyWorld()
    former, client = world.login("anna"), world.login("anna")
    former.succeeds(queue_request(UUID, routing_type=1, temporary=True, durable=False))
    world.lose(former.conn, UUID)
    client.send(request_again)
    client.send(CreateConsumer(0, UUID))
    client.send(FlowToken(0, -1))
    world.settle()
    client.publish(UUID, "1")
    world.settle()
    assert client.bodies() == ["1"]
    assert not [each for _, each in client.seen if isinstance(each, ExceptionResponse)]


def test_the_names_of_a_connection_are_refused_at_the_doors_of_other_protocols(world: World) -> None:
    """As temporary, automatic or ordinary queues, or as an address: senders would send there."""
    core, stomp = world.login("bob"), world.stomp_user("bob")
    for request in (
        queue_request(NAME, routing_type=1, temporary=True, durable=False), queue_request(NAME),
        queue_request("mine", NAME, 0), CreateAddress(NAME, [0], auto_created=True, requires_response=True),
    ):  # fmt: skip
        code, why = core.fails(request)
        assert code == SECURITY and NAME in why, request
    for routing_type in (0, 1):
        core.publish(NAME, "1", routing_type=routing_type)
    assert NAME in stomp.error("SEND", "1", destination=f"/queue/{NAME}")
    assert NAME in world.stomp_user("bob").error("SUBSCRIBE", destination=f"/queue/{NAME}", id="1")
    assert NAME in world.stomp_user("bob").error("SUBSCRIBE", destination=f"/topic/{NAME}", id="1")
    assert NAME not in world.broker.addresses
    client = world.victim()
    client.succeeds(made())
    client.consume(OWN)
    world.login("bob").publish(NAME, "reply")
    assert client.texts() == ["reply"]


@pytest.mark.parametrize("protocol", ["OpenWire", "CORE", "STOMP"])
def test_nobody_else_reads_a_temporary_queue_or_ends_it(world: World, protocol: str) -> None:
    """The name is no secret: those who reply know it. They have all rights on all addresses."""
    name = UUID
    if protocol == "OpenWire":
        name = NAME
        world.victim().succeeds(made())
    elif protocol == "CORE":
        world.login("anna").succeeds(queue_request(name, routing_type=1, temporary=True, durable=False))
    else:
        world.stomp_user("anna").receipt("SUBSCRIBE", destination="/temp-queue/q", id="1")
        (name,) = [each for each in world.broker.queues if len(each) == len(UUID)]
        world.broker.queues[name].pause()
    core, openwire = world.login("bob"), world.openwire_client("o", "bob")
    core.publish(name, "reply")
    assert isinstance(core.consume(name), ExceptionResponse)
    code, _ = core.fails(DeleteQueue(name))
    assert code == SECURITY
    code, _ = core.fails(queue_request("copies", name, 1))
    assert code == SECURITY
    code, _ = core.fails(queue_request(name, routing_type=1, temporary=True, durable=False))
    assert code in (QUEUE_EXISTS, SECURITY)
    for destination in (ActiveMQQueue(name), ActiveMQTempQueue(name)):
        openwire.fails(openwire.consumer_info(destination))
    kind, _ = openwire.fails(made(ActiveMQQueue(name), 1))
    assert kind == SECURITY_EXCEPTION
    openwire.call(made(ActiveMQTempQueue(name), 1))
    assert "permission" in world.stomp_user("bob").error("SUBSCRIBE", destination=f"/queue/{name}", id="1")
    assert world.count(name) == 1
    validate(world.broker)


def test_another_connection_of_the_same_user_does_not_read_it_by_its_plain_name(world: World) -> None:
    world.victim().succeeds(made())
    other = world.openwire_client("o", "anna")
    _, why = other.fails(other.consumer_info(ActiveMQQueue(NAME)))
    assert "another connection" in why
    _, why = other.fails(other.consumer_info(ActiveMQQueue(f"{NAME}::{NAME}")))
    assert "another connection" in why


# -- several ways ---------------------------------------------------------------------------------
@pytest.mark.parametrize("told", [True, False])
def test_another_bridge_brings_a_destination_when_the_first_way_has_ended(world: World, told: bool) -> None:
    """Its consumer is no refusal until then: an operator has nothing to do."""
    first, second, third = brought(world), brought(world, "bob"), brought(world, "anna2")
    replier = world.openwire_client("r", "bob")
    replier.publish("1", OWN)
    assert (taken(first), taken(second), taken(third)) == (["1"], [], [])
    if told:
        advise(first, made(OWN, 1), "TempQueue")
    else:
        world.lost(first.conn)
    world.beat()
    replier.publish("2", OWN)
    assert (taken(second), taken(third)) == (["2"], [])
    world.lost(second.conn)
    world.beat()
    replier.publish("3", OWN)
    assert taken(third) == ["3"]
    advise(third, made(OWN, 1), "TempQueue")
    world.beat()
    assert NAME not in world.broker.queues
    assert not world.openwire.node_clients.bridges.other_ways.by_name
    assert not [name for name, _ in world.trace.events if name == "network_demand_refused"]


def test_a_way_that_has_ended_is_none(world: World) -> None:
    first, second = brought(world), brought(world, "bob")
    advise(second, made(OWN, 1), "TempQueue")
    advise(first, made(OWN, 1), "TempQueue")
    world.beat()
    assert NAME not in world.broker.queues
    third, fourth = brought(world, "anna2"), brought(world, "anna3")
    world.lost(fourth.conn)
    world.lost(third.conn)
    world.beat()
    assert NAME not in world.broker.queues and not world.openwire.node_clients.bridges.other_ways.by_name
    validate(world.broker)
