"""The memory of messages that stop in the middle: bounded for each user and host, and given back, in every protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from atalanta.client.blocking import connect
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets.codec import encode
from atalanta.wire.core.packets.session import CreateSession
from tests.app.raw_clients import (
    PASSWORD,
    OpenWireSocket,
    RawClient,
    StompSocket,
    core_frame,
    resident_bytes,
    write_secured,
)
from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.waiting import until

SHARE_BYTES = 8 << 20
BODY_BYTES = 10 << 20
CONNECTIONS = 16
GROWTH_BYTES_MAX = 75 << 20  # the share, one frame, and what each connection has read at once
FULL = """<address-settings><address-setting match="full">
  <address-full-policy>BLOCK</address-full-policy><max-size-bytes>100K</max-size-bytes>
</address-setting></address-settings>"""
Client = OpenWireSocket | StompSocket
PROTOCOLS: dict[str, Callable[[int], Client]] = {
    "openwire": OpenWireSocket,
    "stomp": StompSocket,
    "web_socket": lambda port: StompSocket(port, True),
}
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


def broker_in(folder: Path, port: int, more: str = "") -> BrokerProcess:
    path = write_secured(folder, port, 1, more)
    path.with_name("atalanta.toml").write_text(f"unfinished-messages-max = {SHARE_BYTES}\n")
    return BrokerProcess(path)


def messages(port: int, queue: str, count: int) -> list[bytes]:
    """The bodies of the next messages."""
    with connect(f"tcp://127.0.0.1:{port}", user="anna", password=PASSWORD) as connection:
        consumer = connection.consumer(queue, ack="auto")
        found = [consumer.receive(60) for _ in range(count)]
        return [bytes(message.body) for message in found if message is not None]


@each_protocol
def test_unfinished_messages_take_the_share_of_their_user_and_arrive_in_the_end(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    with broker_in(tmp_path, port) as broker:
        pid = broker.process.pid
        clients = [PROTOCOLS[protocol](port) for _ in range(CONNECTIONS)]
        for client in clients:
            client.log_in()
        before = resident_bytes(pid)
        frames = [client.message("q", bytes((65 + number,)) * BODY_BYTES) for number, client in enumerate(clients)]
        cut = BODY_BYTES - 1000
        sent = [client.send_some(frame[:cut], 0.3) for client, frame in zip(clients, frames, strict=True)]
        assert resident_bytes(pid) - before < GROWTH_BYTES_MAX
        assert broker.log().count("unfinished_messages_limit user=anna") == 1
        assert "unfinished-messages-max" in broker.log()
        # Another user is not concerned.
        other = PROTOCOLS[protocol](port)
        other.log_in("bert")
        other.send(other.message("other", b"z" * BODY_BYTES))
        other.post("other", b"last")
        other.close()
        # Each message is completed in its turn.
        rest = [
            threading.Thread(target=client.send, args=(frame[taken:],))
            for client, frame, taken in zip(clients, frames, sent, strict=True)
        ]
        for thread in rest:
            thread.start()
        found = messages(port, "q", CONNECTIONS)
        assert sorted(body[:1] for body in found) == [bytes((65 + number,)) for number in range(CONNECTIONS)]
        assert {len(body) for body in found} == {BODY_BYTES}
        for thread in rest:
            thread.join()
        for client in clients:
            client.close()


@each_protocol
def test_the_memory_of_clients_that_leave_is_given_back(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    path = write_secured(tmp_path, port, 1)
    with BrokerProcess(path) as broker:
        pid = broker.process.pid
        before = resident_bytes(pid)
        clients = [PROTOCOLS[protocol](port) for _ in range(12)]
        for client in clients:
            client.log_in()
            assert client.send_some(client.message("q", b"x" * BODY_BYTES)[: BODY_BYTES - 1000], 5.0) > 0
        until(lambda: resident_bytes(pid) - before > 100 << 20)
        for client in clients:
            client.close()
        until(lambda: resident_bytes(pid) - before < 30 << 20, lambda: f"{resident_bytes(pid) - before} bytes stay")


@each_protocol
def test_complete_messages_that_wait_for_room_count_too(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    with broker_in(tmp_path, port, FULL) as broker:
        pid = broker.process.pid
        first = PROTOCOLS[protocol](port)
        first.log_in()
        first.post("full", b"x" * 200_000)
        before = resident_bytes(pid)
        clients = [PROTOCOLS[protocol](port) for _ in range(CONNECTIONS)]
        for client in clients:
            client.log_in()
            client.send_some(client.message("full", b"y" * (3 << 20)), 0.3)
        broker.until_logged("unfinished_messages_limit user=anna")
        assert resident_bytes(pid) - before < GROWTH_BYTES_MAX
        # Nobody else is in the way: neither a small message nor the consumer that makes room.
        first.socket.close()
        small = PROTOCOLS[protocol](port)
        small.log_in()
        small.post("other", b"small")
        assert messages(port, "full", 1) == [b"x" * 200_000]


def test_unfinished_handshakes_of_a_host_push_out_the_oldest(tmp_path: Path) -> None:
    port = free_port()
    with broker_in(tmp_path, port) as broker:
        pid = broker.process.pid
        before = resident_bytes(pid)
        clients: list[RawClient] = []
        for _ in range(150):
            core = RawClient(port)
            core.send(b"ARTEMIS" + core_frame(30, 1, b"x" * 60_000)[:-1])
            clients.append(core)
        broker.until_logged("unfinished_messages_limit")
        assert 'host="127.0.0.1"' in broker.log() or "host=127.0.0.1" in broker.log()
        assert clients[0].ended() == ""
        assert resident_bytes(pid) - before < 30 << 20
        fresh = StompSocket(port)
        fresh.begin_login("anna", PASSWORD)
        assert b"CONNECTED" in fresh.until(b"\0")
        for client in clients:
            client.close()


def test_core_frames_take_the_share_too(tmp_path: Path) -> None:
    port = free_port()
    with broker_in(tmp_path, port) as broker:
        pid = broker.process.pid
        before = resident_bytes(pid)
        clients = []
        for number in range(CONNECTIONS):
            client = RawClient(port)
            login = CreateSession(name=f"s{number}", session_channel=10, version=136, user="anna", password=PASSWORD)
            client.send(b"ARTEMIS" + encode(login, 1, 136))
            client.send_some(core_frame(packet_types.SESS_SEND, 10, b"x" * BODY_BYTES)[: BODY_BYTES - 1000], 0.3)
            clients.append(client)
        broker.until_logged("unfinished_messages_limit user=anna")
        assert resident_bytes(pid) - before < GROWTH_BYTES_MAX
        for client in clients:
            client.close()
