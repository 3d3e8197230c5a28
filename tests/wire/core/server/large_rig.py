"""Large messages on the bench of test servers: sending them in pieces, and what a consumer got of them."""

from __future__ import annotations

from atalanta.kernel.broker.invariants import validate
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.consumer import IndividualAcknowledge
from atalanta.wire.core.packets.logview import (
    LogBody,
    LogBodyResponse,
    LogReadLargeResponse,
)
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
    SendContinuation,
    SendLargeMessage,
)
from tests.wire.core.server.server_rig import Client, Server, text_message

PIECE = 102_400


def body_of(size: int, seed: int = 0) -> bytes:
    return bytes((seed + index) & 0xFF for index in range(256)) * (size // 256) + bytes(size % 256)


BODY = body_of(3 * PIECE + 77)


def begin(client: Client, address: str, durable: bool = True, **properties: str) -> None:
    client.send(SendLargeMessage(text_message(address, "", durable, None, **properties)))


def send_large(
    client: Client,
    address: str,
    body: bytes,
    durable: bool = True,
    named_size: int | None = None,
    **properties: str,
) -> int:
    """SESS_SEND_LARGE and all continuations, the last of which wants an answer; returns its correlation."""
    client.correlation -= 1
    begin(client, address, durable, **properties)
    for start in range(0, max(len(body), 1), PIECE):
        last = start + PIECE >= len(body)
        piece = body[start : start + PIECE]
        client.send(
            SendContinuation(
                piece,
                continues=not last,
                body_size=len(body) if named_size is None else named_size,
                requires_response=last,
                correlation=client.correlation if last else -1,
                sender_id=0,
            )
        )
    return client.correlation


class Got:
    """One delivery: `body` as far as it came, `whole` when its last piece did."""

    def __init__(self, id: int, delivery_count: int, body: bytes, whole: bool) -> None:
        self.id = id
        self.delivery_count = delivery_count
        self.body = body
        self.whole = whole
        self.size = len(body)


class Reader:
    """Puts deliveries of one consumer together, call by call."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.got: list[Got] = []

    def look(self) -> list[Got]:
        """All that came so far, finished and not."""
        for _, packet in self.client.receive():
            if isinstance(packet, ReceiveLargeMessage):
                assert not self.got or self.got[-1].whole, "a delivery within another"
                got = Got(packet.message.id, packet.delivery_count, b"", False)
                got.size = packet.body_size
                self.got.append(got)
            elif isinstance(packet, ReceiveContinuation):
                assert not self.got[-1].whole
                self.got[-1].body += packet.body
                self.got[-1].whole = not packet.continues
            elif isinstance(packet, ReceiveMessage):
                assert not self.got or self.got[-1].whole, "a delivery within another"
                message = packet.message
                self.got.append(
                    Got(message.id, packet.delivery_count, (message.text() or "").encode(), True)
                )
        return self.got

    def bodies(self) -> list[bytes]:
        return [got.body for got in self.look() if got.whole]


def files(server: Server) -> int:
    return len(server.large.contents)


def answered(client: Client) -> list[int]:
    return [packet.correlation for packet in client.packets(NullResponse)]


def acknowledge(server: Server, client: Client, message_id: int, consumer: int = 0) -> None:
    client.send(IndividualAcknowledge(consumer, message_id, False))
    server.settle()
    validate(server.broker)


def with_message(durable: bool = True) -> tuple[Server, Client]:
    server = Server()
    client = server.login()
    client.create_queue("orders")
    send_large(client, "orders", BODY, durable)
    server.settle()
    client.receive()
    return server, client


def told(server: Server, name: str) -> list[dict[str, object]]:
    return [fields for event, fields in server.trace.events if event == name]


def acknowledged_in_memory(server: Server, client: Client) -> None:
    """By a consumer there; the acknowledgement is not durable yet."""
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    client.send(IndividualAcknowledge(0, reader.look()[0].id, False))
    server.turn()
    server.work_files(3)


def whole_at(server: Server, client: Client) -> None:
    """A consumer there gets it, and nothing else."""
    client.consume("orders")
    reader = Reader(client)
    server.settle()
    assert reader.bodies() == [BODY]


def restart(server: Server) -> Client:
    """A power cut, and a client of the new life."""
    server.file_jobs.clear()
    server.large.crash()
    server.restart()
    client = server.login()
    server.settle()
    return client


def pieces_of(server: Server, client: Client, announced: LogReadLargeResponse) -> list[bytes]:
    """The pieces of the body of the only message, up to the end."""
    found: list[bytes] = []
    while (read := sum(map(len, found))) < announced.size:
        answer = client.call(LogBody(1, "orders", "", 1, read, 0))
        assert isinstance(answer, LogBodyResponse), answer
        found.append(answer.data)
        if not answer.data:
            break
    return found
