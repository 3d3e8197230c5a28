"""What tests of nodes that leave share."""

from __future__ import annotations

from atalanta.cluster.scale_down import ScaleDown
from atalanta.kernel.message import Message
from atalanta.kernel.properties import Byte
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.wire.core.packets_message import SendMessage
from tests.cluster.rig import Client, Rig, node_of


def departure(host: Host) -> ScaleDown:
    found = node_of(host).scale_down
    assert found is not None
    return found


def begin(rig: Rig, host: Host) -> ScaleDown:
    part = departure(host)
    node_of(host).leave(rig.world.now)
    host.flush_later()
    return part


def leave(rig: Rig, host: Host, seconds: float = 60) -> ScaleDown:
    """The node leaves, and ends when it has."""
    part = begin(rig, host)
    rig.until(part.over, seconds)
    host.stop()
    return part


def bodies(rig: Rig, host: Host, queue: str) -> list[bytes]:
    """What a consumer gets there."""
    client = rig.client(host)
    client.consume(queue)
    rig.run(1)
    client.close()
    return client.bodies


def held(host: Host, queue: str) -> list[bytes]:
    """What lies there, in order."""
    return [bytes(each.message.body) for each in node_of(host).broker.queues[queue].live()]


def send(client: Client, address: str, body: bytes, durable: bool = True, **more: object) -> None:
    """A message to an anycast address, durable or not."""
    client.number += 1
    message = Message.create(address, body, 4, durable, client.world.now // 1_000_000, 4)
    message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
    for name, value in more.items():
        message.properties.put(name, value)  # type: ignore[arg-type]
    message.properties_changed()
    client.send(SendMessage(message, True, client.number, 1))
