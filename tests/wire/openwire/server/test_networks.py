"""The bridge of another broker, as a client: its greeting, its messages and its repeats."""

from __future__ import annotations

from atalanta.wire.openwire.commands.brokers import BrokerInfo, BrokerSubscriptionInfo
from atalanta.wire.openwire.commands.connections import ConnectionInfo, RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.commands.responses import Response
from tests.wire.openwire.server.bridge_rig import A, advise, bridge, duplex
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer, id_of, text
from tests.wire.stomp.stomp_rig import StompServer


class World(OpenWireServer, StompServer):
    """A server of all three protocols."""


def forwarded(client: OpenWireClient, body: str, number: int, *path: str, queue: str = "q") -> ActiveMQTextMessage:
    """A message that a sender at another broker gave the number."""
    made = client.message(body, queue)
    made.message_id = MessageId(None, ProducerId("ID:sender", 1, 1), number)
    made.broker_path = [BrokerId(each) for each in path]
    return made


def test_messages_of_a_bridge_keep_their_id_and_path(server: OpenWireServer) -> None:
    other, consumer = bridge(server), server.openwire_client()
    consumer.consume("q")
    other.succeeds(forwarded(other, "one", 7, "ID:x", "ID:a"))
    [dispatch] = consumer.dispatches()
    assert text(dispatch) == "one" and dispatch.message is not None
    assert dispatch.message.broker_path == [BrokerId("ID:x"), BrokerId("ID:a")]
    assert id_of(dispatch).producer_id == ProducerId("ID:sender", 1, 1)
    assert id_of(dispatch).producer_sequence_id == 7


def test_what_a_bridge_sends_again_arrives_once(server: OpenWireServer) -> None:
    other = bridge(server)
    other.succeeds(forwarded(other, "one", 1, "ID:a"))
    server.restart()
    again, consumer = bridge(server), server.openwire_client()
    consumer.consume("q")
    again.succeeds(forwarded(again, "one", 1, "ID:a"))
    again.succeeds(forwarded(again, "two", 2, "ID:a"))
    assert consumer.texts() == ["one", "two"]


def test_a_message_that_comes_back_over_more_brokers_is_taken(server: OpenWireServer) -> None:
    other, consumer = bridge(server), server.openwire_client()
    consumer.consume("q")
    other.succeeds(forwarded(other, "one", 1, "ID:a"))
    other.succeeds(forwarded(other, "one", 1, "ID:a", server.broker.node_id, "ID:a"))
    assert consumer.texts() == ["one", "one"]


def test_copies_for_several_queues_of_one_address_are_no_repeats(server: OpenWireServer) -> None:
    other, consumer = bridge(server), server.openwire_client()
    names = ("Consumer.one.VirtualTopic.t", "Consumer.two.VirtualTopic.t")
    for name in names:
        consumer.consume(ActiveMQQueue(name))
        other.succeeds(forwarded(other, name, 1, "ID:a", queue=name))
    assert sorted(str(each) for each in consumer.texts()) == list(names)


def test_the_bridge_of_a_broker_replaces_its_own_lost_connection(server: OpenWireServer) -> None:
    first = bridge(server)
    bridge(server)
    assert first.closed == "its client has reconnected"
    stranger = OpenWireClient(server, "s")
    stranger.greet()
    stranger.send(BrokerInfo(BrokerId("ID:c"), broker_name="A", network_connection=True))
    name, why = stranger.fails(ConnectionInfo(ConnectionId("ID:s"), "NC_b_outbound", "admin", "admin"))
    assert name == "javax.jms.InvalidClientIDException" and "already connected" in why


def test_a_broker_is_no_neighbour_of_itself(server: OpenWireServer) -> None:
    for info, why in (
        (BrokerInfo(BrokerId(server.broker.node_id), network_connection=True), "leads to the broker that it belongs"),
        (BrokerInfo(A), "no bridge of a network"),
    ):
        client = OpenWireClient(server, "x")
        client.greet()
        client.send(info)
        assert why in (client.closed or "")


# -- demand ---------------------------------------------------------------------------------------
CONSUMERS = ActiveMQTopic("ActiveMQ.Advisory.Consumer.Queue.>,ActiveMQ.Advisory.Consumer.Topic.>")


def told(watcher: OpenWireClient) -> list[tuple[str, str, object]]:
    """What advisories said since the last call: the end of the topic, the class of the data, the consumer's id."""
    found: list[tuple[str, str, object]] = []
    for dispatch in watcher.dispatches():
        assert dispatch.message is not None and dispatch.message.jms_type == "Advisory"
        data = dispatch.message.data_structure
        topic = (dispatch.message.destination or CONSUMERS).physical_name or ""
        key: object = None
        if isinstance(data, ConsumerInfo):
            key = data.consumer_id
        elif isinstance(data, RemoveInfo):
            key = data.object_id
        found.append((topic.removeprefix("ActiveMQ.Advisory.Consumer."), data.__class__.__name__, key))
    return found


