"""Large messages of CORE clients, delivered as one frame each; nothing interrupts a frame."""

from __future__ import annotations

import pytest

from atalanta.message.codec import text_body
from atalanta.message.message import BYTES, TEXT
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage
from atalanta.wire.stomp.connection import StompConnection
from tests.kernel.broker_rig import SECOND, Bench
from tests.wire.core.server.large_rig import BODY, PIECE, files
from tests.wire.core.server.server_rig import Client, text_message
from tests.wire.stomp.stomp_rig import StompClient, StompServer

TEXT_BODY = "žluťoučký kůň 😀 " * 20_000


def send_large(core: Client, body: bytes, kind: int) -> None:
    """A large message to the queue a, with the property n."""
    message = text_message("a", "", True, 1, n="7")
    message.kind = kind
    core.send(SendLargeMessage(message))
    for start in range(0, len(body), PIECE):
        last = start + PIECE >= len(body)
        core.send(SendContinuation(body[start : start + PIECE], not last, len(body) if last else -1, last, 1, 0))
    core.server.settle()


def subscribed(server: StompServer, **headers: str) -> StompClient:
    server.login().create_queue("a")
    client = server.stomp_client()
    client.subscribe("/queue/a", **headers)
    return client


def test_bytes_arrive_whole_and_the_file_goes(server: StompServer) -> None:
    client = subscribed(server)
    send_large(server.login(), BODY, BYTES)
    message = client.one()
    assert message.body == BODY and message["n"] == "7" and message["content-length"] == str(len(BODY))
    server.settle()
    assert server.broker.queues["a"].message_count == 0 and files(server) == 0


def test_a_text_becomes_utf_8(server: StompServer) -> None:
    client = subscribed(server, ack="client")
    send_large(server.login(), text_body(TEXT_BODY), TEXT)
    message = client.one()
    assert message.body.decode() == TEXT_BODY
    client.receipt("ACK", id=message["ack"])
    assert files(server) == 0


def test_other_frames_and_heart_beats_wait_for_the_end_of_the_frame(server: StompServer) -> None:
    server.login().create_queue("a")
    client = server.stomp_client(heart_beat="0,500")
    client.subscribe("/queue/a", ack="client")
    client.subscribe("/queue/b", "2")
    send_large(server.login(), BODY, BYTES)
    server.work_files(0)
    client.send("SEND", "small", destination="/queue/b", receipt="r")
    data = client.output()
    for _ in range(10):
        server.now += SECOND
        server.beat()
        server.work_files(1)
        data += client.output()
    client.pending = []
    server.wire.written[client.conn] = [data]
    assert [(each.command, each.body) for each in client.frames()] == [
        ("MESSAGE", BODY), ("RECEIPT", b""), ("MESSAGE", b"small"),
    ]  # fmt: skip


@pytest.mark.parametrize("command", ["UNSUBSCRIBE", "DISCONNECT"])
def test_a_frame_that_has_begun_is_completed(server: StompServer, command: str) -> None:
    client = subscribed(server, ack="client")
    send_large_partly(server)
    client.send(command, id="1", receipt="r")
    frames = client.frames()
    assert [(each.command, each.body) for each in frames] == [("MESSAGE", BODY), ("RECEIPT", b"")]
    assert (client.closed is None) == (command == "UNSUBSCRIBE")
    assert server.broker.queues["a"].message_count == 1


def send_large_partly(server: StompServer, body: bytes = BODY) -> None:
    """A large message, of which the first piece is delivered to the only STOMP client."""
    core = server.login()
    message = text_message("a", "", True, 1)
    message.kind = BYTES
    core.send(SendLargeMessage(message))
    for start in range(0, len(body), PIECE):
        last = start + PIECE >= len(body)
        core.send(SendContinuation(body[start : start + PIECE], not last, len(body) if last else -1, False, 1, 0))
    for _ in range(100):
        Bench.settle(server)
        server.turn()
        if any(isinstance(each, StompConnection) and each.in_frame for each in server.connections.values()):
            return
        server.work_files(1)
    raise AssertionError("the delivery did not begin")


def test_a_slow_reader_gets_the_rest_when_it_reads(server: StompServer) -> None:
    client = subscribed(server, ack="client")
    send_large_partly(server, 4 * BODY)
    connection = server.connection(client.conn)
    connection.on_blocked(server.now, True)
    server.settle()
    part = client.output()
    assert len(part) < 2 * len(BODY)
    connection.on_blocked(server.now, False)
    server.settle()
    server.wire.written[client.conn] = [part, *server.wire.written[client.conn]]
    assert client.one().body == 4 * BODY


def test_a_lost_client_leaves_the_message_in_its_queue(server: StompServer) -> None:
    client = subscribed(server)
    send_large_partly(server)
    server.lost(client.conn)
    server.settle()
    assert server.broker.queues["a"].message_count == 1
    again = server.stomp_client()
    again.subscribe("/queue/a")
    message = again.one()
    assert message.body == BODY and message["redelivered"] == "true"


@pytest.mark.parametrize("kind", [BYTES, TEXT])
def test_a_damaged_file_is_never_delivered_as_whole(server: StompServer, kind: int) -> None:
    server.login().create_queue("a")
    body = BODY if kind == BYTES else text_body(TEXT_BODY)
    send_large(server.login(), body, kind)
    (file,) = server.large.contents
    server.large.contents[file][-1] ^= 1
    client = server.stomp_client()
    client.send("SUBSCRIBE", destination="/queue/a", id="1", ack="client")
    server.settle()
    output = client.output()
    assert not output.endswith(b"\0\n") or b"MESSAGE" not in output
    assert server.broker.queues["a"].message_count == 1
    assert (client.closed is None) == (kind == TEXT)  # a text is measured first
