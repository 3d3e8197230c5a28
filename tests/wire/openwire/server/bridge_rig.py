"""Bridges of other brokers of a network, seen from their end: with `duplex` and without."""

from __future__ import annotations

from atalanta.wire.openwire.bodies import text_of
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import ConnectionInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import BrokerId, SessionId
from atalanta.wire.openwire.commands.messages import ActiveMQMessage, OpenWireMessage
from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.options import WireFormatOptions
from tests.wire.openwire.server.openwire_rig import OPTIONS, OpenWireClient, OpenWireServer

A = BrokerId("ID:a")


def bridge(
    server: OpenWireServer, broker: BrokerId = A, name: str = "b", user: str = "admin"
) -> OpenWireClient:
    """The bridge of a broker, logged in."""
    client = OpenWireClient(server, f"{name}-{server.last_conn}")
    client.greet()
    client.send(BrokerInfo(broker, broker_name="A", network_connection=True))
    client.succeeds(client.login_info(f"NC_{name}_outbound", user, user))
    client.succeeds(SessionInfo(SessionId(client.id, 1)))
    return client


def duplex(
    server: OpenWireServer, properties: str = "", user: str = "admin", options: WireFormatOptions = OPTIONS
) -> tuple[OpenWireClient, ConsumerInfo]:
    """The duplex bridge of a broker, and the consumer of its advisories that the server asks for.

    What else the server sends stays for the test.
    """
    client = OpenWireClient(server, f"duplex-{server.last_conn}", options)
    client.greet()
    info = BrokerInfo(A, broker_name="A", network_connection=True, duplex_connection=True)
    info.network_properties = properties
    client.send(info)
    client.send(client.login_info(f"NC_{user}_outbound", user, user))
    server.verify()
    found = client.output()
    (login,) = [each for each in found if isinstance(each, ConnectionInfo)]
    (watch,) = [each for each in found if isinstance(each, ConsumerInfo)]
    assert login.client_id == f"NC_{client.broker.broker_name}_outbound"
    assert watch.consumer_id is not None and watch.no_local
    greeting = (ConnectionInfo, SessionInfo, ProducerInfo, ConsumerInfo)
    assert sum(isinstance(each, greeting) for each in found) == len(greeting)
    client.pending = [each for each in found if not isinstance(each, greeting)]
    client.send(SessionInfo(SessionId(client.id, 1)))
    return client, watch


def advise(client: OpenWireClient, data: DataStructure, kind: str = "Consumer.Queue.q") -> None:
    """An advisory of the other broker: a bare message."""
    advisory = ActiveMQMessage()
    client.fill(advisory, ActiveMQTopic(f"ActiveMQ.Advisory.{kind}"))
    advisory.data_structure = data
    client.send(advisory)


def taken(client: OpenWireClient) -> list[str | None]:
    """The texts of the messages that the bridge brings, each of which the other broker answers that it has it."""
    found = [each for each in client.output() if isinstance(each, OpenWireMessage)]
    for message in found:
        if message.response_required:
            client.send(Response(message.command_id))
    client.output()
    return [text_of(each.content) for each in found]