def test_consumers_of_every_protocol_are_demand() -> None:
    both = World()
    other = bridge(both)
    other.consume(CONSUMERS, no_local=True)
    core, stomp, openwire = both.login(), both.stomp_client(), both.openwire_client()
    core.create_queue("core")
    core.consume("core", 1)
    stomp.subscribe("stomp", subscription_type="ANYCAST")
    own = openwire.consume("openwire")
    heard = told(other)
    assert [each[:2] for each in heard] == [
        ("Queue.core", "ConsumerInfo"), ("Queue.stomp", "ConsumerInfo"), ("Queue.openwire", "ConsumerInfo"),
    ]  # fmt: skip
    assert heard[2][2] == own
    late = bridge(both, BrokerId("ID:c"), "c")
    late.consume(CONSUMERS, no_local=True)
    assert sorted(told(late), key=str) == sorted(heard, key=str)
    for conn in (core.conn, stomp.conn, openwire.conn):
        both.lost(conn)
    assert told(other) == [(topic, "RemoveInfo", key) for topic, _, key in heard]


def test_subscriptions_of_core_clients_are_durable_demand(server: OpenWireServer) -> None:
    other, core = bridge(server), server.login()
    other.consume(CONSUMERS)
    core.create_queue("some\\.one.sub", address="t", routing_type=0)
    core.consume("some\\.one.sub", 1, selector="color = 'red'")
    (dispatch,) = other.dispatches()
    assert dispatch.message is not None
    info = dispatch.message.data_structure
    assert isinstance(info, ConsumerInfo) and info.destination == ActiveMQTopic("t")
    assert (info.client_id, info.subscription_name, info.selector) == ("some.one", "sub", "color = 'red'")
    server.lost(core.conn)
    assert [each[1] for each in told(other)] == ["RemoveInfo"]
    server.broker.queue_registry.delete(server.now, "some\\.one.sub", "test")
    (dispatch,) = other.dispatches()
    assert dispatch.message is not None
    removed = dispatch.message.data_structure
    assert isinstance(removed, RemoveSubscriptionInfo)
    assert (removed.client_id, removed.subscription_name) == ("some.one", "sub")


def test_subscriptions_of_older_clients_have_the_client_id_of_their_login(server: OpenWireServer) -> None:
    """ConsumerInfo carries it from OpenWire 10 on: two subscribers of one name would be one demand."""
    other, subscriber = bridge(server), server.openwire_client("me")
    other.consume(CONSUMERS)
    subscriber.consume(ActiveMQTopic("t"), subscription_name="sub")
    (dispatch,) = other.dispatches()
    assert dispatch.message is not None
    info = dispatch.message.data_structure
    assert isinstance(info, ConsumerInfo)
    assert (info.client_id, info.subscription_name) == ("me", "sub")


def test_a_bridge_does_not_hear_of_itself(server: OpenWireServer) -> None:
    other = bridge(server)
    other.consume(CONSUMERS, no_local=True)
    other.consume("q")
    assert told(other) == []


def test_demand_that_another_bridge_brings_keeps_its_path(server: OpenWireServer) -> None:
    other, far = bridge(server), bridge(server, BrokerId("ID:c"), "c")
    other.consume(CONSUMERS, no_local=True)
    path = [BrokerId("ID:d"), BrokerId("ID:c")]
    first = ConsumerId("ID:d", 1, 1)
    far.consume("q", broker_path=path, network_subscription=True, network_consumer_path=[first], priority=-5)
    (dispatch,) = other.dispatches()
    assert dispatch.message is not None and isinstance(dispatch.message.data_structure, ConsumerInfo)
    info = dispatch.message.data_structure
    assert info.broker_path == path and info.network_consumer_path == [first] and info.network_subscription


