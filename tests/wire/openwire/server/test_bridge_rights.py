"""The rights of a network bridge at the end that accepts it: those of the user who has logged in, and no others."""

from __future__ import annotations

import pytest

from atalanta.cluster.networks.duplex_input import DuplexInput, DuplexOwner
from atalanta.cluster.networks.link import CONNECTOR_USER
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.kernel.security.security import PERMISSIONS, Identity
from atalanta.wire.openwire.commands.brokers import BrokerSubscriptionInfo, NetworkBridgeFilter
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ConsumerId
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse
from atalanta.wire.openwire.encoding.structure import Command, DataStructure
from atalanta.wire.openwire.options import WireFormatOptions
from atalanta.wire.openwire.server.sessions.errors import FINAL_FOR_BRIDGES
from tests.wire.openwire.server.bridge_rig import A, advise, duplex, taken
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer

GUEST = "guest"
NEWS, EUROPE = ActiveMQTopic("news"), ActiveMQTopic("news.eu")
KEPT = "NC_A_inbound_localhost.NC-DS_localhost_news"
ALL_OF_QUEUES = ("createDurableQueue", "deleteDurableQueue", "createNonDurableQueue", "deleteNonDurableQueue")
RETRY_NS = 5_000_000_000


def grant(server: OpenWireServer, address: str, *permissions: str) -> None:
    """Gives guest these permissions on the address; admin keeps all."""
    rule = {each: ["admin", GUEST] if each in permissions else ["admin"] for each in PERMISSIONS}
    server.security.add_rule(address, rule)


def demand(number: int, destination: ActiveMQDestination, **more: str) -> ConsumerInfo:
    """A consumer at the other broker."""
    info = ConsumerInfo(ConsumerId("ID:there", 1, number), destination=destination, prefetch_size=10)
    for name, value in more.items():
        setattr(info, name, value)
    return info


def durable(number: int, topic: ActiveMQDestination = NEWS, name: str = "s") -> ConsumerInfo:
    return demand(number, topic, client_id="reader", subscription_name=name)


def refusals(server: OpenWireServer) -> list[str]:
    """The reasons of all refused demands so far."""
    return [str(fields["why"]) for name, fields in server.trace.events if name == "network_demand_refused"]


def kept(server: OpenWireServer) -> str:
    """The name of the queue that keeps the messages of the topic for the other broker."""
    name = server.broker.config.name
    return f"NC_A_inbound_{name}.NC-DS_{name}_news"


def count(server: OpenWireServer, queue: str) -> int:
    return server.broker.queues[queue].message_count


# -- messages -------------------------------------------------------------------------------------
@pytest.mark.parametrize("way", ["static", "advisory", "wildcard", "composite"])
def test_a_bridge_takes_no_message_that_its_user_may_not_consume(server: OpenWireServer, way: str) -> None:
    sender = server.openwire_client()
    sender.publish("secret", "secret")
    grant(server, "open", "consume")
    sender.publish("open", "open")
    static = "staticallyIncludedDestinations=[queue\\://secret,queue\\://open]\nuserName=admin\n"
    other, _ = duplex(server, static if way == "static" else "userName=admin\n", GUEST)
    if way == "wildcard":
        advise(other, demand(1, ActiveMQQueue(">")))
    elif way == "composite":
        advise(other, demand(1, ActiveMQQueue("secret,open")))
    elif way == "advisory":
        advise(other, demand(1, ActiveMQQueue("secret")))
        advise(other, demand(2, ActiveMQQueue("open")))
    assert taken(other) == ["open"]
    assert count(server, "secret") == 1
    if way != "wildcard":
        (why,) = refusals(server)
        assert why.startswith("queue://secret: ") and "permission='CONSUME'" in why and "User: guest" in why
    sender.publish("open again", "open")
    assert taken(other) == ["open again"]


def test_a_wildcard_of_a_bridge_names_each_queue_that_is_left_out_once(server: OpenWireServer) -> None:
    sender = server.openwire_client()
    sender.publish("secret", "secret")
    other, _ = duplex(server, "", GUEST)
    advise(other, demand(1, ActiveMQQueue(">")))
    advise(other, demand(2, ActiveMQQueue("sec*")))
    advise(other, RemoveInfo(ConsumerId("ID:there", 1, 1)))
    advise(other, demand(3, ActiveMQQueue(">")))
    assert len([why for why in refusals(server) if "queue secret" in why and "'CONSUME'" in why]) == 1
    assert taken(other) == []


