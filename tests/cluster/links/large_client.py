"""A client that sends and receives large messages."""

from __future__ import annotations

from atalanta.message.message import Message
from atalanta.sim.host import Host
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import IndividualAcknowledge
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    SendContinuation,
    SendLargeMessage,
)
from atalanta.wire.core.packets.session import SessionStart
from tests.cluster.cluster_rig import Client, Rig

PIECE = 102_400
BODY = bytes(range(251)) * 12_000  # three million


class LargeClient(Client):
    """Puts large messages together, acknowledges them, and consumes `queue` again after a loss."""

    queue = ""
    header: ReceiveLargeMessage | None = None
    parts: bytes = b""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.named_sizes: list[object] = []

    def on_ready(self) -> None:
        self.send(SessionStart())
        self.header = None
        if self.queue:
            self.consume(self.queue)

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveLargeMessage):
            assert self.header is None
            self.header = packet
            self.parts = b""
        elif isinstance(packet, ReceiveContinuation):
            assert self.header is not None
            self.parts += packet.body
            if not packet.continues:
                assert len(self.parts) == self.header.body_size
                self.bodies.append(self.parts)
                self.named_sizes.append(self.header.message.property_value("_AMQ_LARGE_SIZE"))
                self.send(IndividualAcknowledge(0, self.header.message.id, False))
                self.header = None
        else:
            super().on_packet(packet)

    def publish_large(
        self, address: str, body: bytes, group: str = "", named_size: int | None = None
    ) -> None:
        self.number += 1
        message = Message.create(address, b"", 4, True, 0, 4)
        if group:
            message.properties.put("_AMQ_GROUP_ID", group)
        self.send(SendLargeMessage(message))
        for start in range(0, len(body), PIECE):
            last = start + PIECE >= len(body)
            piece = body[start : start + PIECE]
            self.send(
                SendContinuation(
                    piece,
                    continues=not last,
                    body_size=len(body) if named_size is None else named_size,
                    requires_response=last,
                    correlation=self.number,
                    sender_id=1,
                )
            )


def client(rig: Rig, host: Host, queue: str = "") -> LargeClient:
    rig.clients += 1
    made = LargeClient(rig.world, rig.network, f"client{rig.clients}", host.name)
    made.queue = queue
    made.start()
    rig.until(lambda: made.ready)
    return made
