"""Small compressed bodies that become large ones: refused by name, or inflated in steps while others are served."""

from __future__ import annotations

import threading
import time
import zlib
from pathlib import Path

import pytest

from atalanta.client.blocking import connect
from atalanta.wire.openwire.bodies import compressed, map_content, stream_content
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.connections import KeepAliveInfo
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQObjectMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
    OpenWireMessage,
)
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from tests.app.raw_clients import PASSWORD, OpenWireSocket, resident_bytes, write_secured
from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.waiting import until

HUGE_BYTES = 95 << 20
KINDS: dict[str, tuple[type[OpenWireMessage], int]] = {
    "text": (ActiveMQTextMessage, codes.TEXT_MESSAGE),
    "bytes": (ActiveMQBytesMessage, codes.BYTES_MESSAGE),
    "map": (ActiveMQMapMessage, codes.MAP_MESSAGE),
    "stream": (ActiveMQStreamMessage, codes.STREAM_MESSAGE),
    "object": (ActiveMQObjectMessage, codes.OBJECT_MESSAGE),
}


def body(kind: str, size: int) -> bytes:
    """A body with a value of about that size, without compression."""
    if kind == "text":
        return size.to_bytes(4, "big") + b"a" * size
    if kind == "map":
        return map_content({str(number): "a" * 30_000 for number in range(size // 30_000)})
    if kind == "stream":
        return stream_content(["a" * 30_000 for _ in range(size // 30_000)])
    return b"a" * size


def sent(client: OpenWireSocket, kind: str, content: bytes, queue: str = "q") -> str:
    """Sends a compressed body; "" or the text of the refusal."""
    made, code = KINDS[kind]
    client.send(client.message(queue, compressed(code, content), True, made, True))
    answer = client.until(Response)
    if isinstance(answer, ExceptionResponse) and answer.exception is not None:
        return answer.exception.message or "?"
    return ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_becomes_too_large_is_refused_by_name_and_others_are_served(tmp_path: Path, kind: str) -> None:
    port = free_port()
    # As large as the frame that a real attack needs; zeros compress best.
    size = HUGE_BYTES.to_bytes(4, "big")
    content = (size if kind == "bytes" else b"") + zlib.compress(
        (size if kind == "text" else b"") + bytes(HUGE_BYTES), 6
    )
    with BrokerProcess(write_secured(tmp_path, port, 1)) as broker:
        client = OpenWireSocket(port)
        client.log_in()
        before = resident_bytes(broker.process.pid)
        made, _ = KINDS[kind]
        client.send(b"".join(client.message("q", content, True, made, True) for _ in range(8)))
        other = OpenWireSocket(port)
        other.log_in("bert")
        longest = longest_answer(other, 30)
        for _ in range(8):
            answer = client.until(Response)
            assert isinstance(answer, ExceptionResponse) and answer.exception is not None
            text = answer.exception.message or ""
            assert "a compressed body: " in text and "send it without compression" in text
        assert longest < 1.0, f"another client waited {longest:.2f} s"
        assert resident_bytes(broker.process.pid) - before < 80 << 20
        assert sent(client, kind, body(kind, 100_000)) == ""
        client.close()
        other.close()


def longest_answer(client: OpenWireSocket, count: int) -> float:
    """The longest time in which a sign of life was answered."""
    longest = 0.0
    for _ in range(count):
        began = time.monotonic()
        client.send(client.frame(KeepAliveInfo(), True))
        client.until(KeepAliveInfo)
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.02)
    return longest


@pytest.mark.parametrize("kind", KINDS)
def test_bodies_that_are_inflated_in_steps_arrive_in_order(tmp_path: Path, kind: str) -> None:
    port = free_port()
    size = 900_000 if kind in ("map", "stream") else 5 << 20
    with BrokerProcess(write_secured(tmp_path, port, 1)):
        clients = [OpenWireSocket(port) for _ in range(3)]
        for client, user in zip(clients, ("anna", "bert", "anna"), strict=True):
            client.log_in(user)

        def send(client: OpenWireSocket) -> None:
            made, code = KINDS[kind]
            large, small = body(kind, size), body(kind, 60_000)
            contents = [small, large, small, large, small]
            client.send(b"".join(client.message("q", compressed(code, each), True, made, True) for each in contents))
            for _ in contents:
                answer = client.until(Response)
                assert not isinstance(answer, ExceptionResponse), answer.exception

        threads = [threading.Thread(target=send, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with connect(f"tcp://127.0.0.1:{port}", user="anna", password=PASSWORD) as connection:
            consumer = connection.consumer("q", ack="auto")
            large = 0
            for _ in range(15):
                message = consumer.receive(60)
                assert message is not None
                large += len(message.body) > 500_000
            assert large == 6
        for client in clients:
            client.close()


def test_a_user_without_the_right_to_send_causes_no_work(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_secured(tmp_path, port, 1)):
        client = OpenWireSocket(port)
        client.log_in("none")
        assert "permission='SEND'" in sent(client, "text", body("text", 5 << 20))
        client.close()


def test_a_client_that_leaves_during_the_inflation_is_forgotten(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_secured(tmp_path, port, 1)) as broker:
        gone = OpenWireSocket(port)
        gone.log_in()
        content = compressed(codes.TEXT_MESSAGE, body("text", 12 << 20))
        gone.send(gone.message("q", content, True, ActiveMQTextMessage, True))
        gone.close()
        client = OpenWireSocket(port)
        client.log_in()
        assert sent(client, "text", body("text", 5 << 20)) == ""
        until(lambda: broker.process.poll() is None)
        client.close()