def test_topics_need_their_permissions(server: OpenWireServer) -> None:
    """A subscription is a queue, which is created and deleted with the consumer."""
    other, _ = duplex(server, "", GUEST)
    for number, permissions in enumerate(((), ("consume",), ("createNonDurableQueue",)), 1):
        grant(server, "news", *permissions)
        advise(other, demand(number, NEWS))
        server.openwire_client(f"c{number}").publish("1", NEWS)
        assert taken(other) == []
        advise(other, RemoveInfo(ConsumerId("ID:there", 1, number)))
    assert ["CONSUME" in why for why in refusals(server)] == [True, False, True]
    assert "CREATE_NON_DURABLE_QUEUE" in refusals(server)[1] and "address news" in refusals(server)[1]
    grant(server, "news", "consume", "createNonDurableQueue", "deleteNonDurableQueue", "createAddress")
    advise(other, demand(9, NEWS))
    server.openwire_client("d").publish("2", NEWS)
    assert taken(other) == ["2"]


@pytest.mark.parametrize("lost", [True, False])
def test_the_queue_of_a_topic_ends_with_its_demand(server: OpenWireServer, lost: bool) -> None:
    """Whoever may subscribe may end that: it needs no right, as it ends with the connection in any case."""
    grant(server, "news", "consume", "createNonDurableQueue", "createAddress")
    other, _ = duplex(server, "", GUEST)
    advise(other, demand(1, NEWS))
    assert len(server.broker.queues) == 1
    if lost:
        server.lost(other.conn)
    else:
        advise(other, RemoveInfo(ConsumerId("ID:there", 1, 1)))
    assert server.broker.queues == {} and refusals(server) == []


def test_a_refused_demand_takes_no_other_one_with_it(server: OpenWireServer) -> None:
    """Neither one that it covers, nor the plain one of the same topic whose place a durable one would take."""
    plain = ("consume", "createNonDurableQueue", "deleteNonDurableQueue", "createAddress")
    grant(server, "news", *plain)
    grant(server, "news.eu", *plain)
    other, _ = duplex(server, "", GUEST)
    advise(other, demand(1, ActiveMQTopic("news.>")))
    advise(other, demand(2, EUROPE))
    advise(other, demand(3, NEWS))
    advise(other, durable(4))
    advise(other, demand(5, NEWS))
    sender = server.openwire_client()
    sender.publish("eu", EUROPE)
    sender.publish("all", NEWS)
    assert taken(other) == ["eu", "all"]
    assert kept(server) not in server.broker.queues
    assert len(refusals(server)) == 2 and "CREATE_DURABLE_QUEUE" in refusals(server)[1]


def test_a_refused_demand_is_named_once_and_served_when_its_permission_comes(server: OpenWireServer) -> None:
    sender = server.openwire_client()
    sender.publish("1", "q")
    for _ in range(3):
        other, _ = duplex(server, "", GUEST)
        advise(other, demand(1, ActiveMQQueue("q")))
        assert taken(other) == []
    assert len(refusals(server)) == 1
    grant(server, "q", "consume")
    server.now += RETRY_NS
    server.beat()
    assert taken(other) == ["1"]
    sender.publish("2", "q")
    assert taken(other) == ["2"] and len(refusals(server)) == 1


def test_a_demand_is_served_when_somebody_else_has_created_its_queue(server: OpenWireServer) -> None:
    """The user of the bridge may consume, but create no queue."""
    grant(server, "q", "consume")
    other, _ = duplex(server, "", GUEST)
    advise(other, demand(1, ActiveMQQueue("q")))
    (why,) = refusals(server)
    assert "CREATE_DURABLE_QUEUE" in why and "queue q" in why
    server.openwire_client().publish("1", "q")
    server.beat()
    assert taken(other) == ["1"]


def test_many_refusals_are_few_events(server: OpenWireServer) -> None:
    other, _ = duplex(server, "", GUEST)
    for number in range(1_000):
        advise(other, demand(number, ActiveMQQueue(f"q{number}")))
    assert 0 < len(refusals(server)) <= 100
    assert server.trace.counters["network_demands_refused"] == 1_000


def test_a_consumer_without_rights_is_refused_before_its_filter_is_made(server: OpenWireServer) -> None:
    """One with rights gets its messages: a very high messageTTL is any number."""
    server.openwire_client().publish("1", "q")
    for user, answered in ((GUEST, False), ("admin", True)):
        client = server.openwire_client(f"c-{user}", user)
        predicate = NetworkBridgeFilter(1, A, (1 << 31) - 1, 1)
        info = client.consumer_info("q", additional_predicate=predicate)
        if answered:
            client.succeeds(info)
            assert client.texts() == ["1"]
        else:
            name, why = client.fails(info)
            assert name == "java.lang.SecurityException" and "permission='CONSUME'" in why


