"""Clients that hang up while the broker does not read from them: the end is seen at once, in every protocol."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from tests.app.raw_clients import PASSWORD, OpenWireSocket, StompSocket, open_files, write_secured
from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.waiting import until

FULL = """<address-settings><address-setting match="#">
  <address-full-policy>BLOCK</address-full-policy><max-size-bytes>100K</max-size-bytes>
</address-setting></address-settings>"""
LOGINS = 60
Client = OpenWireSocket | StompSocket
PROTOCOLS: dict[str, Callable[[int], Client]] = {
    "openwire": OpenWireSocket,
    "stomp": StompSocket,
    "web_socket": lambda port: StompSocket(port, True),
}
each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)


@each_protocol
def test_wrong_logins_of_clients_that_hung_up_leave_nothing_and_cost_no_hash(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    # Some 0.2 s for each hash: all of them would take longer than the test waits.
    with BrokerProcess(write_secured(tmp_path, port, 400_000)) as broker:
        before = open_files(broker.process.pid)
        for number in range(LOGINS):
            client = PROTOCOLS[protocol](port)
            client.begin_login("anna", f"wrong {number}")
            client.close()
        began = time.monotonic()
        until(lambda: open_files(broker.process.pid) <= before + 1, "connections of clients that are gone stay")
        PROTOCOLS[protocol](port).log_in()  # waits for the hashes before it
        assert time.monotonic() - began < LOGINS * 0.1
        assert broker.log().count("login_refused") < LOGINS / 2


@each_protocol
def test_a_producer_that_is_killed_while_it_waits_for_room_comes_back_at_once(tmp_path: Path, protocol: str) -> None:
    port = free_port()
    with BrokerProcess(write_secured(tmp_path, port, 1, FULL)) as broker:
        before = open_files(broker.process.pid)

        def producer() -> Client:
            client = PROTOCOLS[protocol](port)
            if isinstance(client, StompSocket):
                client.log_in(client_id="one")
            else:
                client.client_id = "one"
                client.log_in()
            return client

        first = producer()
        # More than the systems of both sides take: the end of the client is behind bytes that are not read.
        while first.send_some(first.message("full", b"x" * 50_000), 0.5) > 0:
            pass
        broker.until_logged("address_blocked")
        first.close()
        second = producer()
        second.post("other", b"arrives")
        second.close()
        until(lambda: open_files(broker.process.pid) <= before + 3, "the connection of a killed client stays")


def test_the_id_of_a_client_that_waits_for_room_and_lives_stays_its_own(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_secured(tmp_path, port, 1, FULL)) as broker:
        first = OpenWireSocket(port, "one")
        first.log_in()
        first.send(b"".join(first.message("full", b"x" * 50_000) for _ in range(10)))
        broker.until_logged("address_blocked")
        second = OpenWireSocket(port, "one")
        second.begin_login("anna", PASSWORD)
        answer = second.until(Response)
        assert isinstance(answer, ExceptionResponse) and answer.exception is not None
        assert "already connected" in (answer.exception.message or "")
        first.close()
        third = OpenWireSocket(port, "one")
        third.log_in()
        third.close()


def test_messages_without_receipt_count_though_their_client_is_gone(tmp_path: Path) -> None:
    """What a client has sent before its end is processed, if it is held for a moment only."""
    port = free_port()
    with BrokerProcess(write_secured(tmp_path, port, 1)):
        sender = StompSocket(port)
        sender.log_in()
        # More receipts than may wait: the input is held until the messages are on the disk.
        sender.send(b"".join(sender.message("all", b"x", str(number)) for number in range(5000)))
        sender.socket.shutdown(socket.SHUT_WR)  # a closed socket would refuse the receipts
        reader = StompSocket(port)
        reader.log_in()
        reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/all\nack:auto\n\n\0")
        for _ in range(5000):
            assert b"MESSAGE" in reader.until(b"\0")
        reader.close()
        sender.close()


def test_messages_that_came_with_the_login_count_though_their_client_is_gone(tmp_path: Path) -> None:
    """A script writes everything at once and ends its side, while the hash of its password is computed."""
    port = free_port()
    with BrokerProcess(write_secured(tmp_path, port, 400_000)):
        sender = StompSocket(port)
        login = f"CONNECT\naccept-version:1.2\nhost:h\nlogin:anna\npasscode:{PASSWORD}\n\n\0".encode()
        sender.send(login + sender.message("all", b"x", "1") + b"DISCONNECT\n\n\0")
        sender.socket.shutdown(socket.SHUT_WR)
        assert "CONNECTED" in sender.ended()
        reader = StompSocket(port)
        reader.log_in()
        reader.send(b"SUBSCRIBE\nid:1\ndestination:/queue/all\nack:auto\n\n\0")
        assert b"MESSAGE" in reader.until(b"\0")
        sender.close()
        reader.close()
