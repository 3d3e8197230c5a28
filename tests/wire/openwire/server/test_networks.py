"""The bridge of another broker, as a client: its greeting, its messages and its repeats."""

from __future__ import annotations

from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import ConnectionInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import SessionInfo
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer, id_of, text

A = BrokerId("ID:a")


def bridge(server: OpenWireServer, broker: BrokerId = A, name: str = "b") -> OpenWireClient:
    """The bridge of a broker, logged in."""
    client = OpenWireClient(server, f"{name}-{server.last_conn}")
    client.greet()
    client.send(BrokerInfo(broker, broker_name="A", network_connection=True))
    client.succeeds(client.login_info(f"NC_{name}_outbound", "admin", "admin"))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    return client


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