# -- durable subscriptions ------------------------------------------------------------------------
def test_a_durable_subscription_needs_its_permission(server: OpenWireServer) -> None:
    grant(server, "news", "consume", "createNonDurableQueue", "createAddress")
    other, _ = duplex(server, "", GUEST)
    advise(other, durable(1))
    assert kept(server) not in server.broker.queues
    (why,) = refusals(server)
    assert "CREATE_DURABLE_QUEUE" in why and "address news" in why


@pytest.mark.parametrize("conduit", ["true", "false"])
def test_a_durable_subscription_is_taken_up_again_by_its_user_alone(server: OpenWireServer, conduit: str) -> None:
    """Also after a restart, and although the other user has all rights on the topic."""
    properties = f"conduitSubscriptions={conduit}\n"
    grant(server, "news", "consume", *ALL_OF_QUEUES, "createAddress")
    other, _ = duplex(server, properties)
    advise(other, durable(1))
    server.lost(other.conn)
    server.openwire_client().publish("1", NEWS)
    (name,) = [each for each in server.broker.queues if "inbound" in each]
    for restarted in (False, True):
        if restarted:
            server.restart()
        stranger, _ = duplex(server, properties, GUEST)
        assert taken(stranger) == []
        advise(stranger, durable(1))
        assert taken(stranger) == []
        advise(stranger, RemoveSubscriptionInfo(None, "s", "reader"))
        assert count(server, name) == 1
        server.lost(stranger.conn)
    assert any("belongs to user 'admin'" in why for why in refusals(server))
    again, _ = duplex(server, properties)
    advise(again, durable(1))
    assert taken(again) == ["1"]


@pytest.mark.parametrize("early", ["network bridge", ""])
def test_a_durable_subscription_of_an_earlier_build_belongs_to_the_bridge_that_takes_it_up(
    server: OpenWireServer, early: str
) -> None:
    other, _ = duplex(server)
    advise(other, durable(1))
    server.lost(other.conn)
    server.openwire_client().publish("1", NEWS)
    changes = QueueChanges()
    changes.user = early
    server.broker.queue_registry.update(server.now, kept(server), changes)
    server.settle()
    server.restart()
    stranger, _ = duplex(server, "", GUEST)
    assert taken(stranger) == []  # it may not consume
    server.lost(stranger.conn)
    grant(server, "news", "consume", *ALL_OF_QUEUES, "createAddress")
    again, _ = duplex(server)
    assert taken(again) == ["1"]
    server.lost(again.conn)
    server.openwire_client("d").publish("2", NEWS)
    server.restart()
    stranger, _ = duplex(server, "", GUEST)
    assert taken(stranger) == [] and count(server, kept(server)) == 1


def test_a_subscription_of_a_connector_of_this_node_is_none_of_a_neighbour(server: OpenWireServer) -> None:
    """The other broker chooses the names of connector and broker: it could name those of the operator's own file."""
    other, _ = duplex(server)
    advise(other, durable(1))
    server.lost(other.conn)
    changes = QueueChanges()
    changes.user = CONNECTOR_USER
    server.broker.queue_registry.update(server.now, kept(server), changes)
    server.openwire_client().publish("1", NEWS)
    for user in ("admin", GUEST):
        grant(server, "news", "consume", *ALL_OF_QUEUES)
        stranger, _ = duplex(server, "", user)
        assert taken(stranger) == []
        advise(stranger, durable(1))
        assert taken(stranger) == [] and count(server, kept(server)) == 1
    assert f"belongs to user '{CONNECTOR_USER}'" in refusals(server)[0]


def test_the_list_of_subscriptions_has_those_that_the_user_may_consume(server: OpenWireServer) -> None:
    subscriber = server.openwire_client("me")
    for topic in ("news", "secret"):
        subscriber.close(subscriber.consume(ActiveMQTopic(topic), subscription_name=topic))
    grant(server, "news", "consume")
    for user, names in ((GUEST, ["news"]), ("admin", ["news", "secret"])):
        other, _ = duplex(server, "syncDurableSubs=true\n", user)
        (listed,) = other.of_kind(BrokerSubscriptionInfo)
        assert [each.subscription_name for each in listed.subscription_infos or []] == names


def test_the_list_of_subscriptions_is_for_brokers_that_know_it(server: OpenWireServer) -> None:
    for version, count_of_lists in ((9, 0), (11, 0), (12, 1)):
        other, _ = duplex(server, "syncDurableSubs=true\n", options=WireFormatOptions(version=version))
        assert len(other.of_kind(BrokerSubscriptionInfo)) == count_of_lists
        server.lost(other.conn)


