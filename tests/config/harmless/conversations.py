"""What clients of each protocol do with a broker, and what they see: values that two brokers are compared by."""

from __future__ import annotations

from atalanta.wire.openwire.commands.connections import KeepAliveInfo
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.commands.producers import DestinationInfo
from tests.config.harmless.file_server import FileServer
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.management_rig import ask, operator_of
from tests.wire.openwire.server.openwire_rig import OpenWireClient, text

LARGE = "x" * 300_000


def of_all_protocols(server: FileServer) -> list[object]:
    """Each client sends to the others, small and large; what is not acknowledged is there after a restart."""
    core, stomp, openwire = server.login(), server.stomp_client(), server.openwire_client()
    core.create_queue("orders")
    core.publish("orders", "by CORE")
    server.settle()
    stomp.receipt("SEND", LARGE, destination="orders")
    openwire.publish("by OpenWire", "orders")
    seen: list[object] = [sorted(packet.__class__.__name__ for _, packet in core.receive())]
    core.consume("orders", browse=True)
    server.settle()
    seen.append(core.bodies())
    stomp.subscribe("orders", ack="client")
    frames = stomp.messages()
    seen.append([frame.body for frame in frames])
    stomp.receipt("ACK", id=frames[0]["ack"])
    server.restart()
    again = server.openwire_client("again")
    again.consume("orders")
    found = again.dispatches()
    seen.append([text(each) for each in found])
    return seen


def of_large_stomp_messages(server: FileServer) -> list[object]:
    """A large body of a STOMP client reaches clients of all protocols, and is there after a restart."""
    stomp, core = server.stomp_client(), server.login()
    core.create_queue("orders")
    for _ in range(3):
        stomp.receipt("SEND", LARGE, destination="orders", persistent="true")
    server.restart()
    reader = server.stomp_client()
    reader.subscribe("orders")
    return [[len(each) for each in reader.texts()], server.broker.queues["orders"].message_count]


def of_advisories_and_signs_of_life(server: FileServer) -> list[object]:
    """An OpenWire client that listens for advisories, one that is silent, and one that sends a message again."""
    listener = server.openwire_client("listener")
    listener.consume(ActiveMQTopic("ActiveMQ.Advisory.Queue"))
    other = server.openwire_client("other", fault_tolerant=True)
    message = other.message("1", "orders")
    other.succeeds(message)
    seen: list[object] = [[advisory(each) for each in listener.dispatches()]]
    seen.append(signs_of_life(server, listener))
    server.lost(other.conn)
    repeated = server.openwire_client(
        "other", connection_id=other.id.removeprefix("ID:"), fault_tolerant=True, failover_reconnect=True
    )
    repeated.succeeds(message)
    repeated.consume("orders")
    seen.append(repeated.texts())
    # Management shows the queues of clients, and none of the listener's.
    seen.append(ask(operator_of(server), "getQueueNames"))
    return seen


def advisory(dispatch: MessageDispatch) -> object:
    """The queue that an advisory is about."""
    assert dispatch.message is not None and isinstance(dispatch.message.data_structure, DestinationInfo)
    assert dispatch.message.data_structure.destination is not None
    return dispatch.message.data_structure.destination.physical_name


def signs_of_life(server: FileServer, client: OpenWireClient) -> int:
    """How often a client that says nothing for a minute is told that the broker is there."""
    found = 0
    for _ in range(60):
        server.now += SECOND
        server.beat()
        found += len(client.of_kind(KeepAliveInfo))
    return found