def test_temporary_queues_and_their_consumers_are_told(server: OpenWireServer) -> None:
    other, client = bridge(server), server.openwire_client()
    other.consume(ActiveMQTopic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic"))
    other.consume(CONSUMERS)
    own = client.temporary_queue()
    client.consume(own)
    added, consumer = other.dispatches()
    assert added.message is not None and isinstance(added.message.data_structure, DestinationInfo)
    assert added.message.data_structure.destination == own
    assert consumer.message is not None and isinstance(consumer.message.data_structure, ConsumerInfo)
    assert consumer.message.data_structure.destination == own


def test_a_bridge_acknowledges_advisories(server: OpenWireServer) -> None:
    other = bridge(server)
    consumer = other.consume(CONSUMERS)
    server.openwire_client().consume("q")
    (dispatch,) = other.dispatches()
    other.ack(dispatch)
    other.close(consumer)
    server.openwire_client("d").consume("q")
    assert other.dispatches() == []


# -- duplex ---------------------------------------------------------------------------------------
def test_messages_flow_back_over_a_duplex_connection_once_they_are_wanted(server: OpenWireServer) -> None:
    other, _ = duplex(server)
    sender = server.openwire_client()
    sender.publish("1", "q")
    assert other.output() == []
    consumer = ConsumerId("ID:there", 1, 1)
    advise(other, ConsumerInfo(consumer, destination=ActiveMQQueue("q"), prefetch_size=10))
    (message,) = other.output()
    assert isinstance(message, ActiveMQTextMessage) and message.response_required
    assert message.broker_path == [BrokerId(server.broker.node_id)]
    other.send(Response(message.command_id))
    other.output()
    assert server.broker.queues["q"].message_count == 0
    advise(other, RemoveInfo(consumer))
    sender.publish("2", "q")
    assert other.output() == [] and server.broker.queues["q"].message_count == 1


def test_what_is_not_answered_stays_when_a_duplex_connection_is_lost(server: OpenWireServer) -> None:
    other, _ = duplex(server)
    sender = server.openwire_client()
    sender.publish("1", "q")
    advise(other, ConsumerInfo(ConsumerId("ID:there", 1, 1), destination=ActiveMQQueue("q"), prefetch_size=10))
    assert len(other.output()) == 1
    server.lost(other.conn)
    sender.consume("q")
    (dispatch,) = sender.dispatches()
    assert text(dispatch) == "1" and dispatch.redelivery_counter == 0


def test_messages_do_not_return_over_a_duplex_connection(server: OpenWireServer) -> None:
    other, _ = duplex(server)
    advise(other, ConsumerInfo(ConsumerId("ID:there", 1, 1), destination=ActiveMQQueue("q"), prefetch_size=10))
    other.succeeds(forwarded(other, "1", 1, "ID:a"))
    assert other.output() == [] and server.broker.queues["q"].message_count == 1


def test_a_duplex_end_follows_the_options_of_the_connector(server: OpenWireServer) -> None:
    names = "dynamicallyIncludedDestinations=[queue\\://q,topic\\://t]\nbridgeTempDestinations=false\nprefetchSize=4\n"
    other, watch = duplex(server, names)
    topics = (watch.destination or CONSUMERS).physical_name
    assert topics == "ActiveMQ.Advisory.Consumer.Queue.q,ActiveMQ.Advisory.Consumer.Topic.t"
    assert watch.prefetch_size == 4
    for number in range(4):
        there = ConsumerId("ID:there", 1, number)
        advise(other, ConsumerInfo(there, destination=ActiveMQQueue("other"), prefetch_size=10))
    (ack,) = other.of_kind(MessageAck)
    assert ack.consumer_id == watch.consumer_id and ack.message_count == 4
    server.openwire_client().publish("1", "other")
    assert other.output() == []


def test_durable_subscriptions_are_listed_if_they_are_asked_for(server: OpenWireServer) -> None:
    subscriber = server.openwire_client("me")
    consumer = subscriber.consume(ActiveMQTopic("t"), subscription_name="sub", selector="a = 1")
    subscriber.close(consumer)
    client = OpenWireClient(server, "s")
    client.greet()
    properties = "syncDurableSubs=true\n"
    client.send(BrokerInfo(A, broker_name="A", network_connection=True, network_properties=properties))
    client.succeeds(client.login_info("NC_A_outbound", "admin", "admin"))
    (listed,) = client.of_kind(BrokerSubscriptionInfo)
    (info,) = listed.subscription_infos or []
    assert info.destination == ActiveMQTopic("t") and info.selector == "a = 1"
    assert (info.client_id, info.subscription_name) == ("me", "sub")


def test_a_bridge_puts_aside_what_is_never_accepted(server: OpenWireServer) -> None:
    other = bridge(server)
    gone = other.message("1", ActiveMQTempQueue("ID:gone:1"))
    broken = other.message("1", "q", {"AMQ_SCHEDULED_CRON": "never"})
    for refused, why in ((gone, "does not exist"), (broken, "five fields")):
        name, message = other.fails(refused)
        assert name == "org.apache.activemq.broker.region.DestinationDoesNotExistException"
        assert message.startswith("temp-") and why in message.lower()
    client = server.openwire_client()
    assert client.fails(client.message("1", ActiveMQTempQueue("ID:gone:1")))[0].startswith("javax.jms.")


def test_the_duplex_end_of_a_connection_that_is_cleaned_up_ends(server: OpenWireServer) -> None:
    """Else each further login of a broker would leave consumers that nobody ends."""
    other, _ = duplex(server)
    advise(other, ConsumerInfo(ConsumerId("ID:there", 1, 1), destination=ActiveMQQueue("q"), prefetch_size=10))
    server.openwire_client().publish("1", "q")
    assert len(other.output()) == 1
    other.succeeds(RemoveInfo(ConnectionId(other.id)))
    assert server.broker.queues["q"].consumer_count() == 0
    other.send(other.login_info("NC_again_outbound", "admin", "admin"))
    server.verify()
    assert [each for each in other.output() if isinstance(each, ActiveMQTextMessage)] == []
    assert server.broker.queues["q"].message_count == 1