def test_a_client_ends_the_subscriptions_of_its_own_client_id_only(server: OpenWireServer) -> None:
    subscriber = server.openwire_client("me")
    subscriber.close(subscriber.consume(NEWS, subscription_name="s"))
    stranger = server.openwire_client("other")
    name, why = stranger.fails(RemoveSubscriptionInfo(ConnectionId(stranger.id), "s", "me"))
    assert name == "java.lang.SecurityException" and "client id 'me'" in why
    assert "me.s" in server.broker.queues
    subscriber.succeeds(RemoveSubscriptionInfo(ConnectionId(subscriber.id), "s", "me"))
    assert "me.s" not in server.broker.queues


# -- temporary destinations -----------------------------------------------------------------------
def test_temporary_queues_of_the_other_broker_need_their_permissions(server: OpenWireServer) -> None:
    temporary = ActiveMQTempQueue("ID:there:1:1")

    def announce(other: OpenWireClient, data: DataStructure) -> None:
        advise(other, data, "TempQueue")

    other, _ = duplex(server, "", GUEST)
    announce(other, DestinationInfo(ConnectionId("ID:there"), temporary, 0))
    grant(server, "ActiveMQ.Advisory.#", "consume")  # else any client could say that it is a bridge
    announce(other, DestinationInfo(ConnectionId("ID:there"), temporary, 0))
    assert "ID:there:1:1" not in server.broker.queues
    bridges, why = refusals(server)
    assert "CONSUME" in bridges and "ActiveMQ.Advisory.Consumer" in bridges and "ID:there:1:1" in bridges
    assert "CREATE_NON_DURABLE_QUEUE" in why and "ID:there:1:1" in why
    grant(server, "#", "consume", "createNonDurableQueue", "deleteNonDurableQueue", "createAddress")
    announce(other, DestinationInfo(ConnectionId("ID:there"), temporary, 0))
    advise(other, demand(1, temporary))
    server.openwire_client().publish("reply", temporary)
    assert taken(other) == ["reply"]
    announce(other, DestinationInfo(ConnectionId("ID:there"), temporary, 1))
    assert "ID:there:1:1" not in server.broker.queues


# -- the bridge beside applications ---------------------------------------------------------------
def test_messages_go_back_although_the_bridge_has_an_ordinary_user(server: OpenWireServer) -> None:
    """A consumer of a bridge is no application: what came from the other broker returns when nobody takes it here."""
    grant(server, "q", "consume", "send", "createDurableQueue", "createAddress")
    other, _ = duplex(server, "", GUEST)
    advise(other, demand(1, ActiveMQQueue("q")))
    message = other.message("1", "q")
    message.broker_path = [A]
    near = server.openwire_client()
    consumer = near.consume("q", prefetch=0)
    other.succeeds(message)
    near.close(consumer)
    assert taken(other) == []
    server.now += RETRY_NS
    server.beat()
    assert taken(other) == ["1"]


def test_the_session_of_a_bridge_is_none_of_its_user(server: OpenWireServer) -> None:
    """Neither for max-sessions nor in the number of connections."""
    before = server.broker.clients.client_count()
    duplex(server)
    assert server.broker.clients.client_count() == before + 1


# -- what the other end of a connector of this node sends ------------------------------------------
class Answers(DuplexOwner):
    """The connection to the other broker; it keeps what is written."""

    def __init__(self) -> None:
        self.written: list[Command] = []

    def answer(self, command: Command) -> None:
        self.written.append(command)

    def write(self, command: Command) -> None:
        self.written.append(command)


def test_a_message_that_is_never_taken_is_refused_so_that_a_bridge_of_classic_goes_on(server: OpenWireServer) -> None:
    """After another exception it would connect and send the message again, for ever."""
    answers, bridges = Answers(), server.openwire.node_clients.bridges
    user = Identity(CONNECTOR_USER, (), True)
    there = DuplexInput(answers, server.host, bridges, server.now, "NC_A_outbound", user)
    message = server.openwire_client().message("x", "q", {"AMQ_SCHEDULED_PERIOD": 1, "AMQ_SCHEDULED_REPEAT": 5})
    message.broker_path, message.response_required = [A], True
    assert there.give(server.now, message)
    (answer,) = answers.written
    assert isinstance(answer, ExceptionResponse) and answer.exception is not None
    assert answer.exception.class_name == FINAL_FOR_BRIDGES
    assert "AMQ_SCHEDULED_PERIOD" in (answer.exception.message or "")
